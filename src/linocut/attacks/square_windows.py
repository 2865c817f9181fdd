"""The moves of the Square Attack: where it starts and what it tries next, each image with its own window."""

import functools
import math

import torch

from linocut.attacks.dice import Dice

_HALVE_AFTER = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)  # of 10,000 queries
_TINY = 1e-12


def window_share(share: float, query: int, num_queries: int) -> float:
    """The share of pixels a window has at this query: it halves at fixed points of the budget."""
    progress = query * 10_000 // num_queries
    return share / 2 ** sum(progress > mark for mark in _HALVE_AFTER)


def window_side(share: float, height: int, width: int, *, odd: bool) -> int:
    """The side of a square window with this share of the pixels: at least 1, or odd and at least 3."""
    side = max(round(math.sqrt(share * height * width)), 3 if odd else 1)
    return min(side + (odd and side % 2 == 0), height, width)


def stripes(natural: torch.Tensor, eps: float, dice: Dice) -> torch.Tensor:
    """The L-inf start: each column of each channel moved up or down by eps."""
    sign = dice.sign(0, (natural.shape[1], 1, natural.shape[3]))
    return torch.add(natural, sign, alpha=eps).clamp_(0, 1)


def repainted(points: torch.Tensor, natural: torch.Tensor, eps: float, side: int, draw: torch.Tensor) -> torch.Tensor:
    """The L-inf move: one window of each image pushed to one of its two bounds, channel by channel.

    A push that changes nothing would waste the query, so such an image gets another of the sign patterns,
    drawn uniformly: flipping any channels other than none. `draw` is five hashes an image, int64 (B,5).
    """
    channels, height, width = points.shape[1:]
    top, left = _below(draw[:, 0], height - side + 1), _below(draw[:, 1], width - side + 1)
    pattern = draw[:, 2]
    other = pattern ^ (1 + _below(draw[:, 3], 2**channels - 1))
    place = _window(top, left, side)
    before, center = points[place], natural[place]  # (B, side, side, C)
    low, high = (center - eps).clamp_(0, 1), (center + eps).clamp_(0, 1)

    def pushed(bits: torch.Tensor) -> torch.Tensor:
        return torch.where(_coins(bits, channels)[:, None, None, :], high, low)

    after = pushed(pattern)
    idle = ((after - before).abs() < 1e-5).flatten(1).all(dim=1)  # rounding to whole levels moves the last bits
    after = torch.where(idle[:, None, None, None], pushed(other), after)
    moved = points.clone()
    moved[place] = after
    return moved


def tiles(natural: torch.Tensor, eps: float, dice: Dice) -> torch.Tensor:
    """The L2 start: a 5 x 5 tiling of two-sided bumps with random signs, scaled to length eps."""
    count, channels, height, width = natural.shape
    down, across = min(5, height), min(5, width)
    tall, wide = height // down, width // across
    device = natural.device
    upright, lying = _two_sided(tall, wide, device), _two_sided(wide, tall, device).T
    turned = dice.integers(0, (1, down, across, 1, 1), 2, stream=1).bool()
    sign = dice.sign(0, (channels, down, across, 1, 1), stream=2)
    bumps = torch.where(turned, lying, upright) * sign
    top, left = (height - down * tall) // 2, (width - across * wide) // 2
    offset = torch.zeros_like(natural)
    offset[:, :, top : top + down * tall, left : left + across * wide] = bumps.transpose(3, 4).reshape(
        count, channels, down * tall, across * wide
    )
    return _at_length(natural, offset, eps)


def shifted_mass(
    points: torch.Tensor, natural: torch.Tensor, eps: float, side: int, draw: torch.Tensor
) -> torch.Tensor:
    """The L2 move: one window is emptied, and its mass with the unused budget goes to another as a bump."""
    channels, height, width = points.shape[1:]
    places = [
        _window(_below(draw[:, i], height - side + 1), _below(draw[:, i + 1], width - side + 1), side) for i in (0, 2)
    ]
    turned, up = _coins(draw[:, 4], channels + 1).split([1, channels], dim=1)
    bump = _two_sided(side, side, points.device)
    bump = torch.where(turned[:, :, None], bump.T, bump)[..., None]
    bump = torch.where(up[:, None, None, :], bump, -bump)  # (B, side, side, C)

    offset = points - natural
    spare = (eps**2 - offset.square().sum(dim=(1, 2, 3))).clamp_min_(0) / channels
    kept = offset[places[0]]
    mass = offset.square().sum(dim=(2, 3))
    offset[places[0]] = 0
    offset[places[1]] = 0
    mass = (mass - offset.square().sum(dim=(2, 3))).clamp_min_(0)  # of both windows, (B, C)
    bump = bump + kept / (kept.square().sum(dim=(1, 2), keepdim=True).sqrt() + _TINY)
    length = bump.square().sum(dim=(1, 2)).sqrt() + _TINY
    offset[places[0]] = bump * ((spare[:, None] + mass).sqrt() / length)[:, None, None, :]
    return _at_length(natural, offset, eps)


def _below(bits: torch.Tensor, bound: int) -> torch.Tensor:
    """The hash as a number from 0 to bound - 1."""
    return (((bits >> 32) & 0xFFFFFFFF) * bound) >> 32


def _coins(bits: torch.Tensor, count: int) -> torch.Tensor:
    """The last bits of a hash, bool (B, count)."""
    return ((bits[:, None] >> torch.arange(count, device=bits.device)) & 1).bool()


def _window(top: torch.Tensor, left: torch.Tensor, side: int) -> tuple:
    """An index that picks one square window of each image, as (B, side, side, C)."""
    steps = torch.arange(side, device=top.device)
    rows = (top[:, None] + steps)[:, :, None]
    columns = (left[:, None] + steps)[:, None, :]
    return torch.arange(len(top), device=top.device)[:, None, None], slice(None), rows, columns


def _at_length(natural: torch.Tensor, offset: torch.Tensor, eps: float) -> torch.Tensor:
    """The offset scaled to length eps and added to the image, cut by the box."""
    length = offset.square().sum(dim=(1, 2, 3), keepdim=True).sqrt_().add_(_TINY)
    return (natural + offset * (eps / length)).clamp_(0, 1)


def _bump(height: int, width: int) -> torch.Tensor:
    """Nested centred squares, the i-th (from 0) weighing 1/(i+1)², at unit length."""
    rings = max(height // 2, width // 2) + 1
    weight = torch.arange(1, rings + 1, dtype=torch.float32, device="cpu") ** -2
    height_at = weight.flip(0).cumsum(0).flip(0)  # a pixel lies in every square from its own ring outwards
    from_row = (torch.arange(height, device="cpu") - height // 2).abs()
    from_column = (torch.arange(width, device="cpu") - width // 2).abs()
    bump = height_at[torch.maximum(from_row[:, None], from_column[None, :])]
    return bump / (bump.norm() + _TINY)


@functools.lru_cache(maxsize=64)
def _two_sided(height: int, width: int, device: torch.device) -> torch.Tensor:
    """A bump above a bump of opposite sign, at unit length."""
    both = torch.cat([_bump(height // 2, width), -_bump(height - height // 2, width)])
    return (both / (both.norm() + _TINY)).to(device)
