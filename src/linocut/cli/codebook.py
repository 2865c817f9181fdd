"""`linocut codebook`: fixed codebooks, made, shown, and compared with adaptive ones."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linocut.cli.numbers import fraction

if TYPE_CHECKING:
    from linocut.transform.modules import FixedCodebook

app = typer.Typer(no_args_is_help=True, help="Fixed codebooks: fit, show, compare with adaptive ones.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Figure = Annotated[Path | None, typer.Option(help="Draw a PNG, SVG or PDF file.")]


@app.command()
def fit(
    name: Annotated[str, typer.Argument(help="A data set: see `linocut data list`.")],
    out: Annotated[Path, typer.Option(help="The JSON file to write.")],
    root: Annotated[
        Path | None, typer.Option(help="The folder of data sets, else LINOCUT_DATA; digits needs none.")
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
    from linocut.recipes import figures
    from linocut.recipes.codebook import fit_on

    figures.check(figure)
    figures.keep_off(figure, [out])
    book = fit_on(name, root, image_size, k=k, r=r, builder=builder, sample=sample, seed=seed)
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
    figures.keep_off(figure, [file])
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
    found = file_plan.find(inputs)
    figures.keep_off(figure, found if codebook is None else [*found, codebook])
    if links := file_plan.unfollowed(inputs):
        typer.echo(file_plan.told_of(links), err=True)
    pictures = codebook_compare.Pictures.of(found)
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
    from linocut.recipes import figures
    from linocut.recipes.codebook import described

    told = described(book, path)
    if figure is not None:
        from linocut.recipes.codebook_figures import palette_figure

        figures.save_figure(palette_figure(book, told.title), figure)
    if as_json:
        record = {"file": str(path), "colors": told.colors, "origin": told.origin}
        typer.echo(json.dumps({**record, "smallest_separation": told.smallest_separation}, indent=1))
    else:
        from linocut.cli.tables_codebook import print_codebook

        print_codebook(told, path)
