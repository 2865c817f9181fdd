"""PGD that also draws edges, to make an adaptive blur choose other kernels."""

from dataclasses import dataclass

import torch

from linocut.attacks.dice import Dice
from linocut.attacks.gradients import Probe, Reading
from linocut.attacks.hooks import Model
from linocut.attacks.pgd import PGD
from linocut.attacks.pursuit import Pursuit
from linocut.attacks.threat import ThreatModel

_LARGEST = 20.0**0.5  # Sobel magnitude of an image in the unit range
_TINY = 1e-12  # the root has no slope at 0


def edge_response(images: torch.Tensor) -> torch.Tensor:
    """The Sobel magnitude of each channel over its largest value, (B,C,H,W) in 0..1; borders reflect."""
    rows, columns = (_reflected(side, images.device) for side in images.shape[2:])
    padded = images[:, :, rows][:, :, :, columns]
    across = padded[..., 2:] - padded[..., :-2]
    down = padded[..., 2:, :] - padded[..., :-2, :]
    x = across[..., :-2, :] + 2 * across[..., 1:-1, :] + across[..., 2:, :]
    y = down[..., :-2] + 2 * down[..., 1:-1] + down[..., 2:]
    return (x.square() + y.square() + _TINY).sqrt() / _LARGEST


def _reflected(side: int, device: torch.device) -> torch.Tensor:
    """Positions -1 to side, those outside mirrored without repeating the edge."""
    index = torch.arange(-1, side + 1, device=device).abs()
    return torch.minimum(index, 2 * (side - 1) - index).clamp_min(0)


@dataclass(frozen=True, kw_only=True)
class EdgePGD(PGD):
    """PGD on the loss plus `weight` times the mean edge response; the loss alone picks the best iterate.

    Paper: supplement, alternative adaptive attacks, the first.
    """

    name: str = "pgd-edges"
    weight: float = 1.0

    def probe(self, model: Model, images: torch.Tensor, threat: ThreatModel, dice: Dice) -> Probe:
        """The model's own gradient and that of the edges."""
        plain = super().probe(model, images, threat, dice)

        def with_edges(points: torch.Tensor, pursuit: Pursuit, step: int) -> Reading:
            reading = plain(points, pursuit, step)
            with torch.enable_grad():
                leaf = points.detach().requires_grad_()
                term = edge_response(leaf).mean(dim=(1, 2, 3)).sum()
                (gradient,) = torch.autograd.grad(term, leaf)
            return reading._replace(gradient=reading.gradient.add_(gradient, alpha=self.weight))

        return with_edges
