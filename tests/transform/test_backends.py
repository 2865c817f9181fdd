"""Every backend gives the bits of the reference, whatever the batch, the order, the threads or the image."""

import time

import numpy as np
import pytest
import torch

from linocut.transform import reference
from linocut.transform.kernels import dispatch, numpy_loop, torch_nearest, torch_ops, torch_palette
from linocut.transform.modules import EssentialFeatures
from linocut.transform.settings import NO_BLUR, BlurRule, PaletteRule

CPU = torch.device("cpu")
BLURS = (
    BlurRule.of((5, 3, 1), (20, 40)),
    BlurRule.of((13, 7, 3), (20, 40)),
    BlurRule.of((31, 9), (5.5,)),
    BlurRule.of((3, 3, 1, 1), (10, 20, 30)),
    BlurRule.of((7,), ()),
    NO_BLUR,
)


def draw_rule(rng):
    return PaletteRule.of(
        eps=rng.choice([8 / 255, 4 / 255, 0.1, 0.3, 0.0]),
        separation=3.0,
        bin_levels=int(rng.choice([16, 16, 16, 1, 7, 64, 256])),
        thumbnail_size=int(rng.choice([32, 32, 8, 1])),
        lloyd_steps=int(rng.choice([20, 20, 0, 1, 3])),
        order=str(rng.choice(["population", "bins"])),
        at_least_two=bool(rng.integers(2)),
    )


def everything(kernels, x, blur, rule):
    y, level = kernels.blur(x, blur)
    colors, population, num_colors = kernels.find_palette(y, rule)
    return y, level, colors, population, num_colors, kernels.paint(y, colors, num_colors)


def check_same(kernels, x, blur, rule):
    names = ("blurred", "level", "colors", "population", "num_colors", "painted")
    ours, wanted = everything(kernels, x, blur, rule), everything(numpy_loop, x, blur, rule)
    for name, a, b in zip(names, ours, wanted, strict=True):
        assert a.dtype == b.dtype, name
        assert a.is_contiguous(), name
        assert torch.equal(a, b), f"{name} of {tuple(x.shape)} under {blur} and {rule}"
    dice = torch.Generator().manual_seed(0)
    grad = torch.randn(x.shape, generator=dice)
    back, exact = (k.blur_transpose(grad, ours[1], blur) for k in (kernels, numpy_loop))
    assert back.dtype == torch.float32
    torch.testing.assert_close(back, exact, rtol=0, atol=2e-5)


def test_the_module_is_the_reference_read_from_its_top(backend, draw):
    x = draw(17, 24)
    module = EssentialFeatures(eps=0.05, order="bins", at_least_two=True, thumbnail_size=8, backend=backend)
    rule = PaletteRule(separation=306, thumbnail_size=8, by_population=False, at_least_two=True)  # 8 * 3 * 255 * 0.05
    wanted = [reference.essential_features(image, BLURS[0], rule) for image in x.numpy()]
    assert torch.equal(module(x), torch.from_numpy(np.stack(wanted)))


def test_mixed_images(backend, draw, count):
    """count(200, 2400) images of mixed sizes, kinds and settings."""
    rng = np.random.default_rng(2024)
    kernels = dispatch.backend(backend, CPU)
    for case in range(count(50, 600)):
        height, width = (int(n) for n in rng.integers(1, 70 if case % 5 == 0 else 24, size=2))
        x = draw(case, 4, (1, 3)[case % 2], height, width)
        check_same(kernels, x, BLURS[case % len(BLURS)], draw_rule(rng))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 2), (1, 9), (40, 1), (2, 2), (3, 2), (1, 700), (129, 65)])
def test_odd_sizes(backend, draw, channels, height, width):
    rng = np.random.default_rng(height)
    for blur in BLURS[:3]:
        check_same(dispatch.backend(backend, CPU), draw(width, 2, channels, height, width), blur, draw_rule(rng))


@pytest.mark.parametrize("separation", [1.7, 25, 1e10, 1e300])
def test_a_separation_beyond_all_colors_keeps_one(backend, draw, separation):
    x = draw(3, 6)
    settings = {"eps": 1.0, "separation": separation}
    one = EssentialFeatures(**settings, backend=backend)(x)
    assert torch.equal(one, EssentialFeatures(**settings, backend="reference")(x))
    if separation > 3**0.5:
        assert all(e.output.flatten(1).unique(dim=1).shape[1] == 1 for e in EssentialFeatures(**settings).explain(x))


def test_empty_batch(backend):
    kernels = dispatch.backend(backend, CPU)
    check_same(kernels, torch.empty(0, 3, 8, 9), BLURS[0], draw_rule(np.random.default_rng(0)))


