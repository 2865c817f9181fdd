"""`linocut demo`: four networks on digits, trained, attacked and reported in three minutes."""

import json
import os
import sys
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from linocut.cli.stopping import stops


def demo(
    out: Annotated[Path, typer.Option(help="the folder to write to; run again to go on")] = Path("linocut-demo"),
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="open the page where there is a display")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, and nothing else, on standard output")] = False,
) -> None:
    """Train four small networks on digits, attack them, and show what held: three minutes on two cores.

    It is `linocut reproduce` with a plan of its own: it can be stopped and gone on with in the same way.
    """
    from linocut.cli.reproduce import finish
    from linocut.recipes.demo import prepare_demo, what_was_cut, write_page

    start = time.monotonic()
    if not as_json:
        typer.echo("Four networks on digits: natural training, ATTA, ATTA + fixed codebook, ATTA + AC+AB.", err=True)
        typer.echo("Each is trained, then attacked by two suites. Timing this machine ...", err=True)
    with stops(None):
        reproduction = prepare_demo(out, timed=not as_json)
        record = finish(reproduction, as_json=as_json)
        page = write_page(reproduction)
    took = time.monotonic() - start
    if as_json:
        typer.echo(
            json.dumps(record | {"page": str(page), "seconds": round(took, 1), "cut": what_was_cut(reproduction)})
        )
    else:
        for told in what_was_cut(reproduction):
            typer.echo(f"Cut: {told}")
        typer.echo(f"The page is {page} ({took:.0f} s).")
    if open_page and has_display():
        webbrowser.open(page.as_uri())


def has_display() -> bool:
    """Whether a browser could show itself here."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
