"""`linocut demo`: a page that shows the transform step by step."""

import json
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="the folder to write the page to")],
    open_page: Annotated[bool, typer.Option("--open", help="open the page in a browser")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Write one self-contained page: what the transform does to two photographs, and what it does not promise."""
    from linocut.recipes.demo import write_demo

    start = time.monotonic()
    page = write_demo(out).resolve()
    took = time.monotonic() - start
    if as_json:
        typer.echo(json.dumps({"page": str(page), "seconds": round(took, 2)}))
    else:
        typer.echo(f"The page is {page} ({took:.0f} s); open it in a browser.")
    if open_page:
        webbrowser.open(page.as_uri())
