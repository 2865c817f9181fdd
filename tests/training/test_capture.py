"""Captured steps, with stand-ins for CUDA's streams and graphs: the bookkeeping around them, not CUDA itself."""

import contextlib
from pathlib import Path

import pytest
import torch

from linocut.training.capture import CapturedStep
from linocut.training.epochs import EpochPlan, Ownership
from linocut.training.run import make_trainer
from linocut.training.world import World

from .conftest import make_config

CPU = torch.device("cpu")


class FakeStream:
    def wait_stream(self, other):
        pass


class FakeGraph:
    """Replays by taking the recorded step on whatever its batch holds by then."""

    def replay(self):
        self.outcome.copy_(self.step(self.batch))


@pytest.fixture
def fake_cuda(monkeypatch):
    """Inside torch.cuda.graph a step is recorded and not taken, as on a GPU."""

    def install(trainer, fails=False):
        step = trainer.step

        @contextlib.contextmanager
        def graph(recorder, stream):
            if fails:
                raise RuntimeError("operation not permitted when stream is capturing")
            recorder.step, recorder.outcome = step, torch.zeros(3)

            def record(batch):
                recorder.batch = batch
                return recorder.outcome

            trainer.step = record
            yield
            trainer.step = step

        monkeypatch.setattr(torch.cuda, "Stream", FakeStream)
        monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
        monkeypatch.setattr(torch.cuda, "current_stream", FakeStream)
        monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(torch.cuda, "graph", graph)

    return install


@pytest.mark.parametrize("fails", [False, True])
def test_captured_steps_train_like_plain_ones(images, fake_cuda, fails):
    """40 examples in batches of 7: the last batch of each epoch has a size of its own."""
    own, config = Ownership(num_examples=40, shards=1), make_config(batch_size=7, gradient_noise=0.05)
    ends = []
    for captured in (False, True):
        trainer = make_trainer(config, images, own, CPU, World(), Path("unused"), False)
        trainer.start_segment(own, 0)
        take = trainer.step
        if captured:
            fake_cuda(trainer, fails)
            take = CapturedStep(trainer)
        outcomes = []
        for epoch in range(3):
            for batch in EpochPlan(config, own, epoch, (6, 6), CPU).batches():
                outcomes.append(take(batch).clone())
        ends.append((trainer.network.fc.weight.detach(), trainer.canvas.change, torch.stack(outcomes)))
        if captured:
            assert (take.failure is not None) == fails
            assert (take.graph is None) == fails
    assert all(torch.equal(plain, replayed) for plain, replayed in zip(*ends, strict=True))
