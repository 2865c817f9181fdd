"""The one error that users see, and whose fault any other one is."""

import sysconfig
import traceback
from pathlib import Path


class InputError(ValueError):
    """Something given to linocut cannot be used: the message says what was got, what was wanted, what to do."""


def told_of_own_code(reason: BaseException) -> str | None:
    """Where a user's own code failed, in one line; None where none of it was running: then the fault is ours."""
    paths = sysconfig.get_paths()
    roots = [Path(__file__).parent, *(Path(paths[name]) for name in ("stdlib", "platstdlib", "scripts"))]

    def is_theirs(file: str) -> bool:
        path = Path(file)
        installed = {"site-packages", "dist-packages"} & set(path.parts)
        return path.is_absolute() and not installed and not any(path.is_relative_to(root) for root in roots)

    frames = [frame for frame in traceback.extract_tb(reason.__traceback__) if is_theirs(frame.filename)]
    if not frames:
        return None
    last = frames[-1]
    return f"{last.filename}, line {last.lineno}, in {last.name}: {type(reason).__name__}: {reason}"
