"""`linocut export`: transform and network as one ONNX file."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer


def export(
    model: Annotated[Path, typer.Argument(help="a saved model")],
    out: Annotated[Path, typer.Argument(help="the file to write, such as model.onnx")],
    image_size: Annotated[int | None, typer.Option(help="the side of an image; the data set's own if left out")] = None,
    data: Annotated[str | None, typer.Option(help="check on test images of this set; else on made-up ones")] = None,
    root: Annotated[Path | None, typer.Option(help="the folder of data sets; else LINOCUT_DATA")] = None,
    n: Annotated[int, typer.Option("--n", "-n", help="so many test images")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Write a model as ONNX, for any batch size, and check it in onnxruntime before saying so.

    Palettes and pixel labels must equal PyTorch's bit for bit, and the predicted classes must agree.
    """
    from linocut.recipes.export import export as carry_out

    agreement = carry_out(model, out, image_size=image_size, data=data, root=root, n=n)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(agreement)))
        return
    typer.echo(
        f"{out}: on {agreement.images} images palettes and labels equal PyTorch's bit for bit "
        f"(up to {agreement.colors} colours), classes agree, logits differ by at most "
        f"{agreement.largest_logit_difference:.2g}"
    )
    typer.echo(
        f"milliseconds an image on the CPU: {agreement.onnx_milliseconds:.2f} in onnxruntime, "
        f"{agreement.torch_milliseconds:.2f} in PyTorch with the transform's own backend"
    )
