"""The Triton backend equals the reference bit for bit: on a GPU where there is one, else under Triton's interpreter.

The interpreter must be chosen before Triton is first imported, so without a GPU this file runs once more in a process
of its own, with TRITON_INTERPRET set.
"""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from linocut.transform import reference
from linocut.transform.kernels import numpy_loop
from linocut.transform.settings import NO_BLUR, BlurRule, PaletteRule

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"

if importlib.util.find_spec("triton") is None:
    pytest.skip("triton is not installed", allow_module_level=True)

needs_kernels = pytest.mark.skipif(
    DEVICE == "cpu" and not INTERPRETED,
    reason="no GPU: test_under_the_interpreter runs this in a process of its own",
)

CIFAR = BlurRule.of((5, 3, 1), (20, 40))
MNIST = BlurRule.of((3, 1, 1), (20, 40))


@pytest.fixture
def backend(monkeypatch):
    """The backend, and an interpreter that can read loop bounds with NumPy 2.4 and later."""
    if INTERPRETED:
        from triton.runtime import interpreter

        patch = interpreter._patch_lang_tensor

        def patch_and_mend(tensor, scope):
            patch(tensor, scope)
            scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

        monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch_and_mend)
    from linocut.transform.kernels import triton_cuda

    return triton_cuda


def natural(*shape, seed=0):
    """Smooth whole-level images that use the full range."""
    x = np.random.default_rng(seed).normal(size=shape).cumsum(2).cumsum(3)
    x -= x.min(axis=(2, 3), keepdims=True)
    x /= np.maximum(x.max(axis=(2, 3), keepdims=True), 1e-9)
    return (np.rint(x * 255) / 255).astype(np.float32)


def noise(*shape, seed=0):
    """Independent uniform values."""
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def on_bin_faces(*shape):
    """Few levels, most of them multiples of 16, where a pixel is as near to two centres or to eight."""
    levels = np.random.default_rng(1).choice([0, 16, 32, 48, 20, 40], size=shape)
    return (levels / 255).astype(np.float32)


def out_of_range():
    """NaN, infinities and values beyond the unit range."""
    x = noise(1, 3, 4, 5) * 3 - 1
    x[0, 0, 0, :3] = np.nan, np.inf, -np.inf
    return x


def two_halves():
    """Two clusters an eighth of a level apart."""
    x = np.full((1, 1, 1, 4), 128, dtype=np.float32)
    x[..., :2] = 127
    return x / 2040


CASES = {
    "cifar": (natural(1, 3, 8, 9), CIFAR, PaletteRule(separation=192)),
    "ties on bin faces": (on_bin_faces(1, 3, 8, 8), NO_BLUR, PaletteRule(separation=20)),
    "ties, no step": (on_bin_faces(1, 3, 8, 8), NO_BLUR, PaletteRule(separation=0, lloyd_steps=0)),
    "grey": (natural(1, 1, 12, 12), MNIST, PaletteRule(separation=1836, at_least_two=True)),
    "grey ties": (on_bin_faces(1, 1, 5, 5), NO_BLUR, PaletteRule(separation=10)),
    "two farthest": (natural(1, 3, 5, 5), NO_BLUR, PaletteRule(separation=4000, at_least_two=True)),
    "two that are near": (two_halves(), NO_BLUR, PaletteRule(separation=90, at_least_two=True)),
    "two of many": (natural(1, 3, 5, 5), NO_BLUR, PaletteRule(separation=500, at_least_two=True)),
    "order of bins": (natural(1, 3, 6, 6), NO_BLUR, PaletteRule(separation=192, by_population=False)),
    "fine bins": (noise(1, 3, 6, 6), NO_BLUR, PaletteRule(separation=192, bin_levels=3, lloyd_steps=3)),
    "keys too large": (noise(1, 3, 9, 9), NO_BLUR, PaletteRule(separation=192, bin_levels=100)),
    "one bin": (noise(1, 3, 4, 4), NO_BLUR, PaletteRule(separation=192, bin_levels=256)),
    "many colours": (noise(1, 3, 17, 17), NO_BLUR, PaletteRule(separation=800, lloyd_steps=2)),
    "one step": (natural(1, 3, 6, 6), NO_BLUR, PaletteRule(separation=192, lloyd_steps=1)),
    "thumbnail": (
        natural(1, 3, 21, 13),
        NO_BLUR,
        PaletteRule(separation=192, thumbnail_size=8, lloyd_steps=2),
    ),
    "one axis shrunk": (
        natural(1, 3, 5, 11),
        NO_BLUR,
        PaletteRule(separation=192, thumbnail_size=8, lloyd_steps=2),
    ),
    "wide kernel, tiny image": (
        noise(1, 3, 2, 3),
        BlurRule.of((9, 7, 3), (20, 40)),
        PaletteRule(separation=192),
    ),
    "one pixel": (noise(1, 3, 1, 1), CIFAR, PaletteRule(separation=192)),
    "one column, two windows": (natural(1, 1, 65, 1), MNIST, PaletteRule(separation=192, lloyd_steps=2)),
    "windows both ways": (
        natural(1, 1, 70, 66),
        BlurRule.of((11, 5, 3), (10, 20)),
        PaletteRule(separation=96, thumbnail_size=8, lloyd_steps=2),
    ),
    "a kernel wider than windows": (
        natural(1, 1, 66, 3),
        BlurRule.of((61, 5), (20,)),
        PaletteRule(separation=192, thumbnail_size=8, lloyd_steps=2),
    ),
    "many groups of pixels": (natural(1, 3, 16, 17), NO_BLUR, PaletteRule(separation=500, lloyd_steps=3)),
    "out of range": (out_of_range(), NO_BLUR, PaletteRule(separation=192)),
}


