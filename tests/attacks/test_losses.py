import pytest
import torch

from linocut.attacks import NotApplicable, losses
from linocut.errors import InputError

LOGITS = torch.tensor([[4.0, 1.0, 3.0, 0.0], [0.0, 5.0, 2.0, 1.0]])
LABELS = torch.tensor([0, 2])


def test_values_by_hand():
    assert losses.margin(LOGITS, LABELS).tolist() == [-1.0, 3.0]
    assert losses.dlr(LOGITS, LABELS).tolist() == pytest.approx([-1 / 3, 3 / 4])
    targeted = losses.targeted_dlr(LOGITS, LABELS, torch.tensor([2, 1]))
    assert targeted.tolist() == pytest.approx([-1 / 3.5, 3 / 4.5])
    expected = -LOGITS.log_softmax(1)[torch.arange(2), LABELS]
    assert torch.allclose(losses.cross_entropy(LOGITS, LABELS), expected)


@pytest.mark.parametrize("name", ["margin", "dlr"])
def test_the_sign_says_misclassified(name):
    logits = torch.randn(500, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(500) % 5
    assert torch.equal(losses.by_name(name)(logits, labels) > 0, logits.argmax(1) != labels)


def test_dlr_does_not_see_scale_or_shift():
    assert torch.allclose(losses.dlr(LOGITS * 1000 - 7, LABELS), losses.dlr(LOGITS, LABELS), atol=1e-4)


def test_cross_entropy_goes_flat_where_the_margin_does_not():
    logits = (LOGITS[:1] * 1000).requires_grad_()
    (flat,) = torch.autograd.grad(losses.cross_entropy(logits, LABELS[:1]).sum(), logits)
    (steep,) = torch.autograd.grad(losses.margin(logits, LABELS[:1]).sum(), logits)
    assert not flat.any()
    assert steep.tolist() == [[-1.0, 0.0, 1.0, 0.0]]


def test_too_few_classes_are_not_applicable_and_unknown_names_refused():
    with pytest.raises(NotApplicable, match="3 classes"):
        losses.dlr(LOGITS[:, :2], LABELS.clamp(max=1))
    with pytest.raises(NotApplicable, match="4 classes"):
        losses.targeted_dlr(LOGITS[:, :3], LABELS, LABELS)
    with pytest.raises(InputError, match="cross_entropy"):
        losses.by_name("hinge")
