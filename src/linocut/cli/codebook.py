"""`linocut codebook`: fixed codebooks, made, shown, and compared with adaptive ones."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linocut.cli.numbers import fraction

if TYPE_CHECKING:
    from linocut.transform.modules import FixedCodebook

app = typer.Typer(no_args_is_help=True, help="Fixed codebooks: fit, show, compare with adaptive ones.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Figure = Annotated[Path | None, typer.Option(help="Draw a PNG, SVG or PDF file.")]
MOST_LISTED = 10


@app.command()
def fit(
    name: Annotated[str, typer.Argument(help="A data set: see `linocut data list`.")],
    out: Annotated[Path, typer.Option(help="The JSON file to write.")],
    root: Annotated[
        Path | None, typer.Option(envvar="LINOCUT_DATA", help="The folder that holds its files; digits needs none.")
    ] = None,
    k: Annotated[int | None, typer.Option(help="How many codes; the paper's number for this set if left out.")] = None,
    r: Annotated[float | None, typer.Option(help="No two codes within this L-infinity distance, in levels.")] = None,
    builder: Annotated[str, typer.Option(help="density, or medoids (k-medoids in L1 on a sample).")] = "density",
    sample: Annotated[int, typer.Option(help="Pixels that medoids draws.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Chooses the sample of medoids.")] = 0,
    image_size: Annotated[int | None, typer.Option(help="The side to resize pictures to.")] = None,
    figure: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Make a codebook of the training images of a data set. Test images are never seen."""
    from linocut.data import load
    from linocut.recipes import figures
    from linocut.transform.modules import FixedCodebook
    from linocut.transform.presets import FIXED

    figures.check(figure)
    usual = FIXED.get({"digits": "mnist"}.get(name, name), FIXED["cifar-10"])
    images = load(name, root, "train", image_size)
    size, radius = usual["k"] if k is None else k, usual["r"] if r is None else r
    book = FixedCodebook.fit(images, size, radius, builder=builder, sample=sample, seed=seed)
    book.save(out)
    _tell(book, out, figure, as_json)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A codebook that `linocut codebook fit` wrote.")],
    figure: Figure = None,
    as_json: AsJson = False,
) -> None:
    """The codes of a file, how much of the data each paints, and how far apart they are."""
    from linocut.recipes import figures
    from linocut.transform.modules import FixedCodebook

    figures.check(figure)
    _tell(FixedCodebook.load(file), file, figure, as_json)


@app.command()
def compare(
    inputs: Annotated[list[str], typer.Argument(help="Picture files, folders (with all below them) or patterns.")],
    codebook: Annotated[
        Path | None, typer.Option(help="A fixed codebook; left out, one is fitted on these very pictures.")
    ] = None,
    r: Annotated[float, typer.Option(help="The r of the codebook that is fitted, in levels.")] = 16,
    eps: Annotated[
        float, typer.Option(parser=fraction, metavar="NUMBER", help="Radius of the adaptive one in the table.")
    ] = 8 / 255,
    figure: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Fixed against adaptive on your own pictures: error, colours used, smallest separation of two of them.

    Files that cannot be read are left out and named; the exit status is then 1.
    """
    from linocut.recipes import codebook_compare, figures, file_plan
    from linocut.transform.modules import FixedCodebook

    figures.check(figure)
    pictures = codebook_compare.Pictures.of(file_plan.find(inputs))
    for reason in pictures.left_out:
        typer.echo(f"left out: {file_plan.as_one_line(reason)}", err=True)
    book = FixedCodebook.load(codebook) if codebook else codebook_compare.own_codebook(pictures, r)
    measures = list(codebook_compare.compare(pictures, book, eps))
    if figure is not None:
        from linocut.recipes.codebook_figures import tradeoff_figure

        figures.save_figure(tradeoff_figure(measures, eps, book), figure)
    if as_json:
        typer.echo(json.dumps([asdict(measure) for measure in measures], indent=1))
    else:
        from linocut.cli.tables_codebook import print_comparison

        print_comparison(measures, eps, fitted_here=codebook is None)
    if pictures.left_out:
        raise typer.Exit(1)


def _tell(book: "FixedCodebook", path: Path, figure: Path | None, as_json: bool) -> None:
    import numpy as np

    from linocut.transform.fixed import separations

    settings = book.settings()
    colors, origin = settings["colors"], settings["origin"] or {}
    apart = separations(np.array(colors))
    title = f"{origin.get('data') or path.name}: {origin.get('builder', 'given')} codebook"
    if figure is not None:
        from linocut.recipes.codebook_figures import palette_figure
        from linocut.recipes.figures import save_figure

        save_figure(palette_figure(book, title), figure)
    if as_json:
        least: dict[str, Any] = {"smallest_separation": float(apart.min()) if len(colors) > 1 else None}
        typer.echo(json.dumps({"file": str(path), "colors": colors, "origin": origin} | least, indent=1))
        return
    told = f", no two closer than {apart.min():.0f} levels" if len(colors) > 1 else ""
    typer.echo(f"{title}, {len(colors)} code{'s' * (len(colors) > 1)}{told}. {path}")
    if origin.get("sha256"):
        count, split = origin.get("images", "an unknown number of"), origin.get("split") or "split unknown"
        typer.echo(f"fitted on {count} images, {split}, {origin['sha256']}")
    population = origin.get("population") or [None] * len(colors)
    total = sum(held or 0 for held in population)
    for color, held, gap in list(zip(colors, population, apart, strict=True))[:MOST_LISTED]:
        share = f"{100 * held / total:6.2f} % of the pixels" if held is not None and total else ""
        nearest = f"nearest other {gap:.0f} levels away" if len(colors) > 1 else ""
        typer.echo(f"  {' '.join(f'{v:3d}' for v in color)}  {share}  {nearest}".rstrip())
    if len(colors) > MOST_LISTED:
        typer.echo(f"  and {len(colors) - MOST_LISTED} more: --json lists them all")
