"""linocut data: what data sets there are, what a folder holds, preparing and fetching."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, help="Data sets: list, check, prepare, download.")

Root = Annotated[Path, typer.Option(help="The folder that holds the data sets' official folders.")]
Size = Annotated[int | None, typer.Option(help="The side to resize pictures to.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SPLITS = ("train", "test")


@app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """The data sets that can be loaded, and where those that can be downloaded come from."""
    from linocut.data.catalogue import ENTRIES
    from linocut.data.loading import NAMES

    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "train": entry.images[0],
            "test": entry.images[1],
            "classes": entry.num_classes,
            "bytes": sum(file.size for file in entry.files),
            "licence": entry.licence,
            "homepage": entry.homepage,
            "files": [{"url": f.url, "bytes": f.size, "sha256": f.sha256, "md5": f.md5} for f in entry.files],
        }
        for entry in ENTRIES.values()
    ]
    local = [name for name in NAMES if name not in ENTRIES]
    if as_json:
        typer.echo(json.dumps({"download": rows, "local": local}, indent=2))
        return
    for row in rows:
        counts = f"{row['train']:>6} + {row['test']:>5} images, {row['classes']:>2} classes"
        typer.echo(f"{row['name']:<16}{counts}, {row['bytes'] / 1e6:>6.0f} MB. {row['homepage']}")
        typer.echo(f"{'':<16}licence: {row['licence']}")
        if row["name"] not in NAMES:
            typer.echo(f"{'':<16}another size to download; load and prepare it under the name imagenette")
    typer.echo(f"without a download: {', '.join(local)}")


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="A folder of data sets, of class folders, or an .npz file.")],
    image_size: Size = None,
    as_json: AsJson = False,
) -> None:
    """Read every set in a folder, writing nothing: counts, shapes, hashes. Exit status 1 on damage, 2 on no folder."""
    from linocut.data import load, survey
    from linocut.errors import InputError

    if not folder.exists():
        raise InputError(f"{folder}: no such folder or file; name one that holds data sets or class folders")
    found: list[dict[str, Any]] = []
    for name in survey.present(folder):
        for split in SPLITS:
            try:
                with _bar(f"{name} {split}") as progress:
                    images = load(name, folder, split, image_size, cache=False, progress=progress)
                found.append(survey.summarise(images) | {"published": survey.published_files(name, folder)})
            except InputError as error:
                found.append({"name": name, "split": split, "error": str(error)})
    _print(found, as_json)
    if any("error" in row or not all(row["published"].values()) for row in found):
        raise typer.Exit(1)


@app.command()
def prepare(
    name: Annotated[str, typer.Argument(help="A data set: see `linocut data list`.")],
    root: Annotated[Path | None, typer.Option(help="The folder that holds its files; digits needs none.")] = None,
    image_size: Size = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where decoded images are kept; ROOT/.linocut-cache if not given.")
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="Write a PNG file of random samples with the names of their classes.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Chooses the samples, and the test images where nobody has.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Decode a data set once, so that every later run maps it."""
    from linocut.data import load, survey

    splits = []
    for split in SPLITS:
        with _bar(f"{name} {split}") as progress:
            splits.append(load(name, root, split, image_size, cache=cache or True, seed=seed, progress=progress))
    if sheet is not None:
        from linocut.recipes.sample_sheet import write_sheet

        write_sheet(sheet, splits[0], seed)
    _print([survey.summarise(images) for images in splits], as_json)


@app.command()
def download(
    name: Annotated[str, typer.Argument(help="A data set: see `linocut data list`.")],
    root: Root,
    as_json: AsJson = False,
) -> None:
    """Fetch a data set over https, check its published hash, and unpack it under ROOT."""
    from linocut.data.catalogue import entry
    from linocut.data.download import download as fetch_set

    chosen = entry(name)
    with _transfer() as progress:
        placed = fetch_set(chosen, root, progress)
    if as_json:
        typer.echo(json.dumps({"name": name, "files": [str(path) for path in placed]}, indent=2))
    else:
        typer.echo(f"{name}: {len(placed)} files under {root}. Licence: {chosen.licence}")


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        if "error" in row:
            typer.echo(f"{row['name']} {row['split']}: {row['error']}", err=True)
            continue
        whole = f" (the whole set: {row['whole']})" if row["whole"] not in (None, row["images"]) else ""
        shape = "x".join(str(n) for n in row["shape"])
        typer.echo(f"{row['name']} {row['split']}: {row['images']} images{whole} of {shape}")
        typer.echo(f"  sha256 {row['sha256']}")
        typer.echo("  " + ", ".join(f"{name}: {count}" for name, count in row["classes"].items()))
        for note in row["notes"]:
            typer.echo(f"  {note}")
        for file, whole in row.get("published", {}).items():
            if not whole:
                typer.echo(f"  {file} is not the published file", err=True)


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar over images, on standard error, that goes away when done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _transfer() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar over bytes, one line a file, with rate and time left."""
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}"), rich.BarColumn(), rich.DownloadColumn(),
        rich.TransferSpeedColumn(), rich.TimeRemainingColumn(),
    )  # fmt: skip
    console = Console(stderr=True)
    with rich.Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        tasks: dict[str, rich.TaskID] = {}

        def advance(file: str, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file, total=total)
            bar.update(tasks[file], completed=done)

        yield advance
