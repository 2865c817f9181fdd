"""`linocut theory`: the paper's theorems checked, with where they end."""

import json
from pathlib import Path
from typing import Annotated

import typer


def theory(
    data: Annotated[Path | None, typer.Option(help="folder that holds mnist/: also checks theorem 3 on it")] = None,
    figures: Annotated[Path | None, typer.Option(help="folder to draw the pictures into")] = None,
    results: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="what benchmarks/certified.py wrote, for the accuracy picture"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Check the three theorems on two-colour codebooks and show where they fail. Exit status 1 if one does not hold."""
    from linocut.theory import findings
    from linocut.theory.figures import check, draw, read_results

    if figures is not None:
        check(figures)
    measured = read_results(results) if results is not None else None
    found = [*findings.first_theorem(), *findings.second_theorem(), findings.certificate_limit()]
    digit = None
    if data is not None:
        from linocut.data import load

        train, test = (load("mnist", data, split) for split in ("train", "test"))
        arrays = [(part.pixels[:, 0].numpy(), part.labels.numpy()) for part in (train, test)]
        found += findings.third_theorem(arrays[0], arrays[1])
        digit = arrays[1][0][0]
    if as_json:
        typer.echo(json.dumps([finding.as_dict() for finding in found], indent=1))
    else:
        typer.echo("\n\n".join(findings.described(finding) for finding in found))
    if figures is not None:
        for path in draw(figures, digit, measured):
            typer.echo(f"wrote {path}", err=as_json)
    if not all(finding.holds for finding in found):
        raise typer.Exit(1)
