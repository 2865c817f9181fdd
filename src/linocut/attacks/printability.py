"""PGD that also pulls pixels towards a few colours, to spend its change where a palette keeps it."""

from dataclasses import dataclass

import torch

from linocut.attacks.dice import Dice
from linocut.attacks.gradients import Probe, Reading
from linocut.attacks.hooks import Model, NotApplicable, own_palettes
from linocut.attacks.pgd import PGD
from linocut.attacks.pursuit import Pursuit
from linocut.attacks.threat import ThreatModel

_TINY = 1e-6  # keeps the pull finite on a colour itself
# Thirty colours that came out of a printer as Sharif et al. (2016) measured them; Eykholt et al. (2018) use them too.
_LEVELS = """
1b0e1c 7b182b 80862d 15512f 7a9c84 134f75 ad262e 162443 445e7a c28a8b bb7e46 425a2e 7a395d 45161e b55233
46234b c0c1a1 498c69 794a27 bfb349 196d71 81a6a8 206d3c 7d9556 437e43 132620 17345c af284d 4d8b93 b75468
"""
PRINTED = tuple(tuple(level / 255 for level in bytes.fromhex(color)) for color in _LEVELS.split())


def non_printability(
    points: torch.Tensor, colors: torch.Tensor, exists: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """How far each image is from its colours, (B,), and the gradient of that, (B,C,H,W).

    A pixel scores the geometric mean of its distances to the colours: the K-th root of the published
    product, which for a palette of thirty is too small for float32. colors (B,K,C), exists (B,K).
    """
    number = exists.sum(dim=1).clamp_min(1).view(-1, 1, 1, 1)
    log_sum = torch.zeros_like(points[:, :1])
    pull = torch.zeros_like(points)
    for k in range(colors.shape[1]):
        away = points - colors[:, k, :, None, None]
        squared = away.square().sum(dim=1, keepdim=True) + _TINY
        here = exists[:, k].view(-1, 1, 1, 1)
        log_sum += torch.where(here, squared.log() / 2, 0)
        pull += torch.where(here, away / squared, 0)
    score = (log_sum / number).exp()
    pixels = points.shape[2] * points.shape[3]
    return score.mean(dim=(1, 2, 3)), score * pull / number / pixels


@dataclass(frozen=True, kw_only=True)
class PrintablePGD(PGD):
    """PGD on the loss minus `weight` times the non-printability; the loss alone picks the best iterate.

    `palette` lists colours in the unit range; where it is None, each image's own palette is asked of the
    model's transform. Paper: supplement, alternative adaptive attacks, the second.
    """

    name: str = "pgd-few-colors"
    weight: float = 1.0
    palette: tuple[tuple[float, ...], ...] | None = None

    def probe(self, model: Model, images: torch.Tensor, threat: ThreatModel, dice: Dice) -> Probe:
        """The model's own gradient and the pull of the colours."""
        plain = super().probe(model, images, threat, dice)
        colors, exists = own_palettes(model, images) if self.palette is None else self._given(images)

        def with_pull(points: torch.Tensor, pursuit: Pursuit, step: int) -> Reading:
            reading = plain(points, pursuit, step)
            _, gradient = non_printability(points, colors[pursuit.rows], exists[pursuit.rows])
            return reading._replace(gradient=reading.gradient.sub_(gradient, alpha=self.weight))

        return with_pull

    def _given(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The same list of colours for every image."""
        colors = torch.tensor(self.palette, dtype=images.dtype, device=images.device)
        if colors.ndim != 2 or colors.shape[1] != images.shape[1] or len(colors) == 0:
            raise NotApplicable(
                f"palette must list colours of {images.shape[1]} channels, got shape {tuple(colors.shape)}"
            )
        exists = torch.ones(len(images), len(colors), dtype=torch.bool, device=images.device)
        return colors.expand(len(images), -1, -1), exists
