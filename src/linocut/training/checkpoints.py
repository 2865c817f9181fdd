"""Checkpoints: folders that count only when their manifest stands, is whole, and agrees with every hash.

    RUN/checkpoints/step-000001200/state.safetensors      weights, momentum, average
                                   canvas-0.safetensors   the perturbations of shard 0, and so on
                                   manifest.json          written last: step, config, hashes

Generators, sampler and schedule are functions of the config's seed and the step, so the step is their state.
Written by the processes together: each its own shards, the first everything else. Never a pickle.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from linocut.errors import InputError
from linocut.files import remove_unfinished, sha256_of, write_whole
from linocut.models.seal import sealed, unsealed
from linocut.models.tensors import Shapes, read_tensors, shapes_of
from linocut.training.config import TrainingConfig
from linocut.training.epochs import Ownership
from linocut.training.tensor_file import write_gathered, write_tensors
from linocut.training.trainer import Trainer

FORMAT = "linocut-checkpoint-1"
KEPT = 2
STATE = "state.safetensors"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A checkpoint found whole: where it lies, the step it was taken after, and the hashes of its files."""

    folder: Path
    step: int
    config: dict[str, Any]
    data: str
    files: dict[str, str]


def save_checkpoint(root: Path, step: int, trainer: Trainer, own: Ownership, data_hash: str) -> None:
    """Write the checkpoint taken after `step` steps and remove all but the last two."""
    folder = root / f"step-{step:09d}"
    world, mine = trainer.world, {}
    if trainer.config.method == "atta":
        for number in own.own_shards():
            name = f"canvas-{number}.safetensors"
            mine[name] = write_gathered(folder / name, {"change": (trainer.canvas.change, own.places(number))})
    if world.leads:
        mine[STATE] = write_tensors(folder / STATE, trainer.state())
    files = world.gather(mine)
    if world.leads:
        content = {
            "format": FORMAT,
            "step": step,
            "config": trainer.config.to_json(),
            "data": data_hash,
            "files": {name: {"sha256": files[name], "bytes": (folder / name).stat().st_size} for name in files},
        }
        write_whole(folder / "manifest.json", sealed(content))
        for old in sorted(root.glob("step-*"))[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    world.wait()


def find_checkpoint(root: Path, warn: Callable[[str], None]) -> Manifest | None:
    """The newest whole checkpoint, or None; each damaged one is passed over and said so through `warn`."""
    for folder in sorted(root.glob("step-*"), reverse=True):
        try:
            return _whole(folder)
        except InputError as error:
            warn(f"passing over {folder.name}: {error}")
    return None


def _whole(folder: Path) -> Manifest:
    file = folder / "manifest.json"
    try:
        content = unsealed(file.read_bytes(), file.name)
        if content["format"] != FORMAT:
            raise InputError(f"its format is {content['format']!r}, wanted {FORMAT!r}")
        files = {str(name): (str(entry["sha256"]), int(entry["bytes"])) for name, entry in content["files"].items()}
        found = Manifest(
            folder=folder,
            step=int(content["step"]),
            config=dict(content["config"]),
            data=str(content["data"]),
            files={name: digest for name, (digest, _) in files.items()},
        )
        for name, (digest, size) in files.items():
            if Path(name).name != name:
                raise InputError(f"it names the file {name!r} outside its folder")
            if (folder / name).stat().st_size != size or sha256_of(folder / name) != digest:
                raise InputError(f"{name} is not what was written")
    except FileNotFoundError as error:
        raise InputError(f"{Path(error.filename).name} is missing: its writing was cut short") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise (error if isinstance(error, InputError) else InputError(f"its manifest is damaged: {error}")) from error
    return found


def restore_checkpoint(found: Manifest, trainer: Trainer, own: Ownership) -> None:
    """Put a checkpoint's state into the trainer and its canvas; hashes are checked again on reading."""
    trainer.restore(_read(found, STATE, shapes_of(trainer.state())))
    if trainer.config.method != "atta":
        return
    change = trainer.canvas.change
    for number in own.own_shards():
        places = own.places(number).to(change.device)
        wanted = {"change": (change.dtype, (len(places), *change.shape[1:]))}
        stored = _read(found, f"canvas-{number}.safetensors", wanted)["change"]
        change[places] = stored.to(change.device)


def _read(found: Manifest, name: str, wanted: Shapes) -> dict[str, torch.Tensor]:
    if name not in found.files:
        raise InputError(f"{found.folder} has no {name}")
    path = found.folder / name
    return read_tensors(path, wanted, path.stat().st_size, found.files[name])


def refuse_other_run(found: Manifest, config: TrainingConfig, data_hash: str) -> None:
    """Raise InputError unless the checkpoint belongs to this config and these training images."""
    config.refuse_changes(found.config)
    if found.data != data_hash:
        raise InputError(f"the run was started on images of hash {found.data[:12]}, these have {data_hash[:12]}")


def sweep(root: Path) -> None:
    """Remove what killed processes left: unfinished files, and folders that never got their manifest."""
    for folder in root.glob("step-*"):
        remove_unfinished(folder)
        if not (folder / "manifest.json").exists():
            shutil.rmtree(folder, ignore_errors=True)


def discard_after(root: Path, step: int) -> None:
    """Remove checkpoints later than the one in use: they were damaged, and would count among the kept."""
    for folder in root.glob("step-*"):
        if folder.name > f"step-{step:09d}":
            try:
                shutil.rmtree(folder)
            except OSError as error:
                raise InputError(f"cannot remove the damaged {folder}: {error.strerror}; remove it by hand") from error
