"""What a ledger was made with, written beside it; a changed setting is refused by its name."""

import hashlib
import json
import math
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

import linocut
from linocut.errors import InputError
from linocut.files import write_whole
from linocut.models.devices import name_of

NAME = "header.json"
Kinds = tuple[type, ...]  # what a value may be
OF_ENTRY: dict[str, Kinds] = {
    "norm": (str, type(None)),
    "eps": (int, float, type(None)),
    "column": (str,),
    "kind": (str,),
    "limit": (int, type(None)),
    "config": (str,),
}
COUNTS = ("size", "n", "batch_size", "draws", "dimensions")  # at least 1, where they are there
IN_MEMORY = " in memory"  # how the name of a model ends that was handed over in Python and lies at no place


def make(
    settings: dict[str, Any],
    entries: dict[str, dict[str, Any]],
    card: dict[str, Any] | None = None,
    repeat: Sequence[str] | None = None,
    *,
    device: torch.device,
    answers: list[list[float]] | None = None,
) -> dict[str, Any]:
    """The header: `settings` and `entries` bind the rows, `made_with` (the model's card among it) informs.

    device: where the run computes. answers: the model's logits of the first few images, as a fingerprint.
    """
    made_with = {
        "date": now(),
        "linocut": linocut.__version__,
        "source": source(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": name_of(device),
        "command": sys.argv,
        "repeat": repeat,
        "card": card,
        "answers": answers,
    }
    # Through JSON and back, so that what is compared is what a file can hold (a tuple is a list there).
    return json.loads(json.dumps({"settings": settings, "entries": entries, "made_with": made_with}))


def settle(
    folder: Path, header: dict[str, Any], check: Callable[[dict[str, Any]], None] = lambda held: None
) -> dict[str, Any]:
    """The header that holds in this folder: written when new, checked field by field when there is one.

    A plan may grow at its end, since what was run before it does not change by that. check: what else may speak
    against going on from the held header; it comes before anything is written.
    """
    path = folder / NAME
    if path.exists():
        held = read(folder)
        first = dict(list(header["entries"].items())[: len(held["entries"])])
        grown = len(header["entries"]) > len(first) and list(first) == list(held["entries"])
        require_same(held, header | {"entries": first} if grown else header, folder)
        check(held)
        if not grown:
            return held
        header["made_with"]["answers"] = held["made_with"].get("answers")
    elif (orphans := [*folder.glob("rows.jsonl"), *folder.glob("parts/*.jsonl"), *folder.glob("images/natural")]) != []:
        raise InputError(
            f"{folder} holds {orphans[0].relative_to(folder)} of a ledger whose {NAME} is gone, so that nobody knows "
            "which model it judged: give another --out folder"
        )
    write_whole(path, json.dumps(header, indent=1).encode())
    return header


def require_same(held: dict[str, Any], wanted: dict[str, Any], folder: Path) -> None:
    """Nothing, or an error that names the first setting that differs."""
    for part in ("settings", "entries"):
        for field in sorted(set(held[part]) | set(wanted[part])):
            before, now = held[part].get(field), wanted[part].get(field)
            if before != now:
                raise InputError(
                    f"{folder} was made with {_difference(field, before, now)}: "
                    "repeat the old setting to go on, or give another --out folder"
                )


def read(folder: Path) -> dict[str, Any]:
    """The header of a ledger's folder."""
    try:
        held = json.loads((folder / NAME).read_text())
    except FileNotFoundError:
        below = sorted(path.parent for path in folder.glob(f"*/{NAME}"))
        told = f": name one of those below it, such as {below[0]}" if below else f" ({NAME} is not there)"
        raise InputError(f"{folder} holds no ledger{told}") from None
    except (ValueError, OSError) as reason:
        raise InputError(f"{folder / NAME} cannot be read: {reason}") from None
    if (
        not isinstance(held, dict)
        or not all(isinstance(held.get(part), dict) for part in ("settings", "entries", "made_with"))
        or "clean" not in held["entries"]
    ):
        raise InputError(f"{folder / NAME} is no header of a ledger, or is damaged")
    return held


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and number >= 1


def require_sound(header: dict[str, Any], folder: Path, kinds: Mapping[str, Kinds]) -> None:
    """Nothing, or an error that names a setting that is not of its kind, or radii or an entry that cannot be used."""
    settings = header["settings"]
    wrong = [f"settings have no sound {name}" for name in kinds if not isinstance(settings.get(name, ...), kinds[name])]
    wrong += [f"settings have no sound {name}" for name in COUNTS if not _is_count(settings.get(name, 1))]
    radii = settings.get("radii")
    if not isinstance(radii, dict) or not radii or not all(map(_is_radius, radii, radii.values())):
        wrong.append("settings have no sound radii")
    for name, entry in header["entries"].items():
        held = entry if isinstance(entry, dict) else {}
        wrong += [
            f"{name} has no sound {field}"
            for field in OF_ENTRY
            if not isinstance(held.get(field, ...), OF_ENTRY[field])
        ]
    if wrong:
        raise InputError(f"{folder / NAME} is damaged (its {wrong[0]}): restore it, or evaluate anew")


def require_open(folder: Path) -> None:
    """Nothing, or an error where the ledger in this folder is packed: what it left out cannot be gone on with."""
    if (folder / NAME).exists() and "packed" in (held := read(folder)):
        kept, of = held["packed"]["images"], held["packed"]["of"]
        raise InputError(
            f"{folder} is a packed ledger, which keeps the images of {kept} of {of} examples and cannot be gone on "
            "with: give another --out folder"
        )


def model_of(folder: Path, header: dict[str, Any]) -> str:
    """Where the model lies: in a packed ledger relative to its folder, else as it was named."""
    named = header["settings"]["model"]
    return str((folder / named).resolve()) if "packed" in header else named


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def source() -> str:
    """The SHA-256 of the package's own code, which names it where there is no version control."""
    root, digest = Path(linocut.__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _is_radius(norm: str, eps: object) -> bool:
    known = norm in ("linf", "l2")
    return known and isinstance(eps, int | float) and not isinstance(eps, bool) and 0 < eps < math.inf


def _difference(field: str, before: object, now: object) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        for inner in sorted(set(before) | set(now)):
            if before.get(inner) != now.get(inner):
                return _difference(f"{field}.{inner}", before.get(inner), now.get(inner))
    if isinstance(before, dict) or isinstance(now, dict):
        return f"{field}, which is not asked for now" if now is None else f"no {field}, which is asked for now"
    return f"{field} = {before!r}, not {now!r}"
