"""A running average of the weights, often more robust than the last of them."""

import torch
from torch import nn


class WeightAverage:
    """An exponential average of every float of a network's state; whole numbers follow as they are.

    The decay starts low, min(decay, (1 + t) / (10 + t)), so that the first random weights are soon forgotten.
    """

    def __init__(self, network: nn.Module, decay: float):
        self.decay = decay
        self.state = {name: value.detach().clone() for name, value in network.state_dict().items()}
        # A tensor, so that a captured step reads the share of its own turn.
        self.share = torch.ones((), device=next(network.parameters()).device)

    def set_turn(self, step: int) -> None:
        """Choose how far the next `follow` moves, by the number of steps before it."""
        self.share.fill_(1 - min(self.decay, (1 + step) / (10 + step)))

    @torch.no_grad()
    def follow(self, network: nn.Module) -> None:
        """Move towards the network's present weights."""
        for name, value in network.state_dict().items():
            if value.is_floating_point():
                self.state[name].lerp_(value, self.share)
            else:
                self.state[name].copy_(value)