def test_photographs(backend, photographs):
    kernels = dispatch.backend(backend, CPU)
    rule = EssentialFeatures.preset("resisc45")
    crop = photographs[:, :, 50:306, 100:356]
    assert torch.equal(
        EssentialFeatures(**{**rule.settings(), "backend": backend})(crop),
        EssentialFeatures(**{**rule.settings(), "backend": "reference"})(crop),
    )
    check_same(kernels, photographs[:1, :, ::3, ::2], BLURS[0], draw_rule(np.random.default_rng(1)))


def test_cifar(backend, cifar, count):
    kernels = dispatch.backend(backend, CPU)
    rule = PaletteRule(separation=192)
    x = cifar[:: 10000 // count(64, 2000)].float() / 255
    check_same(kernels, x, BLURS[0], rule)


def test_noise_with_as_many_clusters_as_pixels(backend):
    x = torch.rand((2, 3, 32, 32), generator=torch.Generator().manual_seed(5))
    check_same(dispatch.backend(backend, CPU), x, NO_BLUR, PaletteRule(separation=24, bin_levels=1))


def test_noise_costs_at_most_fifteen_times_a_photograph(backend, photographs, one_thread):
    """Of 1,024 thumbnail pixels of noise nearly each is a cluster of its own."""
    transform = EssentialFeatures(backend=backend)
    natural = torch.nn.functional.interpolate(photographs[:, :, :400, :400], size=(32, 32), mode="area")
    noise = torch.rand(natural.shape, generator=torch.Generator().manual_seed(0))

    def seconds(x):
        transform(x)
        spent = []
        for _ in range(5):
            start = time.thread_time()
            transform(x)
            spent.append(time.thread_time() - start)
        return min(spent)

    assert seconds(noise) <= 15 * seconds(natural)


def test_unchecked_values_are_clamped_and_nan_is_black(backend, draw):
    x = draw(11, 4)
    dirty = x.clone()
    dirty.view(-1)[::7] += 3
    dirty.view(-1)[1::7] -= 3
    dirty.view(-1)[2::7] = float("nan")
    dirty.view(-1)[3::7] = float("inf")
    dirty.view(-1)[4::7] = -float("inf")
    check_same(dispatch.backend(backend, CPU), dirty, BLURS[0], PaletteRule(separation=192))
    clean = dirty.nan_to_num(0.0, 1.0, 0.0).clamp(0, 1)
    transform = EssentialFeatures(backend=backend, validate=False)
    assert torch.equal(transform(dirty), transform(clean))


def test_batch_mates_and_order_do_not_matter(backend, draw):
    transform = EssentialFeatures(backend=backend)
    x = draw(12, 40)
    whole = transform(x)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    assert torch.equal(transform(x[order]), whole[order])
    assert torch.equal(torch.cat([transform(x[i : i + 1]) for i in range(len(x))]), whole)


def test_threads_do_not_matter(backend, draw, photographs, one_thread):
    transform = EssentialFeatures(kernel_sizes=(11, 5, 3), backend=backend)
    inputs = draw(13, 40), photographs[:1, :, :180, :200]
    alone = [transform(x) for x in inputs]
    torch.set_num_threads(3)
    assert all(torch.equal(transform(x), wanted) for x, wanted in zip(inputs, alone, strict=True))


def test_batches_of_all_sizes_share_one_pool_of_threads(draw, one_thread):
    pytest.importorskip("numba")
    from linocut.transform.kernels import numba_cpu

    numba_cpu.thread_pool.cache_clear()
    torch.set_num_threads(4)
    for size in (2, 3, 4, 9):
        EssentialFeatures(backend="numba")(draw(16, size, 1, 4, 4))
    assert numba_cpu.thread_pool.cache_info().currsize == 1


def test_strips_do_not_matter(monkeypatch, draw):
    """The torch backend cuts its work into strips; here into strips far smaller than any image."""
    for module in (torch_nearest, torch_ops, torch_palette):
        monkeypatch.setattr(module, "strip_elements", lambda device: 601)
    for channels in (1, 3):
        rule = PaletteRule(separation=192, at_least_two=True)
        check_same(torch_ops, draw(14, 3, channels, 35, 40), BLURS[0], rule)


def test_full_width_tables_give_the_same(draw):
    """On CUDA no number is read back, so every row of a palette is compared, used or not. Here on the CPU."""
    x = draw(15, 6)
    blur, rule = BLURS[0], PaletteRule(separation=192)
    wanted = everything(numpy_loop, x, blur, rule)
    y, _ = torch_ops.blur(x, blur)
    table = torch_nearest.ColorTable(wanted[2], wanted[4])
    table.widths = [wanted[2].shape[1]] * len(x)  # every row, as on CUDA
    for b, n, owner in table.nearest(y.flatten(2)):
        painted = torch_ops.leave(wanted[2])[b].gather(1, owner[:, :, None].expand(-1, -1, 3))
        assert torch.equal(painted.transpose(1, 2), wanted[5].flatten(2)[b, :, n])
