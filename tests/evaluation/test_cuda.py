"""On a GPU: a replayed pass is the pass itself, whatever comes in between."""

import pytest
import torch
from torch import nn

from linocut.attacks import PGD, Dice, ThreatModel
from linocut.attacks.gradients import look, read
from linocut.attacks.losses import margin
from linocut.evaluation.quick import layout_of, searcher
from linocut.evaluation.replayed import SEEN_BEFORE, Replayed
from linocut.evaluation.request import take_quick_layout
from linocut.models import Defended, build
from linocut.transform.modules import EssentialFeatures

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch's own, while it compiles
]


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return build("wrn-16-4", 10, 3).cuda().eval().requires_grad_(False)


def batches(count, size, seed=0):
    dice = torch.Generator(device="cuda").manual_seed(seed)
    return [torch.rand(size, 3, 32, 32, device="cuda", generator=dice) for _ in range(count)]


def gradient(model, images):
    leaf = images.clone().requires_grad_()
    logits = model(leaf)
    return logits.detach().clone(), torch.autograd.grad(logits.float().square().sum(), leaf)[0]


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_replayed_passes_give_the_same_bits(network, half):
    replayed = Replayed(network)
    with torch.autocast("cuda", torch.bfloat16, enabled=half):
        for size in (32, 64, 32, 64):
            for images in batches(SEEN_BEFORE + 3, size):
                for mine, true in zip(gradient(replayed, images), gradient(network, images), strict=True):
                    assert torch.allclose(mine.float(), true.float(), rtol=1e-3, atol=1e-5)
                with torch.no_grad():
                    assert torch.allclose(replayed(images).float(), network(images).float(), rtol=1e-3, atol=1e-5)
    assert replayed.failure is None
    assert len(replayed._passes) == 4  # two sizes, with a gradient and without


def test_two_open_graphs_do_not_disturb_each_other(network):
    replayed = Replayed(network)
    first, second = batches(2, 32)
    for _ in range(SEEN_BEFORE + 1):
        gradient(replayed, first)
    leaves = [first.clone().requires_grad_(), second.clone().requires_grad_()]
    logits = [replayed(leaf) for leaf in leaves]  # the second while the first is still open
    found = [torch.autograd.grad(each.square().sum(), leaf)[0] for each, leaf in zip(logits, leaves, strict=True)]
    for images, mine in zip((first, second), found, strict=True):
        assert torch.allclose(mine, gradient(network, images)[1], rtol=1e-3, atol=1e-5)


def test_a_graph_that_is_kept_gives_its_gradient_twice(network):
    replayed = Replayed(network)
    (images,) = batches(1, 32)
    for _ in range(SEEN_BEFORE + 1):
        gradient(replayed, images)
    leaf = images.clone().requires_grad_()
    total = replayed(leaf).square().sum()
    once = torch.autograd.grad(total, leaf, retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(total, leaf)[0], once)


def test_a_model_that_waits_for_the_device_runs_as_it_is():
    class Waits(nn.Module):
        def forward(self, images):
            return images.flatten(1)[:, :5] * float(images.sum() > 0)

    replayed = Replayed(Waits())
    (images,) = batches(1, 32)
    for _ in range(SEEN_BEFORE + 2):
        assert torch.equal(replayed(images), images.flatten(1)[:, :5])
    assert replayed.failure is not None
    assert torch.cuda.get_sync_debug_mode() == 0
    torch.cuda.empty_cache()  # device, allocator and generator are well
    assert 0 <= torch.rand(3, device="cuda").sum() <= 3


def test_a_model_that_is_another_when_recorded_runs_as_it_is():
    class Shy(nn.Module):
        def forward(self, images):
            return images.flatten(1)[:, :5] * (not torch.cuda.is_current_stream_capturing())

    replayed = Replayed(Shy())
    (images,) = batches(1, 32)
    for _ in range(SEEN_BEFORE + 2):
        assert torch.equal(replayed(images), images.flatten(1)[:, :5])
    assert "other logits" in replayed.failure


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_quick_copy_behind_a_transform_keeps_its_gradients(network, compiled):
    model = Defended(EssentialFeatures.preset("cifar-10"), network).cuda().eval()
    (images,) = batches(1, 50)
    images = images.mul(255).round().div(255)
    labels = model(images).argmax(dim=1)
    quick = searcher(model, half=True, compiled=compiled, probe=images[:8])
    first = read(quick, images, labels, margin).gradient
    for _ in range(SEEN_BEFORE + 2):
        again = read(quick, images, labels, margin).gradient
        loss = look(quick.finest(), images, labels, margin)[0]
    assert torch.nn.functional.cosine_similarity(first.flatten(), again.flatten(), dim=0) > 0.99
    assert torch.allclose(loss, look(model, images, labels, margin)[0], atol=0.05)
    assert quick.judge(images).argmax(dim=1).equal(labels)
    recorded = quick.model.model
    assert isinstance(recorded, Replayed)
    assert recorded.failure is None
    assert len(recorded._passes) == 2  # with a gradient and without


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_network_that_takes_views_is_searched_in_its_own_layout(compiled):
    class Viewing(nn.Sequential):
        def forward(self, images):
            return self[1](self[0](images).view(len(images), -1))

    model = Viewing(nn.Conv2d(3, 4, 3), nn.Linear(4 * 30 * 30, 5)).cuda().eval()
    (images,) = batches(1, 8)
    take_quick_layout(model, images)
    assert layout_of(model) == torch.contiguous_format
    quick = searcher(model, half=True, compiled=compiled, probe=images)
    assert torch.allclose(quick.judge(images), model(images), atol=1e-3)


def test_an_attack_on_recordings_is_the_attack_on_the_model(network):
    (images,) = batches(1, 40)
    labels = network(images).argmax(dim=1)
    recorded, threat = Replayed(network), ThreatModel("linf", 0.03)
    first, second = (
        PGD(name="pgd", num_steps=6).run(model, images, labels, threat, Dice.of(0, 40, images.device))
        for model in (recorded, network)
    )
    assert recorded._passes
    assert recorded.failure is None
    assert torch.allclose(first.loss_best, second.loss_best, rtol=0.02, atol=0.02)
