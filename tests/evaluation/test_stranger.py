import numpy as np
import pytest
import torch
from defences import sixteen_levels
from evaluation_cases import Linear, direction, pictures

from linocut.attacks.hooks import NotApplicable
from linocut.errors import InputError
from linocut.evaluation.case import at_rest, model_hash
from linocut.evaluation.hearing import dressed, fixed_codebook, settled
from linocut.evaluation.request import open_model
from linocut.evaluation.stranger import Preprocessed, WithoutGradient, has_gradient, imported, returned_by
from linocut.models import Defended


def gradient_of(model, images):
    leaf = images.clone().requires_grad_()
    return torch.autograd.grad(model(leaf)[:, 0].sum(), leaf)[0]


def test_the_forward_is_the_preprocessing_and_the_backward_the_identity():
    sound, images = Linear(direction()), pictures().unit(slice(0, 5))
    behind = Preprocessed(sixteen_levels, sound, probe=images)
    assert torch.equal(behind(images), sound(sixteen_levels(images)))
    assert torch.equal(gradient_of(behind, images), gradient_of(sound, images))
    assert not gradient_of(behind.with_surrogate("own"), images).any()
    assert torch.equal(behind.undefended()(images), sound(images))
    with pytest.raises(NotApplicable, match="soft"):
        behind.with_surrogate("soft")


def test_an_own_gradient_is_kept():
    images = pictures().unit(slice(0, 5))
    doubled = Preprocessed(lambda x: x * 2, Linear(direction()), probe=images)
    assert doubled.surrogate == "own"
    assert torch.allclose(gradient_of(doubled, images), 2 * gradient_of(Linear(direction()), images))


@pytest.mark.parametrize(
    ("transform", "answer"),
    [
        (lambda x: x, True),
        (torch.sqrt, True),
        (torch.round, False),
        (torch.detach, False),
        (lambda x: torch.from_numpy(x.numpy()), False),
        (lambda x: (x * 0).sqrt() + x, False),
    ],
)
def test_has_gradient(transform, answer):
    assert has_gradient(transform, pictures().unit(slice(0, 3))) is answer


@pytest.mark.parametrize(
    ("transform", "told"),
    [
        (lambda x: x.round_(), "changes the images it is given"),
        (lambda x: torch.from_numpy(x.numpy() / np.float64(1)), "a tensor of torch.float64"),
        (lambda x: x.numpy(), "a ndarray"),
    ],
)
def test_a_preprocessing_that_would_fail_later_is_refused(transform, told):
    images = pictures().unit(slice(0, 3))
    with pytest.raises(InputError, match=told):
        Preprocessed(transform, Linear(direction()), probe=images)
    assert torch.equal(images, pictures().unit(slice(0, 3)))


class WithoutBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, images):
        return images * 1

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("no backward in this one")


def wary(images):
    if images.requires_grad:
        raise TypeError("takes no gradients")
    return images * 1


@pytest.mark.parametrize("transform", [WithoutBackward.apply, wary, lambda x: x.exp().add_(1).log()])
def test_where_a_gradient_cannot_be_had_the_identity_stands_in(transform):
    images = pictures().unit(slice(0, 3))
    wrapped = Preprocessed(transform, Linear(direction()), probe=images)
    leaf = images.clone().requires_grad_()
    assert wrapped.surrogate == "identity"
    wrapped(leaf)[:, 0].sum().backward()
    assert bool(leaf.grad.any())


def test_a_preprocessing_that_gives_no_numbers_is_refused():
    with pytest.raises(InputError, match="no numbers"):
        Preprocessed(lambda x: x * torch.nan, Linear(direction()), probe=pictures().unit(slice(0, 3)))


def test_a_gradient_of_its_own_is_the_true_one():
    images = pictures().unit(slice(0, 3))
    with pytest.raises(NotApplicable, match="true one already"):
        Preprocessed(lambda x: x * 0.9, Linear(direction()), probe=images).with_surrogate("none")


def test_the_identity_does_not_hand_its_input_on():
    images = pictures().unit(slice(0, 2))
    same = Preprocessed(lambda x: x, Linear(direction()), surrogate="identity")
    assert torch.equal(same(images), Linear(direction())(images))


def test_a_preprocessing_that_resizes_offers_neither_identity_nor_bare_model():
    images = pictures().unit(slice(0, 3))
    halved = Preprocessed(lambda x: torch.nn.functional.avg_pool2d(x, 2), Linear(direction(3)), probe=images)
    assert halved(images).shape == (3, 2)
    with pytest.raises(NotApplicable, match="takes no images without"):
        halved.undefended()
    with pytest.raises(NotApplicable, match="takes no images without"):
        halved.with_surrogate("identity")


