"""A quicker copy searches; the true model decides, and a copy with other gradients is refused."""

import pytest
import torch
from torch import nn

from linocut.attacks.dice import Dice
from linocut.attacks.gradients import look, read
from linocut.attacks.losses import margin
from linocut.attacks.pgd import PGD
from linocut.attacks.square import Square
from linocut.attacks.threat import ThreatModel
from linocut.attacks.transfer import TransferPGD
from linocut.errors import InputError
from linocut.evaluation.arsenal import entry
from linocut.evaluation.finer import made_finer
from linocut.evaluation.hearing import guide
from linocut.evaluation.quick import Quick, layout_of, searcher
from linocut.evaluation.replayed import usual_size
from linocut.evaluation.request import take_quick_layout
from linocut.evaluation.stranger import Preprocessed
from linocut.evaluation.wrapped import Expectation
from linocut.models import Defended
from linocut.transform.modules import EssentialFeatures

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while it compiles


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 5)).eval()


@pytest.fixture
def images():
    return torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(1))


class Optimist(nn.Module):
    """Calls a point misclassified long before the network does."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        logits = self.network(images)
        return logits.scatter_add(1, logits.argmax(dim=1, keepdim=True), torch.full((len(logits), 1), -0.1))


@pytest.mark.parametrize("attack", [PGD(num_steps=20, any_iterate=True), Square(num_queries=200)])
def test_only_what_the_judge_calls_misclassified_is_broken(attack, images):
    network = linear()
    labels = network(images).argmax(dim=1)
    quick = Quick(Optimist(network), network, dtype=torch.float32)
    threat = ThreatModel("linf", 0.03)
    result = attack.run(quick, images, labels, threat, Dice(torch.arange(40)))
    truly = network(result.images).argmax(dim=1) != labels
    assert torch.equal(result.broken, truly)
    assert 0 < int(truly.sum()) < 40
    alone = attack.run(Optimist(network), images, labels, threat, Dice(torch.arange(40)))
    assert int((network(alone.images).argmax(dim=1) != labels).sum()) < int(alone.broken.sum())


class Wavering:
    """Wrong at its first look at a loss of 0.74, then right at a loss of 1.03: three classes allow that."""

    def __init__(self):
        self.calls = 0

    def __call__(self, images):
        self.calls += 1
        logits = [0.0, 0.1, -9.0] if self.calls == 1 else [1.0, 0.9, 0.9]
        return torch.tensor(logits).expand(len(images), 3) + 0 * images.sum()


@pytest.mark.parametrize("truly", [0, 1])
def test_a_point_that_was_passed_by_is_silent_only_if_the_judge_calls_it_misclassified(truly):
    images, labels = torch.full((3, 1, 4, 4), 0.5), torch.zeros(3, dtype=torch.long)
    quick = Quick(Wavering(), lambda points: torch.eye(3)[truly].expand(len(points), 3), dtype=torch.float32)
    result = PGD(num_steps=2).run(quick, images, labels, ThreatModel("linf", 0.1), Dice(torch.arange(3)))
    assert result.silent.tolist() == [truly == 1] * 3
    assert not result.broken.any()


def test_a_compiled_copy_keeps_hooks_and_gives_the_same_logits(images):
    model = Defended(EssentialFeatures(backend="torch"), linear()).eval()
    quick = searcher(model, half=False, compiled=True, probe=images[:4])
    for count in (1, 5, 32, 40):  # filled up, and cut again
        torch.testing.assert_close(quick(images[:count]), model(images[:count]))
    torch.testing.assert_close(quick.undefended()(images), model.undefended()(images))
    torch.testing.assert_close(quick.frozen(images)(images), model.frozen(images)(images))
    leaf = images.clone().requires_grad_()
    assert torch.autograd.grad(quick.with_surrogate("identity")(leaf).sum(), leaf)[0].any()


def test_a_strangers_defence_keeps_its_hooks_when_it_is_compiled(images):
    model = Preprocessed(torch.round, linear(), surrogate="identity").eval()
    quick = searcher(model, half=False, compiled=True, probe=images[:4])
    torch.testing.assert_close(quick(images), model(images))
    torch.testing.assert_close(quick.undefended()(images), model.undefended()(images))
    torch.testing.assert_close(quick.with_surrogate("none")(images), model(images))
    assert quick.transform is torch.round
    assert not hasattr(quick, "frozen")


class Clipped(Defended):
    """Does more than transform and network."""

    def forward(self, images):
        return super().forward(images).tanh()


def test_a_subclass_is_compiled_with_what_it_adds(images):
    model = Clipped(EssentialFeatures(backend="torch"), linear()).eval()
    quick = searcher(model, half=False, compiled=True, probe=images[:4])
    torch.testing.assert_close(quick(images), model(images))


class OneByOne(nn.Module):
    """Goes through the images in a loop, which a compiler can only unroll for one batch size."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return torch.cat([self.network(image[None]) for image in images])


