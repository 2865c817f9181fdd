"""Outside a compiler a pass is a plain function; whoever records a program still meets the operator."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from linocut.errors import InputError
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


MODULES = {
    "bpda": EssentialFeatures(),
    "identity": EssentialFeatures(surrogate="identity"),
    "fixed": FixedCodebook(colors=[[0], [99], [255]], surrogate="identity"),
}


@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
@pytest.mark.parametrize("surrogate", ["bpda", "soft", "identity", "none"])
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's own, about rows one after the other
def test_many_gradients_at_once_of_the_older_kind(surrogate, backend, draw):
    x = draw(1, 1, 1, 5, 4)
    modules = [EssentialFeatures(surrogate=surrogate, backend=backend)]
    modules += [FixedCodebook(colors=CODES, surrogate=surrogate, backend=backend)] if surrogate != "bpda" else []
    modules += [EssentialFeatures(backend=backend).frozen(x)] if surrogate == "bpda" else []
    for module in modules:
        images = x.expand(1, 3, 5, 4).contiguous() if isinstance(module, FixedCodebook) else x
        one_by_one = torch.autograd.functional.jacobian(module, images)
        assert torch.equal(torch.autograd.functional.jacobian(module, images, vectorize=True), one_by_one)


@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
def test_numbers_that_a_view_leaves_to_be_negated(backend, draw):
    x = draw(1, 2)
    negated = torch._neg_view(-x)
    assert negated.is_neg()
    plain = EssentialFeatures(backend=backend)
    for module in (plain, EssentialFeatures(surrogate="soft"), FixedCodebook(colors=CODES), plain.frozen(x)):
        assert torch.equal(module(negated), module(x))
        found = []
        for weight in (x, negated):
            leaf = x.clone().requires_grad_()
            module(leaf).backward(weight)
            found.append(leaf.grad)
        assert torch.equal(*found)
    assert torch.equal(plain.frozen(negated)(x), plain(x))
    for module in (plain, FixedCodebook(colors=CODES)):
        for found, wanted in zip(module.explain(negated), module.explain(x), strict=True):
            assert torch.equal(found.input, wanted.input)
            assert torch.equal(found.output, wanted.output)


@pytest.mark.parametrize("name", [*MODULES, "frozen"])
def test_a_gradient_penalty_has_its_gradient(name, draw):
    """|Jᵀw|² for the backward's own J: its gradient at w is 2 J Jᵀ w, whoever asks, and has a derivative again."""
    x, w = draw(1, 1, 1, 9, 7), draw(2, 1, 1, 9, 7)
    module = EssentialFeatures().frozen(x) if name == "frozen" else MODULES[name]
    rows = torch.func.jacrev(module)(x).reshape(x.numel(), x.numel()).double()
    wanted = 2 * rows @ rows.T @ w.flatten().double()

    def penalty(w):
        return torch.func.grad(lambda a: (module(a) * w).sum())(x).square().sum()

    leaf, free = x.clone().requires_grad_(), w.clone().requires_grad_()
    (pulled,) = torch.autograd.grad((module(leaf) * free).sum(), leaf, create_graph=True)
    (plain,) = torch.autograd.grad(pulled.square().sum(), free, create_graph=True)
    (third,) = torch.autograd.grad((plain * w).sum(), free)
    for found in (plain, torch.func.grad(penalty)(w)):
        assert torch.allclose(found.flatten().double(), wanted, rtol=1e-4, atol=1e-6)
    assert torch.allclose(third, plain, rtol=1e-4, atol=1e-6), "the penalty is quadratic, its gradient linear"
    recorded = make_fx(lambda w: torch.autograd.grad(penalty_of(module, leaf, w), w)[0])(free)
    assert torch.allclose(recorded(free), plain, rtol=1e-4, atol=1e-6)


def penalty_of(module, leaf, w):
    (pulled,) = torch.autograd.grad((module(leaf) * w).sum(), leaf, create_graph=True)
    return pulled.square().sum()


@pytest.mark.parametrize("module", [EssentialFeatures(surrogate="soft"), FixedCodebook(colors=CODES, surrogate="soft")])
def test_the_soft_surrogate_refuses_a_second_derivative(module, draw):
    x, w = draw(1, 1), draw(2, 1).requires_grad_()
    with pytest.raises(InputError, match=r"'soft'.*twice"):
        penalty_of(module, x.requires_grad_(), w).backward()


def test_images_stay_on_their_device_whatever_the_default(draw):
    x, plain = draw(1, 2).requires_grad_(), EssentialFeatures()
    wanted, palette = plain(x), plain.explain(x.detach())[0].palette
    torch.set_default_device("meta")
    try:
        for module in (EssentialFeatures(), EssentialFeatures(surrogate="soft"), FixedCodebook(colors=CODES)):
            assert module(x).device.type == "cpu"
            module(x).sum().backward()
        assert torch.equal(plain(x), wanted)
        assert torch.equal(plain.explain(x.detach())[0].palette, palette)
        assert torch.equal(plain.frozen(x.detach())(x), wanted)
    finally:
        torch.set_default_device(None)