@pytest.fixture
def module(tmp_path, monkeypatch):
    """module(name, text): a module in the current folder."""
    monkeypatch.chdir(tmp_path)
    return lambda name, text: (tmp_path / f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def model(x): return x", "called without arguments and returns the model.*missing 1 required"),
        ("def model(): raise OSError('weights.pt')", "OSError: weights.pt"),
        ("def model(): return 3", "returned int: wanted something that maps images to logits"),
        ("import torch; torch.nonexistent", "cannot be imported: AttributeError"),
        ("import not_installed_anywhere", "No module named 'not_installed_anywhere'; install what it imports"),
        ("net = 3", "has no model"),
    ],
)
def test_a_function_that_gives_no_model_is_refused_with_the_reason(module, text, told):
    name = f"stranger_{abs(hash(text))}"
    module(name, text)
    with pytest.raises(InputError, match=told):
        returned_by(f"{name}:model")


def test_a_module_that_is_not_there_is_told_where_to_be():
    with pytest.raises(InputError, match="run in the folder that holds it"):
        imported("nowhere_to_be_found:model")


@pytest.mark.parametrize("made", ["lambda x: of(x)", "Module()"])
def test_a_model_of_arrays_is_judged_without_a_gradient(module, made):
    name = "of_arrays_" + made[:6].lower().strip()
    module(
        name,
        "import torch\n"
        "def of(x): return torch.from_numpy(x.flatten(1)[:, :2].numpy() * 2)\n"
        "class Module(torch.nn.Module):\n"
        "    def forward(self, x): return of(x)\n"
        f"def model(): return {made}",
    )
    pixels = pictures().pixels[:3]
    model = open_model(f"{name}:model", torch.device("cpu"), pixels)
    assert isinstance(model, WithoutGradient)
    leaf = (pixels.float() / 255).requires_grad_()
    assert not model(leaf).requires_grad


def test_the_hash_of_a_function_is_that_of_the_weights_it_holds():
    def closed(layer):
        return lambda x: layer(x)

    torch.manual_seed(0)
    first, second = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    torch.nn.init.normal_(second.weight)
    known = model_hash(closed(first))
    first(torch.rand(4, 3))  # changes its buffers
    assert model_hash(closed(first)) == known != model_hash(closed(second))

    def over_nothing():
        return lambda x: never
        never = 1

    assert model_hash(over_nothing()) != known


def test_a_module_may_keep_more_than_tensors_in_its_state():
    class Counts(torch.nn.Linear):
        def get_extra_state(self):
            return {"calls": 3}

    assert len(model_hash(Counts(2, 2))) == 64


class Behind(torch.nn.Module):
    """A network behind a transform in NumPy, which offers what lies behind it."""

    def __init__(self):
        super().__init__()
        self.network = Linear(direction())

    def forward(self, images):
        return self.network(torch.from_numpy(images.numpy().round(1)))

    def undefended(self):
        return self.network


def test_where_images_may_carry_no_gradient_the_hooks_stay():
    images = pictures().unit(slice(0, 5))
    model = dressed(Behind(), None, images)
    assert torch.equal(model(images.clone().requires_grad_()), Behind()(images))
    assert torch.equal(gradient_of(model.undefended(), images), gradient_of(Linear(direction()), images))


def test_a_model_that_wants_its_preprocessing_offers_no_bare_one():
    def signed(images):
        if float(images.min()) >= 0:
            raise ValueError("inputs must be in [-1,1]")
        return Linear(direction())(images)

    images = pictures().unit(slice(0, 5))
    model = Preprocessed(lambda x: 2 * x - 1, signed, probe=images)
    with pytest.raises(NotApplicable, match="takes no images without"):
        model.undefended()
    with pytest.raises(NotApplicable, match="takes no images without"):
        model.with_surrogate("identity")


def test_a_module_that_is_named_itself_is_the_model(module):
    module("whole", "import torch\nmodel = torch.nn.Flatten()")
    assert isinstance(returned_by("whole:model"), torch.nn.Flatten)


class OfItsOwn(torch.nn.Module):
    """Noise from a generator that nobody else can set."""

    def __init__(self):
        super().__init__()
        self.network, self.dice = Linear(direction()), np.random.default_rng()

    def forward(self, images):
        noise = torch.from_numpy(self.dice.normal(0, 0.1, images.shape))
        return self.network(images + noise.float())


def test_a_generator_of_its_own_is_refused():
    with pytest.raises(InputError, match="a generator of its own, or keeps something"):
        settled(OfItsOwn(), pictures().unit(slice(0, 4)), "mine:model")


def test_a_strangers_class_of_our_name_is_not_ours():
    class FixedCodebook(torch.nn.Module):
        def forward(self, images):
            return images

    model = Defended(FixedCodebook(), Linear(direction()))
    assert fixed_codebook(model) is None
    assert model_hash(model) != model_hash(Defended(None, Linear(direction())))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_torchscript_is_laid_to_rest_and_woken():
    scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 2)))
    with at_rest(scripted):
        assert not any(weight.requires_grad for weight in scripted.parameters())
    assert all(weight.requires_grad for weight in scripted.parameters())
    assert scripted.training
