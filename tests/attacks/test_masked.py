"""Defences whose gradients say nothing, and so look robust: some attack must see through each."""

import pytest
import torch

from linocut.attacks import APGD, PGD, NoiseAveragedPGD, Square, ThreatModel, TransferPGD

THREAT = ThreatModel("linf", 0.05)


@pytest.fixture(scope="module")
def share(network, batch):
    """The share of examples that an attack breaks on a masked copy of the network."""
    images, _, dice = batch

    def broken(attack, defence):
        labels = defence(images).argmax(dim=1)
        return attack.run(defence, images, labels, THREAT, dice).broken.float().mean().item()

    return broken


@pytest.fixture(scope="module")
def bare(share, network):
    """What is broken of the network without any defence."""
    found = share(PGD(num_steps=40, any_iterate=True), network)
    assert found > 0.8
    return found


def test_a_gradient_killer_falls_to_square_and_to_transfer(share, network, bare):
    def dead(x):
        return network(x.detach())

    assert share(PGD(num_steps=20, random_start=False), dead) == 0
    assert share(Square(num_queries=150), dead) > 0.5 * bare
    assert share(TransferPGD(num_steps=20, source=network), dead) >= bare - 0.05


def test_saturated_logits_fall_to_losses_without_a_scale(share, network, bare):
    def steep(x):
        return network(x) * 1e4

    assert share(PGD(num_steps=40, random_start=False), steep) < 0.5 * bare
    assert share(PGD(num_steps=40, loss="margin"), steep) >= bare - 0.1
    assert share(APGD(loss="dlr"), steep) >= bare - 0.1


def test_rounding_falls_to_square(share, network):
    def coarse(x):
        return network((x * 15).round() / 15)

    assert share(PGD(num_steps=20, random_start=False), coarse) == 0
    assert share(Square(num_queries=150), coarse) > 0.3


def test_a_rippled_surface_falls_to_averaged_gradients(share, network, bare):
    """A fast ripple turns every local gradient round; the mean over a neighbourhood ignores it."""

    class Rippled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * (1 + 8 * torch.cos(2000 * x))

    def rippled(x):
        return network(Rippled.apply(x))

    misled = share(PGD(num_steps=10, path_ratio=1.5, random_start=False), rippled)
    averaged = share(NoiseAveragedPGD(num_steps=10, path_ratio=1.5, random_start=False, copies=32), rippled)
    assert averaged > misled
