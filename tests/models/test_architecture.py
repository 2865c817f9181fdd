"""The networks: published sizes, explicit randomness, shapes."""

import pytest
import torch

from linocut.errors import InputError
from linocut.models import NETWORKS, Architecture, build

# name, classes, channels, published number of parameters, and the precision it is published with
PUBLISHED = [
    ("madry-net", 10, 1, 3_274_634, 0),
    ("resnet-34", 1000, 3, 21_797_672, 0),
    ("wrn-34-10", 10, 3, 46_160_000, 5_000),
    ("wrn-28-4", 10, 3, 5_800_000, 50_000),
    ("wrn-16-4", 10, 3, 2_750_000, 5_000),
    ("preact-resnet-18", 10, 3, 11_170_000, 5_000),
]


def num_parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(("name", "classes", "channels", "published", "slack"), PUBLISHED)
def test_parameter_counts_equal_the_published_ones(name, classes, channels, published, slack):
    outline = Architecture(name=name, num_classes=classes, in_channels=channels).outline()
    assert abs(num_parameters(outline) - published) <= slack


def test_small_resolution_stem_changes_the_first_convolution_only():
    small = Architecture(name="resnet-34-small", num_classes=1000).outline()
    assert num_parameters(small) == 21_797_672 - 3 * 64 * (7 * 7 - 3 * 3)


@pytest.mark.parametrize(
    ("name", "side", "channels"),
    [
        ("small-net", 8, 1),
        ("madry-net", 28, 1),
        ("wrn-16-4", 32, 3),
        ("preact-resnet-18", 32, 3),
        ("resnet-34-small", 32, 3),
        ("resnet-34", 64, 3),
    ],
)
def test_logits_have_one_column_a_class_and_depend_on_the_image(name, side, channels):
    network = build(name, 7, channels).eval()
    images = torch.rand(2, channels, side, side, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = network(images)
    assert logits.shape == (2, 7)
    assert logits.isfinite().all()
    assert not torch.equal(logits[0], logits[1])


def test_resolution_inside_the_stages():
    seen = {}
    for name in ("resnet-34-small", "resnet-34"):
        network = Architecture(name=name).outline()
        network.layer1.register_forward_hook(lambda _, __, out, name=name: seen.update({name: tuple(out.shape[2:])}))
        network(torch.empty(2, 3, 64, 64, device="meta"))
    assert seen == {"resnet-34-small": (64, 64), "resnet-34": (16, 16)}


def test_every_network_is_initialised_from_its_generator_alone():
    for name in set(NETWORKS) - {"wrn-34-10"}:
        before = torch.get_rng_state()
        first, again, other = (
            build(name, generator=torch.Generator().manual_seed(seed)).state_dict() for seed in (5, 5, 6)
        )
        assert torch.equal(before, torch.get_rng_state())
        assert all(torch.equal(first[key], again[key]) for key in first)
        assert any(not torch.equal(first[key], other[key]) for key in first)
        assert all(value.isfinite().all() for value in first.values())


def test_he_initialisation_keeps_the_scale_of_a_wide_convolution():
    weight = build("wrn-16-4").block3.layer[1].conv2.weight
    assert weight.std().item() == pytest.approx((2 / (9 * weight.shape[0])) ** 0.5, rel=0.02)


@pytest.mark.parametrize("wrong", [{"name": "vgg"}, {"num_classes": 0}, {"num_classes": True}, {"in_channels": 10**9}])
def test_impossible_architectures_are_refused(wrong):
    with pytest.raises(InputError):
        Architecture(**{"name": "small-net", **wrong})
