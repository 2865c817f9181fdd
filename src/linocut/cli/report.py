"""`linocut report`: one page and three tables from ledgers."""

import json
from pathlib import Path
from typing import Annotated

import typer


def report(
    ledgers: Annotated[list[Path], typer.Argument(help="folders that `linocut evaluate` wrote, or that hold such")],
    out: Annotated[Path, typer.Option(help="the folder to write report.html and tables.* to")],
    title: Annotated[str | None, typer.Option(help="the page's title; made of models and data if left out")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Write one self-contained page (and Markdown, LaTeX and CSV tables) from ledgers; no model runs."""
    from linocut.report import write

    page = write(ledgers, out, title=title).resolve()
    tables = [str(page.with_name(f"tables.{kind}")) for kind in ("md", "tex", "csv")]
    if as_json:
        typer.echo(json.dumps({"page": str(page), "tables": tables}))
    else:
        typer.echo(f"The page is {page}; open it in a browser. The tables lie beside it.")
