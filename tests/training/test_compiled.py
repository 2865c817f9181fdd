"""A compiled network trains like a plain one: the transform's own backward is used, and nothing is silently zero."""

import functools
from pathlib import Path

import pytest
import torch

from linocut.training.epochs import EpochPlan, Ownership
from linocut.training.run import make_trainer
from linocut.training.world import World

from .conftest import make_config

CPU = torch.device("cpu")


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_compiled_steps_equal_plain_ones_and_the_attack_asks_no_weight_gradients(images, monkeypatch):
    """With the tracing back end of torch.compile: what tracing breaks, it breaks without a code generator too."""
    from linocut.transform.modules import AdaptiveBlur

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    blur = {"class": "AdaptiveBlur", "settings": AdaptiveBlur(kernel_sizes=(3, 1, 1), backend="torch").settings()}
    own = Ownership(num_examples=len(images.labels), shards=1)
    stored, weights = [], []
    for compiled in (False, True):
        config = make_config(architecture="with-statistics", transform=blur, compile=compiled)
        trainer = make_trainer(config, images, own, CPU, World(), Path("unused"), False)
        trainer.start_segment(own, 0)
        before = trainer.canvas.change.clone()
        for batch in EpochPlan(config, own, 0, (6, 6), CPU).batches():
            trainer.step(batch)
        assert not any(parameter.requires_grad for parameter in trainer.attacked.network.parameters())
        moved = (trainer.canvas.change - before).abs().amax(dim=(1, 2, 3))
        assert (moved > 0.03).all()  # every example was attacked: no zero gradients
        stored.append(trainer.canvas.change)
        weights.append(trainer.network.fc.weight.detach())
    torch.testing.assert_close(stored[0], stored[1], atol=1e-5, rtol=0)
    torch.testing.assert_close(weights[0], weights[1], atol=1e-5, rtol=0)
