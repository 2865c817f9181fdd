"""Backward rules: the blur's transpose is exact, the soft slope is autograd's, nothing is zero by accident."""

import sys

import numpy as np
import pytest
import torch

from linocut.errors import InputError
from linocut.transform import reference
from linocut.transform.kernels import dispatch, torch_ops
from linocut.transform.modules import AdaptiveBlur, AdaptiveCodebook, EssentialFeatures
from linocut.transform.settings import BlurRule

RULE = BlurRule.of((13, 5, 1), (20, 40))
CPU = torch.device("cpu")


def frozen_blur(x, level, rule):
    """The blur as the linear map it is once its kernel choice is frozen; no rounding, any float dtype."""
    out = torch.zeros_like(x)
    for i, size in enumerate(rule.kernel_sizes):
        weights, s = reference.gaussian_weights(size)
        part = x
        for dim in (2, 3):
            source = torch.from_numpy(reference.reflect(x.shape[dim], size // 2))
            wide = part.index_select(dim, source)
            part = sum(w / 2**s * wide.narrow(dim, j, x.shape[dim]) for j, w in enumerate(weights))
        out = torch.where(level == i, part, out)
    return out


class FrozenBlur(torch.autograd.Function):
    """frozen_blur forward, the shipped transpose backward."""

    @staticmethod
    def forward(ctx, x, level):
        ctx.save_for_backward(level)
        return frozen_blur(x, level, RULE)

    @staticmethod
    def backward(ctx, grad):
        return torch_ops.blur_transpose(grad, *ctx.saved_tensors, RULE), None


def back(transform, x, seed=0):
    """The gradient at x for a fixed random gradient at the output, and that one."""
    x = x.clone().requires_grad_()
    out = transform(x)
    grad = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed))
    return torch.autograd.grad(out, x, grad)[0], grad


@pytest.mark.parametrize("shape", [(2, 3, 9, 7), (1, 1, 1, 1), (1, 1, 1, 5), (2, 1, 3, 2), (1, 3, 20, 30)])
def test_transpose_is_adjoint_to_the_blur(shape, draw):
    B, C, H, W = shape
    _, level = torch_ops.blur(draw(1, B, C, H, W), RULE)
    dice = torch.Generator().manual_seed(0)
    x, g = (torch.randn(shape, generator=dice, dtype=torch.float64) for _ in range(2))
    forward = (frozen_blur(x, level, RULE) * g).sum()
    backward = (x * torch_ops.blur_transpose(g, level, RULE)).sum()
    torch.testing.assert_close(forward, backward, rtol=1e-12, atol=1e-12)


def test_gradcheck_of_the_linear_part(draw):
    _, level = torch_ops.blur(draw(2, 1, 3, 5, 6), RULE)
    assert len(level.unique()) > 1
    x = torch.randn((1, 3, 5, 6), dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: FrozenBlur.apply(x, level), (x,))


def test_frozen_blur_is_the_shipped_one_up_to_rounding(draw):
    x = draw(3, 8, 3, 14, 11)
    y, level = torch_ops.blur(x, RULE)
    exact = frozen_blur(2040 * x.double(), level, RULE)
    assert (exact - y).abs().max() <= 1  # half an eighth on entering, half on leaving


@pytest.mark.parametrize("transform", [EssentialFeatures, AdaptiveBlur])
def test_bpda_is_the_blurs_transpose(transform, draw, backend):
    x = draw(4, 8)
    module = transform(kernel_sizes=(7, 3, 1), backend=backend)
    ours, grad = back(module, x)
    rule = BlurRule.of((7, 3, 1), (20, 40))
    kernels = dispatch.backend(backend, CPU)
    assert torch.equal(ours, kernels.blur_transpose(grad, kernels.blur(x, rule)[1], rule))
    assert ours.norm() > 0


def test_bpda_is_the_identity_without_a_blur(draw):
    ours, grad = back(AdaptiveCodebook(backend="torch"), draw(5, 8))
    assert torch.equal(ours, grad)


@pytest.mark.parametrize("transform", [EssentialFeatures, AdaptiveBlur, AdaptiveCodebook])
def test_identity_and_none(transform, draw):
    module, x = transform(backend="torch"), draw(6, 4)
    ours, grad = back(module.with_surrogate("identity"), x)
    assert torch.equal(ours, grad)
    ours, _ = back(module.with_surrogate("none"), x)
    assert not ours.any()


def test_gradient_passes_values_at_the_ends_of_the_range():
    x = torch.tensor([0.0, 1.0, 1.0, 0.0]).reshape(1, 1, 2, 2)
    ours, grad = back(AdaptiveCodebook(backend="torch"), x)
    assert torch.equal(ours, grad)


def test_surrogate_changes_no_forward_bit(draw):
    module, x = EssentialFeatures(backend="torch"), draw(7, 8)
    assert all(torch.equal(module.with_surrogate(s)(x), module(x)) for s in ("identity", "soft", "none"))


