"""`linocut export`: transform and network as one ONNX file."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer


def export(
    model: Annotated[Path, typer.Argument(help="a saved model")],
    out: Annotated[Path, typer.Argument(help="the file to write, such as model.onnx")],
    image_size: Annotated[int | None, typer.Option(help="the side of an image; the model's own if left out")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="check on test images of this set; else of the model's own, if its files are there"),
    ] = None,
    root: Annotated[Path | None, typer.Option(help="the folder of data sets; else LINOCUT_DATA")] = None,
    n: Annotated[int, typer.Option("--n", "-n", help="so many test images")] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Write a model as ONNX, for any batch size, and check it in onnxruntime before saying so.

    Palettes and pixel labels must equal PyTorch's bit for bit, and the predicted classes must agree; otherwise no
    file is left. Where the data set's files are not there, made-up images are used, and the result says so.
    """
    from linocut.recipes.export import export as carry_out

    exported = carry_out(model, out, image_size=image_size, data=data, root=root, n=n)
    agreement = exported.agreement
    if as_json:
        typer.echo(json.dumps({"checked_on": exported.checked_on} | dataclasses.asdict(agreement)))
        return
    equal = ""
    if agreement.equal_outputs:
        shown = f"palettes (up to {agreement.colors} colours) and labels" if agreement.colors else "painted images"
        equal = f"{shown} equal PyTorch's bit for bit, "
    typer.echo(
        f"{out}: on {agreement.images} {exported.checked_on} {equal}classes agree, logits differ by at most "
        f"{agreement.largest_logit_difference:.2g}"
    )
    typer.echo(
        f"milliseconds an image on the CPU: {agreement.onnx_milliseconds:.2f} in onnxruntime, "
        f"{agreement.torch_milliseconds:.2f} in PyTorch with the transform's own backend"
    )
