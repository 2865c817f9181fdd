"""Where a data set lies under the root a user gives, and what to say when it does not."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from linocut.errors import InputError


def find_folder(root: Path, name: str, folders: Sequence[str]) -> Path:
    """The first of these folders that exists under root; root itself where it bears such a name."""
    for folder in folders:
        if (root / folder).is_dir():
            return root / folder
        if bears(root, folder):
            return root
    raise missing(name, root / folders[0], root)


def bears(root: Path, folder: str) -> bool:
    """Whether root is a folder of this name; "MNIST/raw" is a name of two parts, and root may be a mere dot."""
    parts = Path(folder).parts
    return root.is_dir() and root.absolute().parts[-len(parts) :] == parts


def missing(name: str, wanted: Path, root: Path) -> InputError:
    """The error for a file or folder that is not there: which, where it belongs, what fetches it."""
    return InputError(
        f"{name}: {wanted} is missing. Unpack the official files under {root}, "
        f"or fetch them with: linocut data download {name} --root {shlex.quote(str(root))}"
    )


def damaged(path: Path, found: str, wanted: str) -> InputError:
    """The error for a file that is there but is not what its name says."""
    return InputError(f"{path}: found {found}, wanted {wanted}. Delete the file and fetch it again.")