@pytest.mark.parametrize("backend", ["reference", "torch", "numba"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("softness", [0.02, 0.1, 1.0])
def test_soft_slope_is_autograds(draw, backend, channels, softness):
    y, _ = torch_ops.blur(draw(8, 6, channels, 9, 8), RULE)
    palette, num_colors = draw_palettes(channels)
    y[:2], palette[:3] = y[:2, :1], palette[:3, :, :1]  # greys: all channels hold the largest difference
    grad = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    ours = dispatch.backend(backend, CPU).through_soft_codebook(grad, y, palette, num_colors, softness)
    for i, n in enumerate(num_colors.tolist()):
        colors = palette[i, :n].double() / 8
        pixel = (y[i].flatten(1).T.double() / 8).requires_grad_()
        distance = (pixel[:, None] - colors[None]).abs().amax(2)
        mean = (-softness * distance).softmax(1) @ colors
        wanted = torch.autograd.grad(mean, pixel, grad[i].flatten(1).T.double())[0]
        torch.testing.assert_close(ours[i].flatten(1).T.double(), wanted, rtol=1e-3, atol=1e-4)
    assert ours.norm() > 0


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (2, 3, 0, 4), (3, 3, 33, 31), (2, 1, 150, 130)])
def test_soft_slopes_of_many_codes_are_the_references(backend, shape):
    """One list of codes for all images; more pixels than a block or a strip holds; pixels that are codes."""
    dice = torch.Generator().manual_seed(2)
    codes = torch.randint(0, 2041, (100, shape[1]), generator=dice, dtype=torch.int16)
    y = torch.randint(0, 2041, shape, generator=dice, dtype=torch.int16)
    y[:, :, :1, :1] = codes[7][:, None, None]
    grad, count = torch.randn(shape, generator=dice), torch.full((len(y),), 100, dtype=torch.int32)
    ours, wanted = (
        dispatch.backend(name, CPU).through_soft_codebook(grad, y, codes.expand(len(y), -1, -1), count, 0.1)
        for name in (backend, "reference")
    )
    torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", ["reference", "torch", "numba"])
def test_a_gradient_that_is_no_number_spoils_its_pixel_alone(backend):
    dice = torch.Generator().manual_seed(3)
    y = torch.randint(0, 2041, (2, 3, 6, 5), generator=dice, dtype=torch.int16)
    codes = torch.randint(0, 2041, (2, 9, 3), generator=dice, dtype=torch.int16)
    grad, count = torch.ones(y.shape), torch.tensor([9, 4], dtype=torch.int32)
    grad[1, 2, 3, 4] = torch.nan
    back = dispatch.backend(backend, CPU).through_soft_codebook(grad, y, codes, count, 0.1)
    spoilt = back.isnan().any(dim=1)
    assert spoilt[1, 3, 4]
    assert int(spoilt.sum()) == 1


def draw_palettes(channels):
    rng = np.random.default_rng(0)
    palette = torch.from_numpy(rng.integers(0, 2041, (6, 9, channels), dtype=np.int16))
    return palette, torch.tensor([1, 2, 9, 5, 3, 9], dtype=torch.int32)


def test_soft_is_followed_by_the_blurs_transpose(draw):
    x = draw(9, 6)
    ours, grad = back(EssentialFeatures(surrogate="soft", softness=0.05, backend="torch"), x)
    rule = BlurRule.of((5, 3, 1), (20, 40))
    y, level = torch_ops.blur(x, rule)
    frozen = EssentialFeatures(backend="torch").frozen(x)
    soft = torch_ops.through_soft_codebook(grad, y, frozen.palette, frozen.num_colors, 0.05)
    assert torch.equal(ours, torch_ops.blur_transpose(soft, level, rule))
    assert ours.norm() > 0


def test_expanded_gradients_are_taken(draw):
    x = draw(10, 3).requires_grad_()
    (ours,) = torch.autograd.grad(EssentialFeatures(backend="torch")(x).sum(), x)  # the gradient has stride 0
    assert ours.sum() == pytest.approx(x.numel(), rel=1e-5)  # a blur's weights sum to 1


def test_no_function_in_forward_has_a_name_that_autoattack_flags(draw):
    module, x = EssentialFeatures(backend="torch"), draw(11, 2).requires_grad_()
    called = set()

    def note(frame, event, argument):
        called.add(frame.f_code.co_name)

    sys.settrace(note)
    try:
        module(x)
    finally:
        sys.settrace(None)
    assert "forward" in called
    assert not called & {"grad", "backward", "_make_grads"}


def test_torch_func_gives_the_same_gradient(draw):
    module, x = EssentialFeatures(backend="torch"), draw(12, 3)
    leaf = x.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(module(leaf).square().sum(), leaf)
    assert torch.equal(torch.func.grad(lambda x: module(x).square().sum())(x), wanted)
    one_by_one = torch.func.vmap(torch.func.grad(lambda image: module(image[None]).square().sum()))
    assert torch.equal(one_by_one(x), wanted)
    assert wanted.norm() > 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, at its first jvp
def test_forward_mode_raises_rather_than_give_zero(draw):
    x = draw(13, 2)
    with pytest.raises(NotImplementedError, match="jvp"):
        torch.func.jvp(EssentialFeatures(backend="torch"), (x,), (x,))


@pytest.mark.parametrize(
    "settings",
    [{"surrogate": "magic"}, {"softness": 0.0}, {"softness": -1}, {"softness": float("nan")}, {"softness": "soft"}],
)
def test_unknown_surrogates_are_refused(settings):
    with pytest.raises(InputError):
        EssentialFeatures(**settings)
