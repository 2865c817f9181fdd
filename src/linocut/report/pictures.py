"""Images as the page embeds them: small PNG files in data addresses."""

import base64
import io

import torch
from PIL import Image

FACTORS = (1, 2, 3, 5, 8, 10, 16, 20, 32, 50, 100)


def embedded(image: torch.Tensor) -> str:
    """The data address of a PNG for (C,H,W) in [0, 1], grey or colour."""
    levels = (image.float().nan_to_num().clamp(0, 1) * 255).round().to(torch.uint8).cpu()
    array = levels[0].numpy() if len(levels) == 1 else levels.permute(1, 2, 0).contiguous().numpy()
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def magnified(natural: torch.Tensor, attacked: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The perturbation around mid-grey, and how often it was magnified: as much as fits well within the range."""
    change = attacked.float() - natural.float()
    largest = float(change.abs().max())
    factor = max((f for f in FACTORS if f * largest <= 0.4), default=1)
    return 0.5 + factor * change, factor


def strip(palette: torch.Tensor) -> torch.Tensor:
    """The colours (K,C) side by side as an image (C,1,K), dark to light."""
    order = palette.float().sum(dim=1).argsort()
    return palette[order].T[:, None, :]


def hottest_window(change: torch.Tensor, side: int) -> tuple[int, int]:
    """Top and left of the window of this side that holds most of a perturbation's energy."""
    energy = change.double().square().sum(dim=0)
    sums = torch.nn.functional.avg_pool2d(energy[None, None], side, stride=1)[0, 0]
    top, left = divmod(int(sums.argmax()), sums.shape[1])
    return top, left
