"""Writes the page and the tables of some ledgers."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from linocut.errors import InputError
from linocut.files import write_whole

PAGE = "report.html"


def write(folders: Sequence[Path], out: Path, *, title: str | None = None) -> Path:
    """The path of `out/report.html`, one self-contained page; tables.md, tables.tex and tables.csv lie beside it.

    A folder is a ledger as `linocut evaluate` writes it, or holds several; their order is the order of rows.
    """
    if not folders:
        raise InputError("wanted the folder of at least one ledger, got none")
    require_jinja()
    from linocut.report import tables  # here, so that the paper's rows can be had without Jinja
    from linocut.report.judged import together
    from linocut.report.page import render
    from linocut.report.sources import read_all

    subjects = read_all(folders)
    models = together(subjects)
    texts = {
        PAGE: render(subjects, models, title),
        "tables.md": tables.as_markdown(models),
        "tables.tex": tables.as_latex(models),
        "tables.csv": tables.as_csv(models),
    }
    for name, text in texts.items():
        write_whole(out / name, text.encode())
    return out / PAGE


def require_jinja() -> None:
    """Nothing, or an error where the page could not be written for want of a package."""
    if importlib.util.find_spec("jinja2") is None:
        raise InputError("a report needs Jinja: pip install 'linocut[report]'")
