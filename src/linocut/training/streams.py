"""Generators that are functions of a seed and a purpose, so that no state of theirs need be saved."""

import hashlib
import json

import torch


def stream(seed: int, purpose: str, *numbers: int, device: torch.device | str = "cpu") -> torch.Generator:
    """The generator for one purpose at one place of a run (epoch, shard): always the same, whoever asks."""
    text = json.dumps([seed, purpose, *numbers])
    derived = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
    return torch.Generator(device=device).manual_seed(derived)
