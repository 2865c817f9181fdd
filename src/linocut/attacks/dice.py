"""Randomness that belongs to an example, not to a batch.

Every number is a hash of (the example's seed, step, stream, position): there is no state to advance, so an
example draws the same numbers alone, in any batch, in any order, after any number of others have left, and
on every device. The mixing is SplitMix64 in wrapping 64-bit integers; floats appear once, at the end.
"""

import functools
import hashlib
import json
import math

import torch

_GOLDEN = -0x61C8864680B583EB  # 2^64 / golden ratio, as a signed number: SplitMix64's increment
_MIX_A = -0x40A7B892E31B1A47
_MIX_B = -0x6B2FB644ECCEEE15
_STREAM = 0x2545F4914F6CDD1D


def example_seed(run_seed: int, example_id: int | str, attack_name: str) -> int:
    """A signed 64-bit seed, a function of exactly these three."""
    text = json.dumps([run_seed, example_id, attack_name, 0])  # the 0 stands in every ledger's seeds
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def _wrapped(number: int) -> int:
    """The signed 64-bit integer with the same last 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def _shifted(bits: torch.Tensor, by: int) -> torch.Tensor:
    """bits >> by with zeros coming in, which torch's signed shift does not do."""
    return (bits >> by).bitwise_and_((1 << (64 - by)) - 1)


def _mixed(bits: torch.Tensor) -> torch.Tensor:
    """SplitMix64's finaliser: each bit of the input moves about half the bits of the result."""
    bits = _shifted(bits, 30).bitwise_xor_(bits).mul_(_MIX_A)
    bits = _shifted(bits, 27).bitwise_xor_(bits).mul_(_MIX_B)
    return _shifted(bits, 31).bitwise_xor_(bits)


@functools.lru_cache(maxsize=8)
def _normal_quantiles(device: torch.device) -> torch.Tensor:
    """The 65,536 mid-quantiles of N(0,1). Looking them up is exact everywhere; log and cos are not."""
    share = (torch.arange(2**16, dtype=torch.float64, device="cpu") + 0.5) / 2**16
    return torch.special.ndtri(share).float().to(device)


class Dice:
    """One die for each example of a batch; `seeds` is int64 (B,)."""

    def __init__(self, seeds: torch.Tensor) -> None:
        self.seeds = seeds

    @classmethod
    def of(cls, seed: int, count: int, device: torch.device | str = "cpu") -> "Dice":
        """Dice for examples 0 to count - 1 of a run."""
        return cls(torch.tensor([example_seed(seed, i, "") for i in range(count)], dtype=torch.int64, device=device))

    def select(self, index: torch.Tensor) -> "Dice":
        """The dice of these examples."""
        return Dice(self.seeds[index])

    def bits(self, step: int, shape: tuple[int, ...], stream: int = 0) -> torch.Tensor:
        """Hashes, int64 (B, *shape). `stream` keeps two draws of one step apart."""
        place = _wrapped((step + 1) * _GOLDEN ^ (stream + 1) * _STREAM)
        key = _mixed(_mixed(self.seeds + _GOLDEN) ^ place)
        position = torch.arange(1, math.prod(shape) + 1, dtype=torch.int64, device=key.device)
        return _mixed(key[:, None] + (position * _GOLDEN)[None, :]).view(len(key), *shape)

    def uniform(self, step: int, shape: tuple[int, ...], stream: int = 0) -> torch.Tensor:
        """Float32 (B, *shape) in [0, 1), in steps of 2^-24."""
        return _shifted(self.bits(step, shape, stream), 40).float() * 2.0**-24

    def sign(self, step: int, shape: tuple[int, ...], stream: int = 0) -> torch.Tensor:
        """Float32 (B, *shape) of -1 and 1."""
        return (_shifted(self.bits(step, shape, stream), 63) * 2 - 1).float()

    def integers(self, step: int, shape: tuple[int, ...], below: int, stream: int = 0) -> torch.Tensor:
        """Int64 (B, *shape) from 0 to below - 1; `below` up to 2^31."""
        return (_shifted(self.bits(step, shape, stream), 32) * below) >> 32

    def normal(self, step: int, shape: tuple[int, ...], stream: int = 0) -> torch.Tensor:
        """Float32 (B, *shape) of N(0,1): two table quantiles a number, so 2^32 values and tails to 6."""
        bits, table = self.bits(step, shape, stream), _normal_quantiles(self.seeds.device)
        return (table[bits & 0xFFFF] + table[_shifted(bits, 48)]) * math.sqrt(0.5)
