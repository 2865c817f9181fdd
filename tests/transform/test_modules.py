"""The modules' public face: settings, presets, explanations, and what they leave alone."""

import copy
import json
from fractions import Fraction

import numpy as np
import pytest
import torch

from linocut.errors import InputError
from linocut.transform.modules import AdaptiveBlur, AdaptiveCodebook, EssentialFeatures
from linocut.transform.presets import PRESETS, rescale_kernel

MODULES = [EssentialFeatures, AdaptiveBlur, AdaptiveCodebook]


@pytest.mark.parametrize("transform", MODULES)
def test_settings_make_the_module_again(transform, draw):
    module = transform.preset("mnist")
    again = transform(**json.loads(json.dumps(module.settings())))
    assert repr(again) == repr(module)
    assert again.settings() == module.settings()
    x = draw(1, 6, channels=1)
    assert torch.equal(again(x), module(x))


def test_settings_are_plain_and_a_copy():
    given = {
        "eps": np.float32(0.25),
        "bin_levels": np.int64(8),
        "kernel_sizes": np.array([5, 1]),
        "edge_thresholds": [Fraction(19, 2)],
        "softness": Fraction(1, 10),
    }
    module = EssentialFeatures(**given, at_least_two=np.True_, validate=np.True_)
    written = json.dumps(module.settings())
    assert json.loads(written) == module.settings()
    assert json.loads(json.dumps(EssentialFeatures(eps=Fraction(8, 255)).settings()))["eps"] == 8 / 255
    module.settings()["kernel_sizes"].append(1)
    assert json.dumps(module.settings()) == written


def test_repr_shows_every_setting():
    module = EssentialFeatures(eps=4 / 255, order="bins")
    assert all(f"{key}=" in repr(module) for key in module.settings())
    assert "eps=4/255" in repr(module)
    assert "order='bins'" in repr(module)


@pytest.mark.parametrize("transform", MODULES)
def test_no_state_and_copies(transform, draw):
    module, x = transform(), draw(2, 4)
    assert not list(module.parameters())
    assert not module.state_dict()
    assert torch.equal(copy.deepcopy(module)(x), module(x))


@pytest.mark.parametrize("transform", MODULES)
def test_input_is_left_alone_and_layout_does_not_matter(transform, draw, backend):
    x = draw(3, 6, 3, 12, 16)
    kept, module = x.clone(), transform(backend=backend)
    out = module(x)
    assert torch.equal(x, kept)
    assert (out.shape, out.dtype, out.device) == (x.shape, x.dtype, x.device)
    assert out.is_contiguous()
    wide = torch.zeros(6, 3, 12, 32)
    wide[..., ::2] = x
    for same in (x.contiguous(memory_format=torch.channels_last), wide[..., ::2], x.flip(0).flip(0)):
        assert torch.equal(module(same), out)
    assert torch.equal(module(x[:1].expand(4, -1, -1, -1)), out[:1].expand(4, -1, -1, -1))


@pytest.mark.parametrize("transform", MODULES)
def test_empty_batches_give_empty_batches(transform, backend):
    x = torch.empty(0, 3, 5, 6, requires_grad=True)
    out = transform(backend=backend)(x)
    assert out.shape == x.shape
    out.sum().backward()
    assert x.grad.shape == x.shape
    assert transform(backend=backend).explain(x) == []


def test_both_together_are_one_after_the_other(draw):
    x = draw(4, 12)
    blurred = AdaptiveBlur()(x)  # whole eighths, so that entering again changes nothing
    assert torch.equal(AdaptiveCodebook()(blurred), EssentialFeatures()(x))


def test_whole_levels_are_exact():
    levels = torch.arange(256, dtype=torch.float32).view(1, 1, 16, 16)
    out = AdaptiveBlur(kernel_sizes=(1,), edge_thresholds=())(levels / 255)
    assert torch.equal(out, levels / 255)


def test_explanation(draw, photographs, backend):
    x = torch.cat([draw(5, 3, 3, 40, 50), photographs[:1, :, 100:140, 100:150]])
    module = EssentialFeatures(backend=backend)
    for image, out, e in zip(x, module(x), module.explain(x), strict=True):
        assert torch.equal(e.input, image)
        assert torch.equal(e.output, out)
        assert torch.equal(e.blurred, AdaptiveBlur(backend=backend)(image[None])[0])
        counted = (e.edge_response > 20).byte() + (e.edge_response > 40).byte()
        assert torch.equal(counted, e.kernel_index)
        assert e.labels.shape == (40, 50)
        assert e.labels.max() < len(e.palette) == len(e.population)
        assert 0 < e.population.sum() <= 32 * 32


