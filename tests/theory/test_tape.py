import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from linocut.theory.network import build
from linocut.theory.tape import Repeated, Tape
from linocut.theory.training import IntervalTraining, train


def filled(steps=5, batch=8, edges=0.5, seed=0):
    images = torch.randint(0, 256, (steps * batch + 3, 1, 4, 4), generator=torch.Generator().manual_seed(9))
    tape = Tape(steps, batch, images.to(torch.uint8))
    schedule = [(10 * step, step / 10, step / 100) for step in range(steps)]
    tape.fill(images.to(torch.uint8), schedule, edges, torch.Generator().manual_seed(seed))
    return tape


def test_an_epoch_shows_no_image_twice():
    order = filled().order.flatten()
    assert len(order.unique()) == len(order) == 40


def test_each_step_finds_its_own_row():
    tape = filled()
    for step in range(5):
        assert tape.now(tape.parts).item() == 10 * step
        assert tape.now(tape.weight).item() == pytest.approx(step / 10)
        assert tape.now(tape.rate).item() == pytest.approx(step / 100)
        assert (tape.now(tape.order) == tape.order[step]).all()
        assert tape.now(tape.colors).shape == (8, 1, 4, 4)
        tape.due.add_(1)


def test_refilling_keeps_every_tensor_in_its_place_and_starts_again():
    tape = filled()
    before = {name: value.data_ptr() for name, value in vars(tape).items() if isinstance(value, torch.Tensor)}
    old = tape.order.clone()
    tape.due.add_(5)
    tape.total.add_(3)
    tape.fill(tape.images.clone(), [(7, 1.0, 0.5)] * 5, 0.5, torch.Generator().manual_seed(1))
    assert before == {name: value.data_ptr() for name, value in vars(tape).items() if isinstance(value, torch.Tensor)}
    assert tape.due.item() == tape.total.item() == 0
    assert tape.now(tape.parts).item() == 7
    assert (tape.order != old).any()


@pytest.mark.parametrize(("edges", "share"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)])
def test_the_share_of_extreme_windows_is_kept(edges, share):
    window = filled(steps=100, edges=edges).window
    extreme = ((window == 0) | (window == 1)).float().mean().item()
    assert extreme == pytest.approx(share, abs=0.06)
    assert abs(window.mean().item() - 0.5) < 0.05


class NothingForPython(TorchDispatchMode):
    """Refuses operations that hand a value or a shape to Python, or bring one from there: none can be recorded."""

    FORBIDDEN = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero", "equal", "lift_fresh")
    seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.__name__.split(".")[0]
        assert name not in self.FORBIDDEN, f"a step must not use {name}"
        NothingForPython.seen += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("codebook", ["adaptive", (0, 255)])
def test_a_step_decides_nothing_in_python(codebook, drawn_digits, monkeypatch):
    def watched(repeated):
        with NothingForPython():
            repeated.step()

    monkeypatch.setattr(Repeated, "__call__", watched)
    monkeypatch.setattr(NothingForPython, "seen", 0)
    network = build(((4, 2),), 12, torch.Generator().manual_seed(0), side=8, classes=4)
    plan = IntervalTraining(eps=60, codebook=codebook, epochs=1, batch=64, attacked=1.0)
    train(network, *drawn_digits(128, 0), plan)
    assert NothingForPython.seen > 200
    with NothingForPython(), pytest.raises(AssertionError, match="_local_scalar_dense"):
        torch.zeros(1).item()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="recording needs a GPU")
@pytest.mark.parametrize("codebook", ["adaptive", (0, 255)])
def test_recorded_steps_train_the_same_network_as_plain_ones(codebook, drawn_digits, monkeypatch):
    images, labels = (part.cuda() for part in drawn_digits(64 * 12, 0))
    plan = IntervalTraining(eps=60, codebook=codebook, epochs=2, batch=64, natural_weight=0.5, attacked=1.0, shift=1)

    def losses():
        network = build(((4, 2),), 12, torch.Generator().manual_seed(0), side=8, classes=4).cuda()
        seen = []
        train(network, images, labels, plan, lambda epoch, loss, seconds: seen.append(loss))
        return seen

    recorded = losses()
    monkeypatch.setattr(Repeated, "__call__", lambda self: self.step())
    assert recorded == pytest.approx(losses(), rel=2e-2)
