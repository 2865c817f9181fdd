"""`linocut models`: what networks there are, and how to bring in weights from elsewhere."""

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="The networks by name, and weights from elsewhere.")


@app.command("list")
def list_networks(
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Print every architecture with its number of parameters, for 10 classes."""
    from linocut.models import NETWORKS, Architecture

    sizes = {}
    for name in NETWORKS:
        outline = Architecture(name=name, in_channels=1 if name == "madry-net" else 3).outline()
        sizes[name] = sum(parameter.numel() for parameter in outline.parameters())
    if as_json:
        typer.echo(json.dumps(sizes))
        return
    for name, size in sizes.items():
        typer.echo(f"{name:18} {size:>12,} parameters")


@app.command("import")
def import_weights(
    file: Annotated[Path, typer.Argument(help="a .pt or .pth file that holds a state dict")],
    architecture: Annotated[str, typer.Option(help="its network: see `linocut models list`")],
    out: Annotated[Path, typer.Option(help="the folder to write")],
    num_classes: Annotated[int, typer.Option(help="classes of the network")] = 10,
    in_channels: Annotated[int, typer.Option(help="channels of its input")] = 3,
    data_set: Annotated[str | None, typer.Option(help="what it was trained on, for the card")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Turn somebody else's .pt file into a folder that linocut loads; code inside it is never run."""
    from linocut.files import sha256_of
    from linocut.models import Architecture, Card, save
    from linocut.models.foreign import read_pt

    named = Architecture(name=architecture, num_classes=num_classes, in_channels=in_channels)
    defended = read_pt(file, named)
    origin = {"imported": file.name, "sha256": sha256_of(file)}
    save(out, defended, Card(architecture=named, data_set=data_set, recipe=origin))
    typer.echo(json.dumps({"folder": str(out), **origin}) if as_json else f"wrote {out}")
