"""From a plan to Images: from the cache where it holds them, else decoded, and kept for the next time."""

from pathlib import Path

import numpy as np

from linocut.data import store
from linocut.data.dataset import Images, from_arrays
from linocut.data.plan import Plan, Progress


def prepare(plan: Plan, cache: Path | None, progress: Progress | None = None) -> Images:
    """The decoded split. With a cache folder, it is mapped from one file there, which is made when needed."""
    if cache is None:
        return _decode(plan, progress)
    key = plan.key()
    path = cache / f"{plan.name}-{plan.split}-{plan.shape[-1]}-{key[:16]}.images"
    found = store.read(path, key)
    if found is not None:
        return found
    try:
        store.write(path, plan, key, progress)
    except OSError as error:
        return _decode(plan, progress, (f"not cached: {error}",))
    made = store.read(path, key)
    assert made is not None, f"{path} does not hold what was just written to it"
    return made


def _decode(plan: Plan, progress: Progress | None, remarks: tuple[str, ...] = ()) -> Images:
    parts = list(plan.batches(progress))
    pixels = np.concatenate([np.empty((0, *plan.shape), np.uint8), *(part for part, _ in parts)])
    labels = np.concatenate([np.empty(0, np.int64), *(part for _, part in parts)])
    return from_arrays(
        pixels=pixels,
        labels=labels,
        classes=plan.classes,
        name=plan.name,
        split=plan.split,
        notes=(*plan.outcome(len(labels)), *remarks),
    )
