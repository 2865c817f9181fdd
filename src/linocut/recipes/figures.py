"""Figures for papers: made without a window, written as PNG, SVG or PDF."""

from pathlib import Path
from typing import Any

from linocut.errors import InputError

ENDINGS = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
_UNDATED = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same figure gives the same file


def check(path: Path | None) -> None:
    """Nothing, or an InputError where no such figure can be drawn here: asked first, before the work it would show."""
    if path is not None:
        _format_of(path)
        _figure_class()


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
    """Write the figure in the format that its name asks for; text stays text in SVG and PDF."""
    kind = _format_of(path)
    from matplotlib import rc_context

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "linocut", "pdf.fonttype": 42}):
            figure.savefig(path, format=kind, metadata=_UNDATED[kind])
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
