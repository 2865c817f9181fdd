"""What `linocut codebook` prints."""

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from linocut.recipes.codebook import Description
from linocut.recipes.codebook_compare import Mean, Measure, curve

MOST_PICTURES = 12
MOST_CODES = 10
SHOWN = (8, 64)  # of the fixed sizes, beside the largest


def print_codebook(told: Description, path: Path) -> None:
    """A line about the whole, where it comes from, and a line for each of the first codes."""
    count, least = len(told.colors), told.smallest_separation
    apart = f", no two closer than {least:.0f} levels" if least is not None else ""
    typer.echo(f"{told.title}, {count} code{'s' * (count > 1)}{apart}. {path}")
    origin = told.origin
    if origin.get("sha256"):
        images, split = origin.get("images", "an unknown number of"), origin.get("split") or "split unknown"
        typer.echo(f"fitted on {images} images, {split}, {origin['sha256']}")
    for color, held, gap in list(zip(told.colors, told.shares, told.separations, strict=True))[:MOST_CODES]:
        share = f"{held:6.2f} % of the pixels" if held is not None else ""
        nearest = f"nearest other {gap:.0f} levels away" if count > 1 else ""
        typer.echo(f"  {' '.join(f'{v:3d}' for v in color)}  {share}  {nearest}".rstrip())
    if count > MOST_CODES:
        typer.echo(f"  and {count - MOST_CODES} more: --json lists them all")


def print_comparison(measures: Sequence[Measure], eps: float, *, fitted_here: bool) -> None:
    """Some rows a picture, one for each codebook, and the means of all pictures."""
    console = Console()
    largest = max(m.setting for m in measures if m.kind == "fixed")
    wanted = [("adaptive", 255 * eps), *(("fixed", k) for k in sorted({*(k for k in SHOWN if k < largest), largest}))]
    table = Table("picture", "codebook")
    for title in ("colours", "RMSE", "smallest distance", "movable"):
        table.add_column(title, justify="right")
    found = {(m.picture, m.kind, m.setting): m for m in measures}
    pictures = list(dict.fromkeys(m.picture for m in measures))
    for picture in pictures[:MOST_PICTURES]:
        for i, column in enumerate(wanted):
            name = "" if i else escape(Path(picture).name)
            table.add_row(name, *_row(*column, found[picture, *column]), end_section=i == len(wanted) - 1)
    for i, (kind, setting) in enumerate(wanted):
        mean = next(row for row in curve(measures, kind) if row.setting == setting)
        table.add_row("" if i else f"mean of {len(pictures)}", *_row(kind, setting, mean))
    console.print(table)
    if len(pictures) > MOST_PICTURES:
        console.print(f"and {len(pictures) - MOST_PICTURES} more pictures: --json lists them all")
    console.print(
        f"RMSE and distance (L-infinity) in levels; movable: pixels that {255 * eps:g} levels send to another colour."
    )
    if fitted_here:
        console.print("The fixed codebook was fitted on these very pictures: its best case.")


def _row(kind: str, setting: float, m: Measure | Mean) -> tuple[str, ...]:
    codebook = f"{kind} {'eps' if kind == 'adaptive' else 'k'} {setting:g}"
    apart = "-" if m.separation is None else f"{m.separation:.1f}"
    return codebook, f"{m.num_colors:.4g}", f"{m.rmse:.1f}", apart, f"{100 * m.movable:.0f} %"