def test_notes():
    pale = torch.tensor([0.50, 0.50, 0.60, 0.60]).view(1, 1, 2, 2)
    (e,) = AdaptiveCodebook(eps=0.3, at_least_two=True).explain(pale)
    assert len(e.palette) == 2
    assert "closer than 229.5 levels" in e.note
    (e,) = AdaptiveCodebook(eps=0.3).explain(pale)
    assert "1 colour" in e.note
    (e,) = AdaptiveCodebook(eps=0.01).explain(pale)
    assert "2 colours, each at least" in e.note
    (e,) = AdaptiveBlur().explain(pale)
    assert (e.palette, e.labels, e.note) == (None, None, "no codebook")


@pytest.mark.parametrize("transform", [EssentialFeatures, AdaptiveCodebook])
def test_frozen_palettes(transform, draw):
    x, other = draw(6, 8), draw(7, 8)
    module = transform()
    frozen = module.frozen(x)
    assert torch.equal(frozen(x), module(x))
    colors = {tuple(c) for c in module(x[:1])[0].flatten(1).T.tolist()}
    assert {tuple(c) for c in frozen(other)[0].flatten(1).T.tolist()} <= colors | {
        tuple(c) for c in module.explain(x[:1])[0].palette.tolist()
    }
    moving = other.clone().requires_grad_()
    frozen(moving).sum().backward()
    assert moving.grad.norm() > 0
    with pytest.raises(InputError, match="8 frozen palettes"):
        frozen(other[:3])
    assert "8 palettes" in repr(frozen)


def test_presets():
    names = ("mnist", "fashion-mnist", "cifar-10", "gtsrb", "resisc45", "imagenette")
    assert tuple(PRESETS) == names
    levels = [EssentialFeatures.preset(n).palette_rule.separation / 8 for n in names]
    assert levels == [229.5, 76.5, 24, 24, 24, 12]
    assert [EssentialFeatures.preset(n).settings()["at_least_two"] for n in names] == [True] + [False] * 5
    assert EssentialFeatures.preset("imagenette").settings()["edge_thresholds"] == [10, 20]
    assert EssentialFeatures.preset("imagenette", 112).settings()["kernel_sizes"] == [5, 3, 1]
    assert EssentialFeatures.preset("imagenette", (448, 500)).settings()["kernel_sizes"] == [21, 9, 5]
    assert EssentialFeatures.preset("imagenette", np.int64(112)).settings()["kernel_sizes"] == [5, 3, 1]
    for bad in ("cifar", None, []):
        with pytest.raises(InputError, match="preset must be one of"):
            EssentialFeatures.preset(bad)
    for size in (0, -3, 2.5, (), (32, "a"), True, b"a", "64"):
        with pytest.raises(InputError, match="image_size"):
            EssentialFeatures.preset("mnist", size)


def test_rescaled_kernels_are_the_nearest_odd_numbers():
    for size in (1, 3, 5, 7, 11, 13):
        for side in range(1, 700, 13):
            share = size * side / 224
            wanted = min(range(1, 61, 2), key=lambda k: (abs(k - share), k))
            assert rescale_kernel(size, side, 224) == wanted


@pytest.mark.parametrize(
    "settings",
    [
        {"eps": -0.1},
        {"eps": 8},
        {"eps": float("nan")},
        {"eps": "8/255"},
        {"eps": None},
        {"separation": -1},
        {"separation": float("inf")},
        {"at_least_two": "no"},
        {"bin_levels": float("nan")},
        {"bin_levels": float("inf")},
        {"bin_levels": None},
        {"thumbnail_size": True},
        {"bin_levels": 0},
        {"bin_levels": 2.5},
        {"thumbnail_size": 65},
        {"lloyd_steps": -1},
        {"order": "size"},
        {"backend": "cuda"},
        {"validate": "yes"},
        {"kernel_sizes": (4,)},
        {"kernel_sizes": 5},
        {"kernel_sizes": np.array(5)},
        {"kernel_sizes": (4003,), "edge_thresholds": ()},
        {"kernel_sizes": (10**400 + 1,), "edge_thresholds": ()},
        {"edge_thresholds": 20},
        {"edge_thresholds": None},
        {"edge_thresholds": (20, 10**400)},
        {"eps": 10**400},
        {"separation": 10**400},
        {"lloyd_steps": 10**400},
        {"softness": 10**400},
        {"backend": ["numba"]},
    ],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(InputError):
        EssentialFeatures(**settings)
