"""`linocut publish`: a reproduction made small enough for a repository, and verified."""

import json
from pathlib import Path
from typing import Annotated

import typer


def publish(
    out: Annotated[
        Path,
        typer.Argument(
            help="the folder of `linocut reproduce`, finished or not; or results that were published elsewhere"
        ),
    ],
    results: Annotated[Path, typer.Argument(help="the folder to publish into; again to add what is finished since")],
    images: Annotated[int, typer.Option(help="so many examples keep their images; rows are kept of all")] = 500,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 ...")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Verify the finished ledgers of a reproduction and pack them, small, beside their models, overview and report.

    Results that were published elsewhere are added as they are. Exit 1 if a claim was not confirmed; what failed is
    written down in verification.json.
    """
    from linocut.evaluation.request import device_of
    from linocut.recipes.publish import catalogue
    from linocut.recipes.publish.joining import join
    from linocut.recipes.publish.lock import alone_in
    from linocut.recipes.publish.publication import publish as carry_out

    tell = (lambda text: None) if as_json else (lambda text: typer.echo(text, err=True))
    with alone_in(results):
        if (out / catalogue.NAME).exists():
            done = join(out, results, tell=tell)
        else:
            done = carry_out(out, results, images=images, device=device_of(device), tell=tell)
    if as_json:
        typer.echo(json.dumps(done.as_json()))
    else:
        for ledger, told in done.verified.items():
            typer.echo(f"{ledger}: {told}")
        for place in done.joined:
            typer.echo(f"{place}: added")
        for place in done.unchanged:
            typer.echo(f"{place}: unchanged")
        for place in done.open:
            typer.echo(f"{place}: not finished")
        typer.echo(f"{done.bytes / 1e6:.1f} MB in {results}; check a ledger with: linocut verify LEDGER")
    if done.failures:
        raise typer.Exit(1)
