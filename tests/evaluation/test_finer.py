"""A copy that rounds less in sixteen bits is the same network, or there is none."""

import threading

import pytest
import torch
from torch import nn

from linocut.evaluation.finer import FineHead, made_finer
from linocut.evaluation.quick import Quick, finest_format, searcher


@pytest.fixture
def images():
    return torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def body():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())


class Plain(nn.Sequential):
    """A hidden layer, and a last one whose logits are large beside their differences."""

    def __init__(self):
        torch.manual_seed(0)
        super().__init__(nn.Flatten(), nn.Linear(3 * 8 * 8, 16), nn.ReLU(), nn.Linear(16, 5))
        nn.init.constant_(self[3].bias, 30.0)


def test_a_copy_in_sixteen_bits_computes_its_logits_in_float32(images):
    network = Plain().eval()
    fine = made_finer(network, images, compiled=False)
    with torch.no_grad(), torch.autocast("cpu", torch.float16):
        rough, finer = network(images), fine(images)
    with torch.no_grad():
        true = network(images)
    assert (rough.dtype, finer.dtype) == (torch.float16, torch.float32)
    assert float((finer - true).abs().max()) < float((rough.float() - true).abs().max()) / 5
    assert type(network[3]) is nn.Linear  # the model itself is left as it was
    assert type(fine[1]) is nn.Linear
    assert [id(each) for each in fine.parameters()] == [id(each) for each in network.parameters()]


class Residual(nn.Module):
    """Adds small sums to a large one."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 5)
        self.steps = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(12))
        nn.init.constant_(self.stem.bias, 100.0)

    def forward(self, images):
        total = self.stem(images)
        for step in self.steps:
            total = total + step(torch.tanh(total - 100))
        return self.head(total.mean(dim=(2, 3)) - 100)


def test_where_it_is_compiled_a_copy_adds_up_in_float32(images):
    network = Residual().eval().requires_grad_(False)
    head_only, sums_too = (made_finer(network, images, compiled=compiled) for compiled in (False, True))
    true = network(images)
    with torch.autocast("cpu", torch.float16):
        rough, fine = ((copy(images) - true).abs().mean() for copy in (head_only, sums_too))
    assert float(fine) < float(rough) / 3
    with torch.autocast("cpu", torch.bfloat16):  # gradients are read in it: no longer format there
        assert sums_too.stem(images).dtype == torch.bfloat16


class Experts(nn.Module):
    """Writes what its last layers give into a tensor of the format that its features have."""

    def __init__(self):
        super().__init__()
        self.body, self.gate = body(), nn.Linear(16, 16)
        self.experts = nn.ModuleList(nn.Linear(16, 5) for _ in range(2))

    def forward(self, images):
        features = self.gate(self.body(images))
        found = features.new_zeros(len(images), 5)
        for i, expert in enumerate(self.experts):
            rows = (features[:, 0] > 0).eq(bool(i)).nonzero()[:, 0]
            found = found.index_add(0, rows, expert(features[rows]))
        return found


class Remembers(nn.Module):
    """Takes its features from a hook that writes to this very module, which a copy's hook does too."""

    def __init__(self):
        super().__init__()
        self.body, self.last, self.features = body(), nn.Linear(16, 5), None
        self.body.register_forward_hook(lambda module, given, found: setattr(self, "features", found))

    def forward(self, images):
        self.body(images)
        return self.last(self.features)


class Locked(nn.Sequential):
    """Holds what cannot be copied."""

    def __init__(self):
        super().__init__(body(), nn.Linear(16, 5))
        self.lock = threading.Lock()


@pytest.mark.parametrize("kind", [Experts, Remembers, Locked])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_network_without_a_true_copy_is_searched_as_it_is(images, kind, compiled):
    network = kind().eval().requires_grad_(False)
    assert made_finer(network, images, compiled=compiled) is network
    quick = searcher(network, half=True, compiled=False, probe=images[:8])
    with torch.no_grad():
        torch.testing.assert_close(quick(images), network(images), rtol=0.05, atol=0.05)


def test_a_network_that_is_made_when_it_is_first_used_is_copied(images):
    network = nn.Sequential(nn.Flatten(), nn.LazyLinear(16), nn.ReLU(), nn.LazyLinear(5)).eval()
    fine = made_finer(network, images, compiled=False)
    assert type(fine[3]) is FineHead


def test_a_network_in_training_mode_is_copied_at_rest_and_left_alone(images):
    network = nn.Sequential(nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(192, 8), nn.BatchNorm1d(8), nn.Linear(8, 5))
    network.append(nn.Dropout(0.9)).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    quick = searcher(network, half=True, compiled=False, probe=images[:4])
    with torch.no_grad():
        found = quick(images)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert all(module.training for module in network.modules())
    assert all(parameter.requires_grad for parameter in network.parameters())
    torch.testing.assert_close(found, network.eval()(images), rtol=0.02, atol=0.02)


class Loud(nn.Module):
    """The same logits by way of numbers that float16 does not hold."""

    def __init__(self, network):
        super().__init__()
        self.network, self.back = network, nn.Linear(5, 5, bias=False)
        nn.init.eye_(self.back.weight)

    def forward(self, images):
        return self.back(1e6 * self.network(images)) / 1e6


class LikeAGPU(nn.Module):
    """Rounds the factors of its products to TF32's ten bits, where a GPU may."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return self.network(images.half().float() if torch.backends.cudnn.allow_tf32 else images)


def test_float16_is_fine_enough_where_the_model_is_no_finer(images):
    network, deep = nn.Sequential(nn.Flatten(), nn.Linear(192, 5)).eval(), Plain().eval()
    for behind, model, wanted in (
        (made_finer(network, images, compiled=False), LikeAGPU(network), torch.float16),
        (Loud(network).eval(), LikeAGPU(network), torch.float32),  # leaves the range of float16
        (deep, LikeAGPU(deep), torch.float32),  # rounds its logits, which are large
        (made_finer(deep, images, compiled=False), LikeAGPU(deep), torch.float16),
        (made_finer(deep, images, compiled=False), deep, torch.float32),  # the model has all bits
    ):
        quick = Quick(behind, model, dtype=torch.bfloat16)
        assert finest_format(quick, model, images) == wanted


@pytest.mark.parametrize(("side", "count"), [(8, 512), (32, 512), (224, 40)])
def test_how_fine_a_model_is_is_asked_in_a_batch_of_the_usual_size(side, count):
    sizes = []

    def model(images):
        sizes.append(len(images))
        return images.mean(dim=(2, 3))

    finest_format(Quick(model, model, dtype=torch.bfloat16), model, torch.rand(40, 3, side, side))
    assert set(sizes) == {count}
