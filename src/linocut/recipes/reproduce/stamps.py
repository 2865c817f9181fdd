"""Which steps are done: a stamp beside each artefact names its inputs and the hash of every file it made."""

from collections.abc import Collection, Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from linocut.errors import InputError
from linocut.files import sha256_of, write_whole
from linocut.models.seal import sealed, unsealed
from linocut.recipes.reproduce.step import Step, Workshop, digest

METHOD = 1  # raise it when a change of this code changes what a step makes
NOT_OUTCOME = ("lock", "run.lock")  # locks are written again by every run


# By a step's name, the outcome whose hashes this process has found to be right: files are not hashed at every look.
Seen = dict[str, dict[str, str]]


class State(Enum):
    """How a step stands."""

    DONE = "done"
    BEGUN = "go on"
    DUE = "to do"


def stamp_path(step: Step, shop: Workshop) -> Path:
    """Where the stamp of a step lies."""
    return shop.out / f"{step.name}.stamp.json"


def read(step: Step, shop: Workshop) -> dict[str, Any]:
    """The stamp of a step; empty where there is none that can be believed."""
    return read_at(stamp_path(step, shop))


def read_at(path: Path) -> dict[str, Any]:
    """The stamp in a file; empty where there is none that can be believed."""
    try:
        return unsealed(path.read_bytes(), str(path))
    except (OSError, InputError):
        return {}


def state(step: Step, shop: Workshop, done: Collection[str], seen: Seen) -> State:
    """How the step stands, given the names of those that are done; one that needs another is due until that is."""
    if any(need.name not in done for need in step.needs):
        return State.DUE
    stamp = read(step, shop)
    if stamp.get("inputs") != _inputs(step, shop):
        return State.DUE
    if stamp.get("outputs") is None:
        return State.BEGUN if step.can_go_on(shop) else State.DUE
    if stamp["outputs"] != seen.get(step.name):
        if stamp["outputs"] != outputs(step, shop):
            return State.DUE
        seen[step.name] = stamp["outputs"]
    return State.DONE


def seems_made(step: Step, shop: Workshop) -> bool:
    """Whether the step was made of what it would be made of now; its files are not looked at."""
    stamp = read(step, shop)
    return stamp.get("outputs") is not None and stamp.get("inputs") == _inputs(step, shop)


def begin(step: Step, shop: Workshop) -> None:
    """Note that the step is under way with these inputs."""
    content = {"step": step.name, "inputs": _inputs(step, shop), "outputs": None, "seconds": 0.0}
    write_whole(stamp_path(step, shop), sealed(content))


def add_time(step: Step, shop: Workshop, seconds: float) -> None:
    """Note the time that an unfinished step has taken so far."""
    stamp = read(step, shop)
    if stamp:
        write_whole(stamp_path(step, shop), sealed({**stamp, "seconds": stamp["seconds"] + seconds}))


def finish(step: Step, shop: Workshop, seconds: float) -> None:
    """Note that the step is done, what it made, and how long it took in all its runs."""
    stamp = read(step, shop)
    content = {**stamp, "outputs": outputs(step, shop), "seconds": stamp["seconds"] + seconds}
    write_whole(stamp_path(step, shop), sealed(content))


def outputs(step: Step, shop: Workshop) -> dict[str, str]:
    """The hash of every file of the outcome, by its path."""
    return hashes(step.pieces(shop), shop.out)


def hashes(pieces: Iterable[Path], out: Path) -> dict[str, str]:
    """The hash of every file of these files and folders, by its path below `out`."""
    files: list[Path] = []
    for piece in pieces:
        files += sorted(path for path in piece.rglob("*") if path.is_file()) if piece.is_dir() else [piece]
    return {str(path.relative_to(out)): _hash(path) for path in files if path.name not in NOT_OUTCOME}


def _hash(path: Path) -> str:
    try:
        return sha256_of(path)
    except FileNotFoundError:  # never made, or another process is about to make it again
        return "missing"


def _inputs(step: Step, shop: Workshop) -> str:
    """One hash over the step's own inputs and the outcomes of all it needs."""
    needed = {need.name: read(need, shop).get("outputs") for need in step.needs}
    return digest({"method": METHOD, "own": step.inputs(shop), "needs": needed})
