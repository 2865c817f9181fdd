"""Everything the transform decided about an image, step by step."""

from dataclasses import dataclass

import numpy as np
import torch

from linocut.transform import fixed, reference
from linocut.transform.kernels.dispatch import backend as kernels
from linocut.transform.kernels.torch_nearest import ColorTable
from linocut.transform.kernels.torch_ops import leave
from linocut.transform.passes import laid_out
from linocut.transform.settings import EIGHTHS_PER_LEVEL, NO_BLUR, BlurRule, PaletteRule


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """One image on its way through the transform; tensors on the CPU, colours on the unit range."""

    input: torch.Tensor
    """(C,H,W)"""
    edge_response: torch.Tensor
    """(C,H,W) float32, 0..255: what the edge thresholds are compared with."""
    kernel_index: torch.Tensor
    """(C,H,W) uint8: which of the kernel sizes blurred this pixel, 0 the largest."""
    blurred: torch.Tensor
    """(C,H,W)"""
    palette: torch.Tensor | None
    """(K,C), in the order the colours were accepted; None without a codebook."""
    population: torch.Tensor | None
    """(K,) int32: how many thumbnail pixels each colour's cluster held; pixels of the image for a fixed codebook."""
    labels: torch.Tensor | None
    """(H,W) int64: the row of the palette each pixel got."""
    output: torch.Tensor
    """(C,H,W)"""
    note: str
    """What is worth saying about the palette."""


def explain(x: torch.Tensor, blur: BlurRule, rule: PaletteRule | None, backend: str) -> list[Explanation]:
    """One explanation for each image of x (B,C,H,W)."""
    x = laid_out(x.detach())
    run = kernels(backend, x.device)
    y, level = run.blur(x, blur)
    if rule is None:
        return [_explain_blur(x[i], y[i], level[i]) for i in range(len(x))]
    colors, population, num_colors = run.find_palette(y, rule)
    output = run.paint(y, colors, num_colors).cpu()
    labels = torch.empty((len(y), y[0, 0].numel() if len(y) else 0), dtype=torch.int64, device="cpu")
    for b, n, owner in ColorTable(colors, num_colors).nearest(y.flatten(2)):
        labels[b, n] = owner.cpu()
    explanations = []
    for i, k in enumerate(num_colors.tolist()):
        kept = colors[i, :k].cpu()
        explanations.append(
            _explain_blur(
                x[i],
                y[i],
                level[i],
                palette=leave(kept),
                population=population[i, :k].cpu(),
                labels=labels[i].view(y.shape[2:]),
                output=output[i],
                note=_note(kept, rule),
            )
        )
    return explanations


def explain_fixed(x: torch.Tensor, colors: torch.Tensor, backend: str) -> list[Explanation]:
    """One explanation for each image of x (B,C,H,W) painted with the codes (K,C); populations count its pixels.

    A codebook of grey levels paints the channels of a colour image one by one: then there is no palette to show.
    """
    x = laid_out(x.detach())
    run = kernels(backend, x.device)
    y, level = run.blur(x, NO_BLUR)
    whole = colors.shape[1] == x.shape[1]
    planes = y if whole else y.reshape(-1, 1, *y.shape[2:])
    output = run.paint_linf(planes, colors).view(y.shape).cpu()
    unit, codes = leave(colors).cpu(), colors.cpu().numpy()
    explanations = []
    for i in range(len(x)):
        told: dict = {"output": output[i], "note": f"{len(colors)} levels for each channel"}
        if whole:
            labels = torch.from_numpy(fixed.nearest(y[i].cpu().numpy(), codes))
            population = torch.bincount(labels.flatten(), minlength=len(colors)).to(torch.int32)
            used = int((population > 0).sum())
            note = f"{used} of {len(colors)} codes, the same for every image"
            told |= {"palette": unit, "population": population, "labels": labels, "note": note}
        explanations.append(_explain_blur(x[i], y[i], level[i], **told))
    return explanations


def _explain_blur(x: torch.Tensor, y: torch.Tensor, level: torch.Tensor, **codebook) -> Explanation:
    blurred = leave(y.cpu())
    strength = reference.edge_strength(reference.enter(x.cpu().numpy()))
    response = np.sqrt(strength / 20.0) / EIGHTHS_PER_LEVEL
    without = {"palette": None, "population": None, "labels": None, "output": blurred, "note": "no codebook"}
    return Explanation(
        input=x.cpu(),
        edge_response=torch.from_numpy(response.astype(np.float32)),
        kernel_index=level.cpu(),
        blurred=blurred,
        **{**without, **codebook},
    )


def _note(colors: torch.Tensor, rule: PaletteRule) -> str:
    apart = f"{rule.separation / EIGHTHS_PER_LEVEL:g} levels"
    if len(colors) == 1:
        return f"1 colour: no other lies {apart} from it"
    if rule.at_least_two and len(colors) == 2:
        gap = (colors[0].double() - colors[1].double()).square().sum()
        if gap < rule.separation**2:
            return f"2 colours closer than {apart}: no two lay farther apart, so the farthest pair was kept"
    return f"{len(colors)} colours, each at least {apart} from the others"
