"""A run's folder belongs to one run at a time."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from linocut.errors import InputError
from linocut.files import write_whole
from linocut.models.locks import lock_file, taken
from linocut.training.config import TrainingConfig
from linocut.training.journal import LOG_FILE

CONFIG_FILE = "config.json"


@contextlib.contextmanager
def own_folder(folder: Path) -> Iterator[None]:
    """Hold the folder; a second process is refused."""
    with lock_file(folder / "run.lock") as lock:
        if not taken(lock):
            raise InputError(f"another process is training in {folder}: wait for it, or choose another folder")
        yield


def claim(folder: Path, config: TrainingConfig, *, resume: bool) -> None:
    """Write the config into a new run's folder, or compare it with the one that stands there.

    A run that was refused or killed before it left anything but its config has no say: the folder is new.
    """
    file = folder / CONFIG_FILE
    begun = any((folder / name).exists() for name in (LOG_FILE, "checkpoints", "model"))
    if not file.exists() or not begun:
        write_whole(file, json.dumps(config.to_json(), indent=1).encode())
        return
    if not resume:
        raise InputError(f"{folder} holds a run already: continue it with --resume, or choose another folder")
    try:
        before = json.loads(file.read_bytes())
        if not isinstance(before, dict):
            raise ValueError("it holds no settings")
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read {file} ({error}): remove it to go on, the checkpoints hold the settings too"
        ) from error
    config.refuse_changes(before)
