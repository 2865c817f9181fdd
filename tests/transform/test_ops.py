"""Outside a compiler a pass is a plain function; whoever records a program still meets the operator."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from linocut.transform.modules import EssentialFeatures, FixedCodebook

CODES = [[0, 0, 0], [128, 128, 128], [255, 255, 255]]


class Cut(torch.autograd.Function):
    """Passes the image on, and no gradient back."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, *gradients):
        return None


@pytest.mark.parametrize("surrogate", ["bpda", "soft", "identity", "none"])
def test_a_graph_cut_behind_the_transform_gives_no_gradient(surrogate, draw):
    for module in (EssentialFeatures(surrogate=surrogate), FixedCodebook(colors=CODES, surrogate=surrogate)):
        x = draw(1, 2).requires_grad_()
        (Cut.apply(module(x)).sum() + x.sum()).backward()
        assert bool((x.grad == 1).all())
    frozen = EssentialFeatures(surrogate=surrogate).frozen(draw(1, 2))
    x = draw(1, 2).requires_grad_()
    (Cut.apply(frozen(x)).sum() + x.sum()).backward()
    assert bool((x.grad == 1).all())


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_a_trace_transforms_other_images_too(draw):
    module, x, other = EssentialFeatures(), draw(1, 2), draw(2, 2)
    for traced in (torch.jit.trace(module, x, check_trace=False), make_fx(module)(x)):
        assert torch.equal(traced(other), module(other))


def test_tensors_without_numbers_have_shapes():
    assert EssentialFeatures()(torch.empty(2, 3, 16, 16, device="meta")).shape == (2, 3, 16, 16)
    with FakeTensorMode():
        assert EssentialFeatures()(torch.empty(2, 3, 16, 16)).shape == (2, 3, 16, 16)
