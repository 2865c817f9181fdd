"""`linocut train`: a recipe, the data, a folder; then a model with its card."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from linocut.training.loop import Progress


def train(
    recipe: Annotated[
        str,
        typer.Option(help="smoke, or for example cifar-10/acab-retrained, see --list; or the config.json of a run"),
    ] = "smoke",
    assign: Annotated[list[str] | None, typer.Option("--set", help="field=value, as often as needed")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", "--root", envvar="LINOCUT_DATA", help="the folder that holds the data sets")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="the folder of the run")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto")] = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out, if there is one")] = False,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="steps between checkpoints; if left out one an epoch, at most 3 % of the time")
    ] = None,
    list_recipes: Annotated[bool, typer.Option("--list", help="print the recipes and end")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON, and no progress bar")] = False,
) -> None:
    """Train a network. SIGTERM or Ctrl-C lets the step finish, saves, and ends with status 143 or 130."""
    from linocut.recipes import training as recipes

    if list_recipes:
        names = recipes.names()
        typer.echo(json.dumps(names) if as_json else "\n".join(names))
        return
    if out is None:
        raise typer.BadParameter("needed: the folder of the run", param_hint="--out")
    from linocut.data import load
    from linocut.training import train as run
    from linocut.training.world import is_first_process, leave_world, local_device

    config = recipes.recipe(recipe).with_settings(assign or [])
    images, test_images = (load(config.data_set, data, split, config.image_size) for split in ("train", "test"))
    with _progress_bar(hidden=as_json or not is_first_process()) as watch:
        outcome = run(
            config,
            images,
            out,
            test_images=test_images,
            device=local_device(device),
            resume=resume,
            checkpoint_every=checkpoint_every,
            watch=watch,
        )
    leave_world()
    if outcome.signal is not None:
        typer.echo(f"stopped after step {outcome.step}, which is saved: go on with --resume", err=True)
        raise typer.Exit(128 + outcome.signal)
    if not is_first_process():
        return
    if as_json:
        typer.echo(json.dumps({"out": str(out), "step": outcome.step, "metrics": outcome.metrics}))
    else:
        typer.echo(f"{out / 'model'}: {json.dumps(outcome.metrics)}")


@contextmanager
def _progress_bar(*, hidden: bool) -> Iterator[Callable[["Progress"], None]]:
    from rich import progress as bars

    columns = (
        bars.TextColumn("epoch {task.fields[epoch]}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn(
            "loss {task.fields[loss]:.3f}  robust {task.fields[robust]:.1%}  {task.fields[rate]:.0f} images/s"
        ),
        bars.TimeRemainingColumn(),
    )
    bar = bars.Progress(*columns, disable=hidden)
    task = bar.add_task("", total=None, epoch=0, loss=0.0, robust=0.0, rate=0.0)
    try:

        def watch(now: "Progress") -> None:
            bar.start()  # not before there is something to show: what is refused is told in one line
            bar.update(
                task,
                completed=now.step,
                total=now.total_steps,
                epoch=now.epoch,
                loss=now.loss,
                robust=now.robust_accuracy,
                rate=now.images_per_second,
            )

        yield watch
    finally:
        bar.stop()
