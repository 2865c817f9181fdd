"""On a GPU: the bits of the reference, no wait for the device, and the same in a compiled graph."""

import pytest
import torch

from linocut.errors import InputError
from linocut.transform.kernels import dispatch
from linocut.transform.modules import AdaptiveBlur, AdaptiveCodebook, EssentialFeatures, FixedCodebook

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype"),
]
CUDA = torch.device("cuda")


@pytest.fixture(params=["torch", "triton"])
def backend(request):
    try:
        dispatch.backend(request.param, CUDA)
    except InputError as error:
        pytest.skip(str(error))
    return request.param


@pytest.fixture
def no_waiting():
    """Any operation that makes the host wait for the device raises."""
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


def pair(transform, backend, **settings):
    return transform(backend="reference", **settings), transform(backend=backend, **settings)


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 1, 9), (3, 75, 40), (1, 1, 1)])
@pytest.mark.parametrize("transform", [EssentialFeatures, AdaptiveCodebook, AdaptiveBlur])
def test_bits_are_the_references(transform, backend, shape, draw, count):
    x = draw(1, count(24, 240), *shape)
    reference, ours = pair(transform, backend)
    assert torch.equal(ours(x.to(CUDA)).cpu(), reference(x))
    if transform is not AdaptiveBlur:
        for settings in ({"eps": 0.3, "at_least_two": True}, {"order": "bins", "lloyd_steps": 3}, {"bin_levels": 5}):
            reference, ours = pair(transform, backend, **settings)
            assert torch.equal(ours(x.to(CUDA)).cpu(), reference(x))


def test_cifar(backend, cifar, count):
    x = cifar[: count(128, 2000)].float() / 255
    reference, ours = pair(EssentialFeatures, backend)
    assert torch.equal(ours(x.to(CUDA)).cpu(), reference(x))


def test_photographs(backend, photographs):
    settings = EssentialFeatures.preset("resisc45").settings() | {"backend": backend}
    reference = EssentialFeatures(**{**settings, "backend": "torch"})
    assert torch.equal(EssentialFeatures(**settings)(photographs.to(CUDA)).cpu(), reference(photographs))


def test_a_large_image(photographs):
    """4096 x 4096, which takes windows in the blur and a thumbnail in the palette."""
    x = torch.nn.functional.interpolate(photographs[:1], size=(4096, 4096), mode="bilinear").clamp(0, 1)
    settings = EssentialFeatures.preset("resisc45").settings()
    ours = EssentialFeatures(**{**settings, "backend": "triton"})(x.to(CUDA))
    assert torch.equal(ours.cpu(), EssentialFeatures(**{**settings, "backend": "torch"})(x))


@pytest.mark.parametrize("surrogate", ["bpda", "soft"])
def test_gradients_are_the_cpus(backend, surrogate, draw):
    x = draw(2, 16)
    grad = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    back = []
    for name, device in (("torch", "cpu"), (backend, "cuda")):
        there = x.to(device).requires_grad_()
        out = EssentialFeatures(surrogate=surrogate, backend=name)(there)
        back.append(torch.autograd.grad(out, there, grad.to(device))[0].cpu())
    # The soft slope adds up to 256 weighted terms that all but cancel, on each device in its own order.
    torch.testing.assert_close(back[1], back[0], rtol=1e-4, atol=1e-5 if surrogate == "bpda" else 1e-4)
    assert back[1].norm() > 0


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 75, 40)])
def test_fixed_codebook(backend, shape, draw, request):
    """The bits of the reference, the gradient of the CPU, another rule on the same device, and no waiting.

    But for the slope in tensor operations, which asks how many colours there are.
    """
    x = draw(7, 12, *shape)
    book = FixedCodebook.fit((255 * draw(8, 40, *shape)).byte(), 300, 8)
    settings = book.settings()
    ours = FixedCodebook(**{**settings, "backend": backend}).to(CUDA)
    assert torch.equal(ours(x.to(CUDA)).cpu(), FixedCodebook(**{**settings, "backend": "reference"})(x))
    there, here = x.to(CUDA).requires_grad_(), x.clone().requires_grad_()
    wanted = torch.autograd.grad(book(here).square().sum(), here)[0]
    torch.testing.assert_close(
        torch.autograd.grad(ours(there).square().sum(), there)[0].cpu(), wanted, rtol=1e-3, atol=1e-4
    )
    identity = ours.with_surrogate("identity")
    request.getfixturevalue("no_waiting")
    if backend != "torch":
        run(ours, there)
    _, grad = run(identity, there)
    torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(grad, torch.ones_like(grad))


def run(module, x):
    out = module(x)
    return out.detach(), torch.autograd.grad(out, x, torch.ones_like(out))[0]


def test_nothing_waits(backend, draw, request):
    module, x = EssentialFeatures(backend=backend), draw(3, 8).to(CUDA).requires_grad_()
    out, grad = run(module, x)  # compiles
    request.getfixturevalue("no_waiting")
    again, grad_again = run(module, x)
    torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(out, again)
    assert torch.equal(grad, grad_again)


def test_precision_settings_and_autocast_change_nothing(backend, draw):
    module, x = EssentialFeatures(backend=backend), draw(4, 16, 3, 48, 48).to(CUDA).requires_grad_()
    out, grad = run(module, x)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            low, low_grad = run(module, x)
    finally:
        torch.set_float32_matmul_precision(before)
    assert torch.equal(out, low)
    assert torch.equal(grad, low_grad)


def test_compiled_is_eager(backend, draw):
    torch._dynamo.reset()
    module, x = EssentialFeatures(backend=backend), draw(5, 8).to(CUDA).requires_grad_()
    out, grad = run(module, x)
    compiled_out, compiled_grad = run(torch.compile(module, fullgraph=True), x)
    assert torch.equal(out, compiled_out)
    assert torch.equal(grad, compiled_grad)
    assert grad.norm() > 0


def test_unchecked_values_are_clamped(backend, draw):
    x = draw(6, 4)
    x.view(-1)[::5] = float("nan")
    x.view(-1)[1::5] += 2
    reference, ours = pair(EssentialFeatures, backend, validate=False)
    assert torch.equal(ours(x.to(CUDA)).cpu(), reference(x))
    with pytest.raises(InputError):
        EssentialFeatures(validate=True)(x.to(CUDA))
