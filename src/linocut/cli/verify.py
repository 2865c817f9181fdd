"""`linocut verify`: replays the kept adversarial images of a ledger."""

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer


def verify(
    ledger: Annotated[Path, typer.Argument(help="the folder that `linocut evaluate` wrote, packed or not")],
    model: Annotated[
        str | None, typer.Option(help="the model, where it is no longer at the place in the ledger")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 ...")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Confirm every claim of a ledger with the model alone; exit 1 if one fails.

    Claims are clean predictions and adversarial images. Losses, measurements and what rounding does to an image are
    not replayed. A claim that comes out otherwise by no more than machines differ in rounding is told, but is no
    failure.
    """
    from linocut.evaluation.verify import replay

    with redirect_stdout(sys.stderr):  # for what a stranger's model prints
        outcome = replay(ledger, model, device)
    if as_json:
        typer.echo(json.dumps(outcome.as_json()))
    else:
        for failure in outcome.failures:
            typer.echo(failure)
        for told in outcome.close:
            typer.echo(f"{told}, by less than machines' rounding differs")
        more = f"; {outcome.left_out} more are of images that were not packed" if outcome.left_out else ""
        close = f", {len(outcome.close)} too close to call" if outcome.close else ""
        if outcome.close or outcome.failures:
            close += f", {len(outcome.failures) or 'none'} refuted"
        end = "; the run is not finished" if outcome.unfinished else ""
        typer.echo(f"{outcome.confirmed} of {outcome.claims} claims confirmed{close} in {ledger}{more}{end}")
    if outcome.failures:
        raise typer.Exit(1)
