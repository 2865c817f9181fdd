"""`linocut reproduce`: the paper's tables from data to report, stopped and gone on with at will."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linocut.cli.numbers import whole_numbers
from linocut.cli.stopping import stops

if TYPE_CHECKING:
    from linocut.recipes.reproduce.reproduction import Reproduction


def reproduce(
    out: Annotated[Path, typer.Option(help="the folder of the reproduction; run again to go on")],
    dataset: Annotated[
        str | None,
        typer.Option(help="mnist, fashion-mnist, cifar-10, gtsrb, resisc45, imagenette, digits; else all six"),
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(help="a row, such as acab-retrained or acab-retrained@order=bins; as often as needed"),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(help="main (the default), modes, ablation, retrained, pretrained, natural, square or decisions"),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="paper: its recipes; large: quicker ones; small: with smaller networks too; slow: small networks, "
            "the paper's recipes; smoke: tests the code"
        ),
    ] = "small",
    image_size: Annotated[
        int | None,
        typer.Option(min=1, help="side of RESISC45's and Imagenette's pictures; else the scale's (64 or the paper's)"),
    ] = None,
    assign: Annotated[
        list[str] | None, typer.Option("--set", help="field=value of every training, twins too; as often as needed")
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(help="results of `linocut publish`: a network that lies there is taken over, not trained again"),
    ] = None,
    root: Annotated[Path | None, typer.Option(help="the folder of data sets; else LINOCUT_DATA")] = None,
    seed: Annotated[int, typer.Option(help="of the training")] = 0,
    seeds: Annotated[str | None, typer.Option(help="several, such as 0,1,2: mean and spread in the overview")] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="stop after so long, saving, with exit status 75")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="print the plan; only the timing runs")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, and nothing else, on standard output")] = False,
) -> None:
    """Fit codebooks, train, judge and report what a table of the paper holds; first say what that will take.

    Whatever is done and unchanged is not done again; a changed setting, other data or a damaged file redoes its
    step and all that depend on it. Started several times for one folder, the processes share the steps. Exit
    status 75: the minutes are over; 130, 143: stopped by a signal. In each case what was made is kept, and the same
    command goes on.
    """
    from linocut.cli.reproduce_tables import print_plan
    from linocut.recipes.reproduce.reproduction import prepare
    from linocut.recipes.reproduce.scales import scale_named
    from linocut.recipes.reproduce.tables import chosen
    from linocut.training.world import local_device

    rows = chosen(dataset, row or (), table, assign or ())
    chosen_scale = scale_named(scale, image_size)
    with stops(minutes, saving=not dry_run):
        if not as_json:
            typer.echo("Timing a few steps of each network that was not timed here before ...", err=True)
        reproduction = prepare(
            rows,
            scale=chosen_scale,
            seeds=sorted(set(whole_numbers(seeds))) if seeds is not None else [seed],
            out=out,
            root=root,
            device=local_device(device),
            published=published,
            title=f"{', '.join(dict.fromkeys(name for name, _ in rows))}, scale {scale}",
            timed=dry_run or not as_json,  # else nobody is shown the plan
            tell=(lambda text: None) if as_json else partial(typer.echo, err=True),
        )
        if not as_json:
            print_plan(reproduction)
        if dry_run:
            if not as_json:
                typer.echo("The command may be started several times, also on several GPUs: they share the work.")
            else:
                typer.echo(json.dumps(as_record(reproduction), indent=1))
            return
        record = finish(reproduction, as_json=as_json)
        if as_json:
            typer.echo(json.dumps(record, indent=1))


def finish(reproduction: "Reproduction", *, as_json: bool) -> dict[str, Any]:
    """Carry out the reproduction, show how it gets on, and print what came out; the record of it."""
    from linocut.cli.reproduce_tables import Narrator, print_outcome
    from linocut.recipes.reproduce import overview, verdict

    with Narrator(reproduction, shown=not as_json) as narrator:
        reproduction.carry_out(narrator)
    report = reproduction.report
    records = report.records(reproduction.shop)
    lines, told = overview.lines(report.works, records), verdict.sentences(report.works, records)
    page = reproduction.shop.out / "report" / "report.html"
    if not as_json:
        print_outcome(lines, told, report.notes, page)
    return {"report": str(page), "overview": str(reproduction.shop.out / "overview.md"), "verdict": told}


def as_record(reproduction: "Reproduction") -> dict[str, Any]:
    """The plan as JSON."""
    steps = [
        {"name": step.name, "title": step.title, "needs": [need.name for need in step.needs]}
        | {"state": reproduction.states[step.name].value}
        | reproduction.estimates[step.name]
        for step in reproduction.plan.steps
    ]
    notes = reproduction.report.notes
    return {"out": str(reproduction.shop.out), "device": str(reproduction.shop.device), "notes": notes, "steps": steps}
