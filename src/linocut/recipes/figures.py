"""Figures for papers: made without a window, written as PNG, SVG or PDF."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from linocut.errors import InputError
from linocut.files import whole_file

ENDINGS = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
_UNDATED = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same figure gives the same file


def check(path: Path | None) -> None:
    """Nothing, or an InputError where no such figure can be drawn here: asked first, before the work it would show."""
    if path is not None:
        _format_of(path)
        _figure_class()


def keep_off(path: Path | None, others: Iterable[Path]) -> None:
    """Nothing, or an InputError where the figure would take the place of a file that is read or written besides."""
    if path is None:
        return
    place = _place(path)
    for other in others:
        if _place(other) == place:
            raise InputError(f"--figure {path} would be written over {other}: give the figure a name of its own")


def _place(path: Path) -> str:
    return str(path.resolve()).casefold()  # some disks take names that differ only in case for one


def new_figure(width: float, height: float) -> Any:
    """An empty figure, without any window or global state."""
    return _figure_class()(figsize=(width, height), layout="constrained", dpi=150)


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("figures need matplotlib: pip install 'linocut[report]'") from None
    return Figure


def _format_of(path: Path) -> str:
    """The format that a figure's name asks for."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: a figure's name ends in {', '.join(ENDINGS)}")
    return ENDINGS[path.suffix.lower()]


def save_figure(figure: Any, path: Path) -> None:
    """Write the figure, whole or not at all, in the format that its name asks for; text stays text in SVG and PDF."""
    kind = _format_of(path)
    from matplotlib import rc_context

    alike = rc_context({"svg.fonttype": "none", "svg.hashsalt": "linocut", "pdf.fonttype": 42})
    with whole_file(path.resolve()) as unfinished, alike:
        figure.savefig(unfinished, format=kind, metadata=_UNDATED[kind])