@pytest.mark.parametrize("model", [linear().forward, Expectation(linear()), OneByOne(linear()).eval()])
def test_what_cannot_be_compiled_is_refused(model, images):
    with pytest.raises(InputError, match="leave --compile out"):
        searcher(model, half=False, compiled=True, probe=images[:4])


@pytest.mark.parametrize(("fine", "wanted"), [(torch.float16, torch.float16), (torch.float32, torch.bfloat16)])
def test_a_look_without_a_gradient_is_taken_in_float16_where_that_is_fine(images, fine, wanted):
    formats = []

    def network(x):
        formats.append(torch.get_autocast_dtype("cpu"))
        return x.flatten(1)[:, :10]

    copy = Quick(network, network, dtype=torch.bfloat16, fine=fine)
    read(copy, images, torch.zeros(len(images), dtype=torch.int64), margin)
    look(copy, images, torch.zeros(len(images), dtype=torch.int64), margin)
    assert formats == [torch.bfloat16, wanted]


def test_a_copy_is_asked_in_the_state_that_recordings_have(images):
    """torch compiles a network anew where the cache of cast weights was turned off, and a recording has none."""
    states = set()

    def model(points):
        states.add(torch.is_autocast_cache_enabled())
        return points.flatten(1)[:, :5]

    for dtype in (torch.bfloat16, torch.float32):
        Quick(model, model, dtype=dtype)(images)
    assert states == {False}


def test_batches_are_filled_up_to_few_sizes():
    sizes = [usual_size(n) for n in range(1, 4097)]
    assert all(n <= size < n + max(32, n / 8) for n, size in enumerate(sizes, start=1))
    assert len(set(sizes)) == 8 + 8 * 4  # multiples of 32 up to 256, then eight for each doubling
    assert [usual_size(n) for n in (0, 1, 32, 256, 330, 2000)] == [0, 32, 32, 256, 352, 2048]


def test_square_searches_in_float16_as_well_as_on_the_model(images):
    network = linear()
    labels = network(images).argmax(dim=1)
    attack, threat = Square(num_queries=60), ThreatModel("linf", 0.03)
    quick = Quick(made_finer(network, images, compiled=False), network, dtype=torch.bfloat16, fine=torch.float16)
    plain, found = (
        attack.run(model, images, labels, threat, Dice(torch.arange(40))).images for model in (network, quick)
    )
    with torch.no_grad():
        theirs, mine = (margin(network(points), labels).mean() for points in (plain, found))
    assert abs(float(mine - theirs)) < 0.01


def test_nothing_quicker_is_the_model_itself(images):
    model = linear()
    assert searcher(model, half=False, compiled=False, probe=images[:4]) is model


class Forgetful(nn.Module):
    """Loses its gradient in bfloat16, as a slip of a compiler would."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return self.network(images.detach() if torch.is_autocast_enabled("cpu") else images)


def test_a_copy_without_the_models_gradient_is_refused(images):
    searcher(Forgetful(linear()), half=False, compiled=True, probe=images[:4])
    with pytest.raises(InputError, match="gradients are not the model's"):
        searcher(Forgetful(linear()), half=True, compiled=False, probe=images[:4])


def test_a_twin_without_a_faithful_copy_guides_by_itself(images):
    class Restless(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = linear()

        def forward(self, x):
            return self.network(x + torch.randn_like(x))

    calm, restless = linear(), Restless()
    assert isinstance(guide(calm, images[:8], half=True, compiled=False), Quick)
    assert guide(calm, images[:8], half=False, compiled=False) is calm
    assert guide(restless, images[:8], half=True, compiled=False) is restless


def test_an_entry_is_described_the_same_with_a_quick_copy_of_its_twin(images):
    threat, twin = ThreatModel("linf", 0.1), linear()
    described = {
        entry(threat, TransferPGD(source=source)).config for source in (twin, Quick(twin, twin, dtype=torch.bfloat16))
    }
    assert len(described) == 1


class Viewing(torch.nn.Sequential):
    """A network that takes a view of what its convolution gives."""

    def forward(self, images):
        return self[1](self[0](images).view(len(images), -1))


def test_a_network_takes_the_quick_layout_only_where_it_works_in_it(images):
    width = 4 * (images.shape[2] - 2) * (images.shape[3] - 2)
    layers = torch.nn.Conv2d(images.shape[1], 4, 3), torch.nn.Linear(width, 3)
    before = Viewing(*layers)(images).detach()
    take_quick_layout(Viewing(*layers), images)
    assert layout_of(Viewing(*layers)) == torch.contiguous_format
    assert Viewing(*layers)(images).equal(before)
    flattening = torch.nn.Sequential(layers[0], torch.nn.Flatten(), layers[1])
    take_quick_layout(flattening, images)
    assert layout_of(flattening) == torch.channels_last
    assert torch.allclose(flattening(images), before, atol=1e-5)
