"""`linocut transform`: image files in, the same pictures in few colours out."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from linocut.cli.numbers import fraction, numbers, whole_numbers


def transform(
    inputs: Annotated[list[str], typer.Argument(help="files, folders (with all below them) or patterns")],
    out: Annotated[Path, typer.Option(help="the folder to write PNG files to")],
    preset: Annotated[
        str | None, typer.Option(help="mnist, fashion-mnist, cifar-10, gtsrb, resisc45 or imagenette")
    ] = None,
    image_size: Annotated[
        int | None, typer.Option(help="rescale the preset's kernels to images with this shorter side")
    ] = None,
    eps: Annotated[
        float | None, typer.Option(parser=fraction, metavar="NUMBER", help="attack radius, such as 8/255")
    ] = None,
    kernel_sizes: Annotated[str | None, typer.Option(help="blur widths, weakest edges first: 5,3,1")] = None,
    edge_thresholds: Annotated[str | None, typer.Option(help="edge responses between them: 20,40")] = None,
    bin_levels: Annotated[int | None, typer.Option(help="side of a colour bin, in levels")] = None,
    thumbnail_size: Annotated[int | None, typer.Option(help="side of the thumbnail the palette is found on")] = None,
    lloyd_steps: Annotated[int | None, typer.Option(help="k-means rounds")] = None,
    separation: Annotated[float | None, typer.Option(help="least distance of two colours, in eps")] = None,
    order: Annotated[str | None, typer.Option(help="population or bins: which colours are kept first")] = None,
    at_least_two: Annotated[
        bool | None, typer.Option("--at-least-two/--no-at-least-two", help="never paint in one colour if two exist")
    ] = None,
    backend: Annotated[str | None, typer.Option(help="auto, reference, torch, numba or triton")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 ...; a GPU where there is one")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="also draw, for each image, what each step did (in OUT/explained)")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(help="also draw the steps of the first 12 images as one PNG, SVG or PDF; of one, its pipeline"),
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="exit 0 although some files were left out")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, and nothing else, on standard output")] = False,
) -> None:
    """Reduce images to their essential features: blur what is no edge, paint with few colours.

    A file that cannot be read is left out, listed with the reason, and makes the exit status 1.
    Exit status 2: nothing was done (wrong settings, no inputs, a clash of names).
    """
    from linocut.cli.tables_transform import print_summary, progress
    from linocut.errors import InputError
    from linocut.recipes import device_choice, figures, file_plan, strip, transform_files
    from linocut.recipes.transform_summary import as_record, summarize
    from linocut.transform.kernels import dispatch
    from linocut.transform.modules import EssentialFeatures
    from linocut.transform.presets import preset_settings

    given: dict[str, Any] = {
        "eps": eps,
        "kernel_sizes": whole_numbers(kernel_sizes) if kernel_sizes is not None else None,
        "edge_thresholds": numbers(edge_thresholds) if edge_thresholds is not None else None,
        "bin_levels": bin_levels,
        "thumbnail_size": thumbnail_size,
        "lloyd_steps": lloyd_steps,
        "separation": separation,
        "order": order,
        "at_least_two": at_least_two,
        "backend": backend,
    }
    figures.check(figure)
    if image_size is not None and preset is None:
        raise InputError("--image-size rescales a preset's kernels: give --preset too")
    chosen = preset_settings(preset, image_size) if preset else {}
    features = EssentialFeatures(**{**chosen, **{key: value for key, value in given.items() if value is not None}})
    where = device_choice.choose(device)
    dispatch.backend(features.settings()["backend"], where)  # one that does not work here is refused before any file
    jobs = file_plan.plan(inputs, out, explain=explain)
    figures.keep_off(figure, (path for job in jobs for path in (job.source, job.target, job.panel) if path))
    read = {job.source.resolve() for job in jobs}
    others = [path for path in file_plan.passed_over(inputs) if path.resolve() not in read]
    links = file_plan.unfollowed(inputs)
    transform_files.prepare_folder(out)

    start = time.monotonic()
    outcomes = []
    try:
        with progress(len(jobs), shown=not as_json) as advance:
            for outcome in transform_files.transform_files(jobs, features, where):
                outcomes.append(outcome)
                advance()
        summary = summarize(outcomes, time.monotonic() - start)
        outcomes.sort(key=lambda outcome: outcome.job.source)
        sources = [outcome.job.source for outcome in outcomes if outcome.problem is None]
        if figure is not None and sources:
            found = strip.explained(sources[: strip.MOST_ROWS], features, where)
            figures.save_figure(strip.strip_figure(found, features.settings()), figure)
    except InputError as reason:
        typer.echo(f"linocut transform: stopped after {len(outcomes)} of {len(jobs)} files: {reason}", err=True)
        raise typer.Exit(1) from None
    if as_json:
        records = [as_record(outcome) for outcome in outcomes]
        typer.echo(
            json.dumps(
                {
                    "settings": features.settings(),
                    "device": str(where),
                    **summary,
                    "passed_over": len(others) + len(links),
                    "files": records,
                }
            )
        )
    else:
        print_summary(summary, outcomes, out)
        if others:
            endings = ", ".join(sorted({path.suffix or "none" for path in others}))
            told = "1 other file was" if len(others) == 1 else f"{len(others)} other files were"
            typer.echo(f"{told} passed over (endings: {endings})", err=True)
    if links:
        typer.echo(file_plan.told_of(links), err=True)
    if summary["skipped"] and not skip_bad:
        raise typer.Exit(1)