@needs_kernels
@pytest.mark.parametrize(("channels", "shared"), [(1, False), (3, False), (3, True)])
def test_the_soft_slope_is_the_references(backend, channels, shared):
    dice = np.random.default_rng(4)
    y = torch.from_numpy(dice.integers(0, 2041, (3, channels, 9, 17), dtype=np.int16))
    palette = torch.from_numpy(dice.integers(0, 2041, (3, 11, channels), dtype=np.int16))
    y[0], palette[0] = y[0, :1], palette[0, :, :1]  # greys: all channels hold the largest difference
    y[1, :, 0, 0] = palette[1, 0]
    palette = palette[:1].expand(3, -1, -1) if shared else palette
    count = torch.tensor([11, 11, 11] if shared else [11, 1, 5], dtype=torch.int32)
    grad = torch.from_numpy(dice.normal(size=y.shape).astype(np.float32))
    ours = backend.through_soft_codebook(*(part.to(DEVICE) for part in (grad, y, palette, count)), 0.1)
    wanted = numpy_loop.through_soft_codebook(grad, y, palette, count, 0.1)
    torch.testing.assert_close(ours.cpu(), wanted, rtol=1e-4, atol=1e-4)
    assert wanted.norm() > 0


@needs_kernels
@pytest.mark.parametrize("name", CASES)
def test_every_stage_equals_the_reference(backend, monkeypatch, name):
    images, blur, palette = CASES[name]
    x = torch.from_numpy(images).to(DEVICE)
    y, level = backend.blur(x, blur)
    found_as_few = backend.find_palette(y, palette)
    if blur in (NO_BLUR, CIFAR):  # the other cases are about the blur
        monkeypatch.setattr(backend.launch, "MANY", 0)
        for few, many in zip(found_as_few, backend.find_palette(y, palette), strict=True):
            assert torch.equal(few, many)
    colors, population, num_colors = found_as_few
    painted = backend.paint(y, colors, num_colors)
    assert np.array_equal(x.cpu().numpy(), images, equal_nan=True)
    assert colors.shape[1] == palette.most_colors(*images.shape[1:])
    for i, image in enumerate(images):
        blurred, choice = reference.adaptive_blur(reference.enter(image), blur)
        assert np.array_equal(y[i].cpu(), blurred)
        assert np.array_equal(level[i].cpu(), choice)
        found = reference.find_palette(blurred, palette)
        n = len(found.colors)
        assert num_colors[i] == n
        assert np.array_equal(colors[i, :n].cpu(), found.colors)
        assert np.array_equal(population[i, :n].cpu(), found.population)
        assert not colors[i, n:].any()
        assert not population[i, n:].any()
        assert np.array_equal(painted[i].cpu(), reference.leave(reference.paint(blurred, found.colors)[0]))


