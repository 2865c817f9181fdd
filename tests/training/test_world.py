"""Several processes: the same training as one, each example once, and a rank that dies."""

import torch

from linocut.training.world import local_device

from .test_crash import scenario
from .test_resume import checkpoint, same


def test_two_ranks_equal_one_at_the_same_batch(tmp_path):
    """37 examples in two shards of 19 and 18, batches of 8: the last batch is uneven, and 20 steps are taken."""
    assert scenario("ranks", tmp_path, 1, 2)["statuses"] == [[0], [0, 0]]
    (step, alone), (same_step, together) = (checkpoint(tmp_path / f"world-{world}") for world in (1, 2))
    assert step == same_step == 20
    assert alone.keys() == together.keys()
    assert {"canvas-0.safetensors:change", "canvas-1.safetensors:change"} < alone.keys()
    for name, value in alone.items():
        torch.testing.assert_close(together[name], value, atol=1e-5, rtol=0, msg=name)


def test_batch_statistics_of_the_first_rank_are_everyones_after_every_step(tmp_path):
    assert scenario("statistics", tmp_path)["statuses"] == [0, 0]


def test_a_signal_to_one_rank_stops_all_after_the_same_step(tmp_path):
    assert scenario("signalled_rank", tmp_path)["statuses"] == [15, 15]
    assert checkpoint(tmp_path / "run")[0] == 10  # all agree in the step after


def test_a_loss_that_is_no_number_on_one_rank_stops_all_and_keeps_the_last_good(tmp_path):
    assert scenario("spoilt_rank", tmp_path)["statuses"] == [2, 2]
    assert checkpoint(tmp_path / "run")[0] == 8


def test_a_killed_rank_is_restarted_and_the_run_ends_in_the_same_bits(tmp_path):
    assert scenario("elastic", tmp_path, 0, 1)["finished"]
    assert same(checkpoint(tmp_path / "run-0"), checkpoint(tmp_path / "run-1"))


def test_a_gpu_without_a_number_gets_one(monkeypatch):
    """torch refuses to make a device without an index the current one."""
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert local_device("auto") == local_device("cuda") == torch.device("cuda", 0)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert local_device("cuda") == torch.device("cuda", 3)
    assert [device.index for device in chosen] == [0, 0, 3]
