"""A model that cannot be judged is refused before anything runs, with the reason."""

import pytest
import torch
from evaluation_cases import Linear, direction, pictures
from torch import nn

from linocut.attacks import PGD, Dice, Square, TargetedAPGD, ThreatModel
from linocut.errors import InputError
from linocut.evaluation.admission import require_backward, require_logits, require_one_answer, require_own_logits
from linocut.evaluation.case import predict

IMAGES = pictures().unit(slice(0, 8))


def test_logits_are_admitted():
    require_logits(Linear(direction()), IMAGES, 2, "it")
    require_own_logits(Linear(direction()), IMAGES, "it")
    require_own_logits(Linear(direction()), IMAGES[:1], "it")


def test_a_tuple_is_refused():
    sound = Linear(direction())
    with pytest.raises(InputError, match=r"^it: .*logits \(B, classes\), got a tuple for 8 images: return its first"):
        require_logits(lambda images: (sound(images), images), IMAGES, 2, "it")


def test_a_model_that_works_in_place_is_refused():
    with pytest.raises(InputError, match="changes the images it is given"):
        require_logits(lambda images: Linear(direction())(images.sub_(0.1)), IMAGES, 2, "it")
    assert torch.equal(IMAGES, pictures().unit(slice(0, 8)))


def test_too_few_classes_are_refused():
    with pytest.raises(InputError, match="tells 2 classes apart, the data have 10"):
        require_logits(Linear(direction()), IMAGES, 10, "it")


def test_batch_statistics_are_refused_unless_they_are_at_rest():
    torch.manual_seed(0)
    network = nn.Sequential(Linear(direction()), nn.BatchNorm1d(2))
    with pytest.raises(InputError, match="among other images"):
        require_own_logits(lambda images: network(images), IMAGES, "it")
    network.eval()
    require_own_logits(lambda images: network(images), IMAGES, "it")


def test_statistics_of_the_batch_alone_are_refused_at_rest_too():
    """Halves of much the same light and dark hardly show them; a single image does."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.BatchNorm2d(1, track_running_stats=False), Linear(direction())).eval()
    darker = torch.linspace(0.1, 1, 4).repeat_interleave(2)[[0, 7, 1, 6, 2, 5, 3, 4]].view(-1, 1, 1, 1)
    with pytest.raises(InputError, match="among other images"):
        require_own_logits(network, IMAGES * darker, "it")


def test_logits_without_a_batch_dimension_are_refused():
    sound = Linear(direction())
    with pytest.raises(InputError, match="no squeeze"):
        require_own_logits(lambda images: sound(images).squeeze(), IMAGES, "it")


def test_a_model_that_fails_on_one_image_is_refused():
    def many(images):
        assert len(images) > 1, "too few"
        return Linear(direction())(images)

    with pytest.raises(InputError, match="takes 8 images and fails on 1: AssertionError: too few"):
        require_own_logits(many, IMAGES, "it")


def test_a_model_that_fails_is_refused_with_the_reason():
    with pytest.raises(InputError, match=r"it fails on images .*cannot be multiplied"):
        require_logits(nn.Sequential(nn.Flatten(), nn.Linear(5, 2)), IMAGES, 2, "it")


def test_one_class_cannot_be_judged():
    with pytest.raises(InputError, match="the data have 1 class"):
        require_logits(Linear(direction()), IMAGES, 1, "it")


@pytest.mark.parametrize(
    ("logits", "wanted"),
    [
        ([-torch.inf, -2.0, -torch.inf], 1),  # chances of 0, as their logarithms are
        ([-torch.inf] * 3, -1),
        ([torch.inf, 0.0, 0.0], -1),
        ([torch.nan, 0.0, 0.0], -1),
        ([0.0, 1.0, 0.5], 1),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_a_class_is_named_by_a_finite_largest_logit(logits, wanted, dtype):
    assert predict(lambda images: torch.tensor([logits], dtype=dtype).expand(len(images), 3), IMAGES).tolist() == [
        wanted
    ] * len(IMAGES)


def test_logarithms_of_chances_are_admitted():
    require_own_logits(lambda images: (Linear(direction())(images) > 0).float().log(), IMAGES, "it")


@pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.int64])
@pytest.mark.parametrize("attack", [PGD(num_steps=3), TargetedAPGD(num_steps=3), Square(num_queries=3)], ids=repr)
def test_logits_of_any_kind_are_attacked(kind, attack):
    def model(images):
        return nn.functional.pad(50 * Linear(direction())(images), (0, 2), value=-60.0).to(kind)  # four classes

    images = IMAGES[:4]
    labels = model(images).argmax(dim=1)
    assert attack.run(model, images, labels, ThreatModel("linf", 0.3), Dice.of(0, 4)).loss_best.dtype == torch.float32


def test_work_in_place_on_images_with_a_gradient_is_told():
    """It leaves the values as they are, so that only torch notices."""
    with pytest.raises(InputError, match=r"carry a gradient.*in-place operation.*x\.clamp\(0, 1\), not"):
        require_backward(lambda images: Linear(direction())(images.clamp_(0, 1)), IMAGES, "it")


@pytest.mark.parametrize("asks", [torch.is_grad_enabled, lambda: False])
def test_another_answer_where_a_gradient_is_asked_for_is_refused(asks):
    ours, decoy = Linear(direction()), Linear(-direction())

    def model(images):
        return decoy(images) if asks() or (asks is not torch.is_grad_enabled and images.requires_grad) else ours(images)

    with pytest.raises(InputError, match="gives other logits where a gradient is asked for"):
        require_one_answer(model, IMAGES, "it")
    require_one_answer(ours, IMAGES, "it")


def test_a_model_that_adapts_its_frozen_weights_is_told_what_to_do():
    network = Linear(direction()).requires_grad_(False)

    def adapting(images):
        torch.autograd.grad(network(images).sum(), images)
        return network(images)

    with pytest.raises(InputError, match=r"does not require grad.*under torch\.enable_grad\(\)"):
        require_logits(adapting, IMAGES, 2, "it")


def test_logits_far_from_zero_keep_their_bits():
    """In float32 a log-density with a large common term names the first class for every image."""
    far = Linear(direction())
    assert torch.equal(predict(lambda x: far(x).double() - 1e8, IMAGES), predict(far, IMAGES))
    labels = predict(far, IMAGES)
    result = PGD(num_steps=5).run(
        lambda x: far(x).double() - 1e8, IMAGES, labels, ThreatModel("linf", 1e-6), Dice.of(0, 8)
    )
    assert not result.broken.any()


def test_an_object_with_logits_is_told_what_to_return():
    answer = type("Output", (), {"logits": None})()
    with pytest.raises(InputError, match=r"return its \.logits"):
        require_logits(lambda images: answer, IMAGES, 2, "it")
    with pytest.raises(InputError, match=r"torch\.from_numpy"):
        require_logits(lambda images: Linear(direction())(images).numpy(), IMAGES, 2, "it")