def frozen_blur_matrix(level, blur):
    """(H*W, H*W) float64: what each output pixel takes from each input pixel when kernels are frozen."""
    height, width = level.shape
    matrix = np.zeros((height * width, height * width))
    for k, size in enumerate(blur.kernel_sizes):
        weights, shift = reference.gaussian_weights(size)
        axes = []
        for length in (height, width):
            axis = np.zeros((length, length))
            mirrored = reference.reflect(length, size // 2)
            for output in range(length):
                for i, weight in enumerate(weights):
                    axis[output, mirrored[output + i]] += weight / 2**shift
            axes.append(axis)
        matrix[level.ravel() == k] = np.kron(*axes)[level.ravel() == k]
    return matrix


@needs_kernels
@pytest.mark.parametrize(
    ("height", "width", "sizes"),
    [
        (6, 7, (5, 3, 1)),
        (2, 3, (5, 3, 1)),
        (1, 4, (7, 3, 1)),
        (3, 2, (9, 5, 3)),
        (67, 2, (3, 1, 1)),
        (66, 65, (11, 5, 3)),
    ],
)
def test_transpose_equals_the_matrix(backend, height, width, sizes):
    blur = BlurRule.of(sizes, (20, 40))
    level = np.random.default_rng(2).integers(0, 3, size=(1, 1, height, width), dtype=np.uint8)
    grad = np.random.default_rng(3).normal(size=level.shape).astype(np.float32)
    got = backend.blur_transpose(torch.from_numpy(grad).to(DEVICE), torch.from_numpy(level).to(DEVICE), blur)
    wanted = frozen_blur_matrix(level[0, 0], blur).T @ grad.ravel().astype(np.float64)
    assert np.allclose(got.cpu().numpy().ravel(), wanted, rtol=0, atol=1e-6)


@needs_kernels
@pytest.mark.parametrize("threshold", [10**6, 0], ids=["few", "many"])
def test_programs_take_one_image_after_another(backend, monkeypatch, threshold):
    """More images than programs; small groups, so that an image has several."""
    monkeypatch.setattr(backend.launch, "MANY", threshold)
    monkeypatch.setattr(backend.launch, "FEW_IMAGES", backend.launch.FEW_IMAGES._replace(programs=1))
    many = backend.launch.MANY_IMAGES._replace(programs=1, group=32)
    monkeypatch.setattr(backend.launch, "MANY_IMAGES", many)
    rule = PaletteRule(separation=192, lloyd_steps=8)
    images = natural(2, 3, 6, 7, seed=4)
    y, _ = backend.blur(torch.from_numpy(images).to(DEVICE), NO_BLUR)
    colors, population, num_colors = backend.find_palette(y, rule)
    for i, image in enumerate(images):
        wanted = reference.find_palette(reference.enter(image), rule)
        assert num_colors[i] == len(wanted.colors)
        assert np.array_equal(colors[i, : num_colors[i]].cpu(), wanted.colors)
        assert np.array_equal(population[i, : num_colors[i]].cpu(), wanted.population)


@pytest.mark.skipif(not INTERPRETED, reason="only the interpreter shows every access")
def test_few_images_write_nothing_that_was_read_since_the_last_barrier(backend, monkeypatch):
    """Fewer centres than threads are held by several warps, one of which writes: a slow one would read too late."""
    from triton.runtime.interpreter import InterpreterBuilder

    read, early = set(), []

    def spy(name, look):
        plain = getattr(InterpreterBuilder, name)
        monkeypatch.setattr(InterpreterBuilder, name, lambda self, *given: (look(*given), plain(self, *given))[1])

    def places(pointers, mask):
        return set(pointers.data[np.broadcast_to(mask.data, pointers.data.shape).astype(bool)].tolist())

    spy("create_barrier", lambda: read.clear())
    spy("set_grid_idx", lambda *_: read.clear())
    spy("create_masked_load", lambda at, mask, *_: read.update(places(at, mask)))
    spy("create_masked_store", lambda at, value, mask, *_: early.extend(read & places(at, mask)))
    spy("create_atomic_rmw", lambda op, at, value, mask, *_: early.extend(read & places(at, mask)))
    images = torch.from_numpy(natural(2, 1, 12, 12)).to(DEVICE)
    y, _ = backend.blur(images, NO_BLUR)
    monkeypatch.setattr(backend.launch, "FEW_IMAGES", backend.launch.FEW_IMAGES._replace(programs=1))
    for rule in (PaletteRule(separation=1836, at_least_two=True), PaletteRule(separation=1836, bin_levels=1)):
        backend.find_palette(y, rule)
    assert not early


@pytest.mark.parametrize("side", [8, 28, 64])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("setting", ["FEW_IMAGES", "MANY_IMAGES"])
def test_no_thread_gets_a_copy_of_another_threads_centre(backend, setting, channels, side):
    for levels in (1, 16, 128):
        rule = PaletteRule(separation=24, bin_levels=levels, thumbnail_size=64)
        chosen = getattr(backend.launch, setting)
        plan = backend.launch.palette_plan(rule, 512, channels, side, side, torch.device("cpu"), chosen)
        assert 32 * plan.constants["num_warps"] <= plan.constants["BLOCK"]


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA device: the interpreter has one thread")
@pytest.mark.parametrize("channels", [1, 3])
def test_warps_agree_launch_after_launch(backend, channels):
    """A race between them shows in one launch of many: without its barrier MNIST faulted within 150."""
    rule = PaletteRule(separation=1836, at_least_two=True)
    y, _ = backend.blur(torch.from_numpy(natural(512, channels, 28, 28)).to(DEVICE), NO_BLUR)
    wanted = [part.to(DEVICE) for part in numpy_loop.find_palette(y[:8].cpu(), rule)]
    first = backend.find_palette(y, rule)
    for mine, true in zip(first, wanted, strict=True):
        assert torch.equal(mine[:8].cpu(), true.cpu())
    for _ in range(300):
        assert all(torch.equal(*pair) for pair in zip(backend.find_palette(y, rule), first, strict=True))


def test_a_large_batch_goes_to_the_kernel_for_many(backend):
    few, many = (backend.launch.setting_for(n, torch.device("cpu")) for n in (15, 16))
    assert isinstance(few, backend.launch.Few)
    assert isinstance(many, backend.launch.Many)


@needs_kernels
def test_any_strides_and_empty_batches(backend):
    rule = PaletteRule(separation=192)
    x = torch.from_numpy(natural(2, 3, 6, 5)).to(DEVICE)
    y, _ = backend.blur(x, NO_BLUR)
    strided, _ = backend.blur(x.to(memory_format=torch.channels_last), NO_BLUR)
    assert torch.equal(y, strided)
    found = backend.find_palette(y, rule)
    for a, b in zip(found, backend.find_palette(y.to(memory_format=torch.channels_last), rule), strict=True):
        assert torch.equal(a, b)
    empty, level = backend.blur(x[:0], CIFAR)
    colors, population, num_colors = backend.find_palette(empty, rule)
    assert level.shape == (0, 3, 6, 5)
    assert (len(colors), len(population), len(num_colors)) == (0, 0, 0)
    assert backend.paint(empty, colors, num_colors).shape == (0, 3, 6, 5)
    assert backend.blur_transpose(x[:0], level, CIFAR).shape == (0, 3, 6, 5)


@needs_kernels
@pytest.mark.parametrize("shape", [(1, 5, 7), (3, 9, 4), (3, 1, 1)])
def test_fixed_codebook_equals_the_reference(backend, shape):
    rng = np.random.default_rng(5)
    y = torch.from_numpy(rng.integers(0, 2041, (3, *shape), dtype=np.int16))
    for codes in (rng.integers(0, 256, (40, shape[0])), 32 * rng.integers(0, 8, (9, shape[0]))):  # the latter tie often
        colors = torch.from_numpy(8 * codes.astype(np.int16))
        painted = backend.paint_linf(y.to(DEVICE), colors.to(DEVICE)).cpu()
        assert torch.equal(painted, numpy_loop.paint_linf(y, colors))
    assert backend.paint_linf(y[:0].to(DEVICE), colors.to(DEVICE)).shape == (0, *shape)


@needs_kernels
@pytest.mark.skipif(DEVICE == "cpu", reason="CUDA graphs need a GPU")
def test_a_cuda_graph_can_hold_it(backend):
    rule = PaletteRule(separation=192)

    def transform(x):
        y, _ = backend.blur(x, CIFAR)
        colors, _, num_colors = backend.find_palette(y, rule)
        return backend.paint(y, colors, num_colors)

    x = torch.from_numpy(natural(3, 3, 32, 32)).cuda()
    wanted = transform(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = transform(x)
    got.fill_(-1)
    graph.replay()
    assert torch.equal(got, wanted)


@pytest.mark.skipif(DEVICE == "cuda" or INTERPRETED, reason="the kernels run on the GPU, or this is that process")
def test_under_the_interpreter():
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    ran = subprocess.run(
        command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert " passed" in ran.stdout
