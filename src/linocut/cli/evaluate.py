"""`linocut evaluate`: how a model stands against a suite of attacks, with findings."""

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from linocut.cli.numbers import fraction


def evaluate(
    model: Annotated[str, typer.Argument(help="a saved model, or module:function that returns one")],
    data: Annotated[str, typer.Option(help="the data set by name")],
    out: Annotated[Path, typer.Option(help="the ledger's folder; run again to go on")],
    suite: Annotated[
        str,
        typer.Option(help="fast, paper, alternatives, strong, full; names of attacks with commas; or module:function"),
    ] = "strong",
    attack: Annotated[
        str | None,
        typer.Option(help="more after the suite: autoattack, names of attacks with commas, or module:function"),
    ] = None,
    norm: Annotated[str, typer.Option(help="linf, l2 or both")] = "both",
    # -n too, because torchrun takes --n for a beginning of its own --nproc-per-node.
    n: Annotated[
        int | None, typer.Option("--n", "-n", help="so many examples, a fixed random choice; all if left out")
    ] = None,
    eps: Annotated[
        float | None,
        typer.Option(
            parser=fraction,
            metavar="NUMBER",
            help="the radius, such as 8/255 (L-inf with both norms); the set's own",
        ),
    ] = None,
    preprocess: Annotated[
        str | None,
        typer.Option(help="module:function put before the model; without a gradient it passes straight"),
    ] = None,
    twin: Annotated[str | None, typer.Option(help="the undefended model, whose images are tried too")] = None,
    root: Annotated[Path | None, typer.Option(help="the folder of data sets; else LINOCUT_DATA")] = None,
    split: Annotated[str, typer.Option(help="test or train")] = "test",
    image_size: Annotated[int | None, typer.Option(help="the side to resize to, where files do not fix it")] = None,
    batch_size: Annotated[int | None, typer.Option(help="100 on a CPU, 500 on a GPU")] = None,
    seed: Annotated[int, typer.Option(help="chooses the examples and all randomness")] = 0,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 ...")] = None,
    precision: Annotated[
        str, typer.Option(help="float32, or bfloat16: search quickly, then check every find in float32")
    ] = "float32",
    compiled: Annotated[
        bool, typer.Option("--compile", help="search on a compiled copy: minutes to make, then quicker; best on a GPU")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="exit 1 if any finding fails")] = False,
) -> None:
    """Judge a model: clean accuracy, as published, worst case, and fifteen findings. Exit 1 only with --strict.

    Several processes share the work: torchrun --nproc-per-node 2 -m linocut evaluate ... (there, write -n for --n).
    """
    from linocut.cli.tables_evaluation import print_record
    from linocut.evaluation import summary
    from linocut.evaluation.findings import find
    from linocut.evaluation.progress import Progress
    from linocut.evaluation.request import Request, carry_out
    from linocut.evaluation.workers import joined

    request = Request(
        model=model,
        data=data,
        out=out,
        suite=suite,
        attack=attack,
        norm=norm,  # type: ignore[arg-type]
        n=n,
        eps=eps,
        preprocess=preprocess,
        twin=twin,
        root=root,
        split=split,
        image_size=image_size,
        batch_size=batch_size,
        seed=seed,
        device=device,
        precision=precision,  # type: ignore[arg-type]
        compile=compiled,
    )
    with (
        joined() as workers,
        Progress(shown=workers.rank == 0 and not as_json) as progress,
        redirect_stdout(sys.stderr),  # for what a stranger's model prints
    ):
        record = carry_out(request, progress.watch, workers)
    findings = find(record)
    if workers.rank == 0:
        if as_json:
            typer.echo(json.dumps(summary.as_json(record, findings, out)))
        else:
            print_record(record, findings, out)
    if strict and summary.failed(findings):
        raise typer.Exit(1)
