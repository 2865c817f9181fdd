"""Image files through a transform: decoded and written by threads, transformed in batches of equal size."""

import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from linocut.data.images import read_image, save_png, write_png
from linocut.data.plan import usable_cores
from linocut.errors import InputError
from linocut.recipes.file_plan import Job
from linocut.recipes.panel import panel
from linocut.recipes.pictures import count_colors
from linocut.transform.apply import as_levels
from linocut.transform.modules import EssentialFeatures

MOST_IN_A_BATCH = 64
BATCH_PIXELS = 4_000_000
WAITING_PIXELS = 16_000_000


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one file: the number of colours written, or the reason why it was left out."""

    job: Job
    num_colors: int = 0
    notes: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Picture:
    job: Job
    pixels: torch.Tensor
    notes: tuple[str, ...]


def transform_files(jobs: Sequence[Job], transform: EssentialFeatures, device: torch.device) -> Iterator[Outcome]:
    """An outcome for every job, as each is finished.

    A file that cannot be read never stops the others; an output that cannot be written stops everything with an
    InputError, since the next would fail too.
    """
    workers = usable_cores()
    pool = ThreadPoolExecutor(workers)
    writing: deque[tuple[int, Future[Outcome]]] = deque()
    unwritten = 0  # pixels that are transformed and still in memory
    try:
        for batch in _batches(pool, jobs, workers):
            if isinstance(batch, Outcome):
                yield batch
                continue
            size = batch[0].pixels[0].numel()
            writing += [(size, pool.submit(finish)) for finish in _transform(batch, transform, device)]
            unwritten += size * len(batch)
            while writing and (unwritten > WAITING_PIXELS or writing[0][1].done()):
                size, future = writing.popleft()
                unwritten -= size
                yield future.result()
        while writing:
            yield writing.popleft()[1].result()
    finally:
        pool.shutdown(cancel_futures=True)


def _batches(pool: ThreadPoolExecutor, jobs: Sequence[Job], workers: int) -> Iterator[list[_Picture] | Outcome]:
    """Decoded pictures of equal shape together, and an outcome for each that cannot be decoded."""
    waiting: dict[torch.Size, list[_Picture]] = {}
    pixels_waiting = 0
    for decoded in _in_order(pool, jobs, workers):
        if isinstance(decoded, Outcome):
            yield decoded
            continue
        shape = decoded.pixels.shape
        waiting.setdefault(shape, []).append(decoded)
        pixels_waiting += shape[1] * shape[2]
        full = min(MOST_IN_A_BATCH, max(1, BATCH_PIXELS // (shape[1] * shape[2])))
        if len(waiting[shape]) < full and pixels_waiting <= WAITING_PIXELS:
            continue
        if len(waiting[shape]) < full:  # many sizes are waiting: the one that holds the most goes
            shape = max(waiting, key=lambda s: len(waiting[s]) * s[1] * s[2])
        batch = waiting.pop(shape)
        pixels_waiting -= len(batch) * shape[1] * shape[2]
        yield batch
    yield from waiting.values()


def _in_order(pool: ThreadPoolExecutor, jobs: Sequence[Job], workers: int) -> Iterator[_Picture | Outcome]:
    """Decoded jobs in the order given, so that batches do not depend on which thread was faster.

    Up to two for each worker are in flight, but large pictures do not pile up: as many as there are workers may be
    in the making, and beyond them, and the one that is taken next, only so many pixels.
    """
    reading: deque[Future[_Picture | Outcome]] = deque()
    usual = WAITING_PIXELS  # the pixels of the latest picture; the first may be large
    for job in jobs:
        while reading and (len(reading) > 2 * workers or _piled_up(reading, workers, usual) >= WAITING_PIXELS):
            decoded = reading.popleft().result()
            usual = _pixels(decoded) or usual
            yield decoded
        reading.append(pool.submit(_decode, job))
    while reading:
        yield reading.popleft().result()


def _piled_up(reading: Sequence[Future[_Picture | Outcome]], workers: int, usual: int) -> int:
    """Pixels that are decoded and not the next to be taken, or that will be before a worker is free for one more."""
    done = [future.done() for future in reading]
    waiting = sum(_pixels(reading[i].result()) for i in range(1, len(reading)) if done[i])
    return waiting + usual * max(0, done.count(False) + 1 - workers)


def _pixels(decoded: _Picture | Outcome) -> int:
    return 0 if isinstance(decoded, Outcome) else decoded.pixels[0].numel()


def _decode(job: Job) -> _Picture | Outcome:
    try:
        pixels, notes = read_image(job.source)
    except InputError as error:
        return Outcome(job=job, problem=str(error).removeprefix(f"{job.source}: "))
    return _Picture(job=job, pixels=pixels, notes=notes)


def _transform(
    batch: list[_Picture], transform: EssentialFeatures, device: torch.device
) -> Iterator[Callable[[], Outcome]]:
    """Transform the batch at once; what is left to do for each picture can be done by any thread."""
    images = torch.stack([picture.pixels for picture in batch]).to(device).float() / 255
    explained = any(picture.job.panel for picture in batch)
    explanations = transform.explain(images) if explained else [None] * len(batch)
    outputs = None if explained else as_levels(transform(images)).cpu()
    for i, (picture, explanation) in enumerate(zip(batch, explanations, strict=True)):

        def finish(i: int = i, picture: _Picture = picture, explanation=explanation) -> Outcome:
            job = picture.job
            levels = outputs[i] if outputs is not None else as_levels(explanation.output)
            _make_folder(job.target.parent)
            write_png(job.target, levels)
            if job.panel and explanation:
                _make_folder(job.panel.parent)
                save_png(job.panel, panel(explanation, transform.settings(), name=job.source.name))
            return Outcome(job=job, num_colors=count_colors(levels), notes=picture.notes)

        yield finish


def prepare_folder(out: Path) -> None:
    """Make the folder and see that files can be written there, before any work is done."""
    _make_folder(out)
    probe = out / f".linocut-{uuid.uuid4().hex}.part"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"{out}: files cannot be written there ({error.strerror or error})") from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: this folder cannot be made ({error.strerror or error})") from error
