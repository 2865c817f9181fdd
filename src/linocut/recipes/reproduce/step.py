"""What every step of a plan can be asked, and where all of them work."""

import hashlib
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from linocut.recipes.reproduce.shelf import Shelf

Watch = Callable[[float, str], None]  # the share of the step that is done, and a few words


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """The folder of a reproduction (absolute), its data, and the device it computes on.

    published: results whose networks are taken over where they are what a training would make.
    """

    out: Path
    shelf: Shelf
    device: torch.device
    published: Path | None = None


class Step(ABC):
    """One thing to make. It is done when its stamp agrees with its inputs and with what lies there."""

    def __init__(self, name: str, title: str, needs: Sequence["Step"] = ()):
        self.name, self.title, self.needs = name, title, tuple(needs)

    @abstractmethod
    def inputs(self, shop: Workshop) -> dict[str, Any]:
        """Everything that decides the outcome, but for what the needed steps made; JSON can hold it."""

    def wish(self) -> dict[str, Any]:
        """What of the inputs was asked for: it needs no data, and processes that share a folder must agree on it."""
        return {}

    @abstractmethod
    def pieces(self, shop: Workshop) -> list[Path]:
        """The files and folders that are the outcome."""

    @abstractmethod
    def run(self, shop: Workshop, watch: Watch) -> None:
        """Make it, going on with what lies there."""

    def leavings(self, shop: Workshop) -> list[Path]:
        """What else lies about while the step is under way, or stays behind."""
        return []

    def can_go_on(self, shop: Workshop) -> bool:
        """Whether what a stopped run left can be trusted to be gone on with."""
        return False

    def scaffolding(self, shop: Workshop) -> list[Path]:
        """What of the leavings is of no use once the step is done."""
        return []


def remove(paths: Iterable[Path]) -> None:
    """Remove files and folders, those that are there."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def digest(content: Any) -> str:
    """The SHA-256 of anything JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
