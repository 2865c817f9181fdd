"""Compiled and eager give the same bits and the same gradients, in one graph; precision settings change nothing."""

import pytest
import torch

from linocut.transform.modules import AdaptiveBlur, AdaptiveCodebook, EssentialFeatures

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while it compiles


def forward_and_gradient(function, x):
    x = x.clone().requires_grad_()
    out = function(x)
    weight = torch.linspace(-1, 1, out.numel()).view(out.shape)
    (grad,) = torch.autograd.grad((out * weight).sum(), x)
    return out.detach(), grad


def check_compiled(module, x, compiler):
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend=compiler)
    eager_out, eager_grad = forward_and_gradient(module, x)
    out, grad = forward_and_gradient(compiled, x)
    assert torch.equal(out, eager_out)
    assert torch.equal(grad, eager_grad)
    return grad


@pytest.mark.parametrize("surrogate", ["bpda", "identity", "soft"])
@pytest.mark.parametrize("transform", [EssentialFeatures, AdaptiveBlur, AdaptiveCodebook])
def test_one_graph_with_the_same_bits(transform, surrogate, draw):
    module = transform(surrogate=surrogate, backend="torch")
    assert check_compiled(module, draw(1, 4), "aot_eager").norm() > 0


def test_no_gradient_stays_none(draw):
    assert not check_compiled(EssentialFeatures(surrogate="none", backend="torch"), draw(1, 4), "aot_eager").any()


def test_frozen_palettes_compile(draw):
    x = draw(2, 4)
    module = EssentialFeatures(backend="torch").frozen(x)
    assert check_compiled(module, x.flip(0), "aot_eager").norm() > 0


def test_default_compiler(draw):
    assert check_compiled(EssentialFeatures(), draw(3, 4), "inductor").norm() > 0


def test_autocast_changes_nothing(backend, draw):
    x = draw(4, 8, 3, 40, 40)
    for surrogate in ("bpda", "soft"):
        module = EssentialFeatures(surrogate=surrogate, backend=backend)
        out, grad = forward_and_gradient(module, x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            cast_out, cast_grad = forward_and_gradient(module, x)
        assert torch.equal(cast_out, out)
        assert torch.equal(cast_grad, grad)


def test_reduced_matmul_precision_changes_nothing(backend, draw):
    x = draw(5, 8, 3, 40, 40)
    module = EssentialFeatures(backend=backend)
    out, grad = forward_and_gradient(module, x)
    before = torch.get_float32_matmul_precision()
    try:
        for precision in ("high", "medium"):
            torch.set_float32_matmul_precision(precision)
            low_out, low_grad = forward_and_gradient(module, x)
            assert torch.equal(low_out, out)
            assert torch.equal(low_grad, grad)
    finally:
        torch.set_float32_matmul_precision(before)


def test_operators_pass_torchs_own_checks(draw):
    from linocut.transform import ops

    module = EssentialFeatures(backend="torch")
    numbers = (*ops.blur_numbers(module.blur_rule), ops.palette_numbers(module.palette_rule))
    arguments = (draw(6, 2), *numbers, "bpda", 0.1, "torch", True)
    torch.library.opcheck(ops.discretize_op, arguments, test_utils=("test_schema", "test_faketensor"))
