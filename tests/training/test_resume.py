"""Determinism and resume: the same bits, straight or in pieces."""

import dataclasses
import itertools
import json
import signal
from types import SimpleNamespace

import pytest
import safetensors.torch
import torch

from linocut.errors import InputError
from linocut.models import load
from linocut.models.seal import sealed, unsealed
from linocut.training import finish, loop, train
from linocut.training.curves import draw_curves
from linocut.training.journal import read_log
from linocut.training.world import local_device

from .conftest import make_config, make_images


def checkpoint(out):
    """Everything in the newest checkpoint but the hashes: step and tensors."""
    folder = max((out / "checkpoints").glob("step-*"))
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors |= {f"{file.name}:{name}": value for name, value in safetensors.torch.load_file(file).items()}
    return json.loads((folder / "manifest.json").read_text())["step"], tensors


def same(first, second):
    return (
        first[0] == second[0]
        and first[1].keys() == second[1].keys()
        and all(torch.equal(value, second[1][name]) for name, value in first[1].items())
    )


def stop_at(step):
    """A watcher that sends this process SIGTERM after a step."""
    return lambda now: signal.raise_signal(signal.SIGTERM) if now.step == step else None


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"architecture": "with-statistics", "averaging": 0.9, "canvas_store": "int8", "loss": "trades"},
        {"method": "natural"},
    ],
)
def test_same_seed_same_bits_and_another_seed_others(tmp_path, images, changes):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(make_config(seed=seed, **changes), images, tmp_path / name)
    a, b, c = (checkpoint(tmp_path / name) for name in "abc")
    assert same(a, b)
    assert not same(a, c)
    assert a[0] == 20


@pytest.mark.parametrize("changes", [{}, {"architecture": "with-statistics", "averaging": 0.9, "canvas_store": "half"}])
def test_stopped_and_resumed_equals_straight(tmp_path, images, count, changes):
    config = make_config(**changes)  # 5 steps an epoch; resets before steps 0 and 10
    straight = train(config, images, tmp_path / "straight", test_images=images)
    random = torch.Generator().manual_seed(0)
    steps = {1, 10, *torch.randint(1, 20, (count(1, 8),), generator=random).tolist()}
    for step in steps:
        out = tmp_path / f"stopped-{step}"
        stopped = train(config, images, out, watch=stop_at(step))
        assert (stopped.step, stopped.signal) == (step, signal.SIGTERM)
        assert checkpoint(out)[0] == step
        resumed = train(config, images, out, test_images=images, resume=True)
        assert resumed == straight
        assert same(checkpoint(out), checkpoint(tmp_path / "straight"))
        kept = ("step", "loss", "robust_accuracy", "learning_rate")
        rows, expected = ([[row[key] for key in kept] for row in read_log(at)] for at in (out, tmp_path / "straight"))
        assert rows == expected


def test_a_file_backed_canvas_trains_and_resumes_alike(tmp_path, images, config):
    train(config, images, tmp_path / "memory")
    train(config, images, tmp_path / "file", on_disk=True, watch=stop_at(7))
    train(config, images, tmp_path / "file", on_disk=True, resume=True)
    assert not list((tmp_path / "file").glob("*.work"))
    assert same(checkpoint(tmp_path / "memory"), checkpoint(tmp_path / "file"))


def test_natural_training_from_pixels_that_stay_on_disk(tmp_path, images):
    config = make_config(method="natural")
    train(config, images, tmp_path / "memory")
    train(config, images, tmp_path / "file", on_disk=True)
    assert same(checkpoint(tmp_path / "memory"), checkpoint(tmp_path / "file"))


def test_a_changed_config_and_other_images_are_refused_by_name(tmp_path, images, config):
    train(config, images, tmp_path, watch=stop_at(3))
    with pytest.raises(InputError, match=r"learning_rate was 0\.05 and is 0\.06"):
        train(make_config(learning_rate=0.06), images, tmp_path, resume=True)
    with pytest.raises(InputError, match="images of hash"):
        train(config, make_images(seed=5), tmp_path, resume=True)
    with pytest.raises(InputError, match="--resume"):
        train(config, images, tmp_path)


def test_only_the_last_two_checkpoints_are_kept(tmp_path, images, config):
    train(config, images, tmp_path, checkpoint_every=3)
    assert [path.name for path in sorted((tmp_path / "checkpoints").iterdir())] == [
        "step-000000018",
        "step-000000020",
    ]


def test_the_result_is_a_model_with_its_card(tmp_path, images, config, monkeypatch):
    monkeypatch.setattr("linocut.training.run.draw_curves", draw_curves)
    outcome = train(config, images, tmp_path, test_images=images)
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert card["recipe"]["train_sha256"] == images.sha256
    assert card["metrics"] == outcome.metrics
    defended = load(tmp_path / "model")
    correct = (defended(images.pixels.float() / 255).argmax(1) == images.labels).float().mean().item()
    assert outcome.metrics["test_accuracy"] == pytest.approx(correct)
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_half_weights_are_rounded_before_they_are_measured_and_saved(tmp_path, images, monkeypatch):
    judged = {}

    def count(defended, test, device):
        judged.update({name: value.clone() for name, value in defended.model.state_dict().items()})
        return 0

    monkeypatch.setattr(finish, "count_correct", count)
    runs = {half: make_config(architecture="with-statistics", half_weights=half) for half in (False, True)}
    for half, config in runs.items():
        train(config, images, tmp_path / str(half), test_images=images)
    plain, rounded = (load(tmp_path / str(half) / "model").model.state_dict() for half in runs)
    assert plain.keys() == rounded.keys() == judged.keys()
    for name, value in plain.items():
        wanted = value.half().float() if value.dim() >= 2 else value
        assert torch.equal(rounded[name], wanted)
        assert torch.equal(judged[name], wanted)
    assert not torch.equal(plain["fc.weight"], rounded["fc.weight"])
    stored = safetensors.torch.load_file(next((tmp_path / "True" / "model").glob("weights-*")))
    assert {name for name, value in stored.items() if value.dim() >= 2 and value.dtype != torch.float16} == set()


def test_weights_beyond_the_range_of_halves_stay_as_they_are():
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    with torch.no_grad():
        network[0].weight[0, 0] = 1e5
    before = {name: value.clone() for name, value in network.state_dict().items()}
    finish.round_to_half(network)
    after = network.state_dict()
    assert torch.equal(after["0.weight"], before["0.weight"])
    assert torch.equal(after["1.weight"], before["1.weight"].half().float())


def test_a_run_begun_before_a_setting_existed_goes_on(tmp_path, images, config):
    train(config, images, tmp_path, watch=stop_at(3))
    held = json.loads((tmp_path / "config.json").read_text())
    del held["half_weights"]
    (tmp_path / "config.json").write_text(json.dumps(held))
    for file in (tmp_path / "checkpoints").glob("*/manifest.json"):
        file.write_bytes(sealed({**unsealed(file.read_bytes(), "manifest"), "config": held}))
    with pytest.raises(InputError, match="half_weights was False and is True"):
        train(dataclasses.replace(config, half_weights=True), images, tmp_path, resume=True)
    steps = []
    train(config, images, tmp_path, resume=True, watch=lambda now: steps.append(now.step))
    assert steps[0] == 4  # from its checkpoint, not from the start


def test_averaged_weights_are_the_result(tmp_path, images):
    train(make_config(averaging=0.9), images, tmp_path)
    tensors = checkpoint(tmp_path)[1]
    result = load(tmp_path / "model").model.fc.weight
    assert torch.equal(result, tensors["state.safetensors:average.fc.weight"])
    assert not torch.equal(result, tensors["state.safetensors:network.fc.weight"])


def test_golden_loss_curve(tmp_path, images):
    """Losses of the first steps as they were; a change of the rule, the draws or the schedule shows here."""
    train(make_config(epochs=10, milestones=(8,)), images, tmp_path)
    losses = [row["loss"] for row in read_log(tmp_path)]
    assert len(losses) == 50
    golden = [1.4281, 1.0151, 1.2762, 0.8383, 0.7562, 0.5948, 0.4876, 0.5142]
    assert losses[::7] == pytest.approx(golden, abs=2e-4)


def test_nan_stops_within_a_step_and_keeps_the_last_good(tmp_path, images, monkeypatch):
    from linocut.training.trainer import Trainer

    good = Trainer.update
    calls = []

    def poisoned(self, *arguments, **keywords):
        calls.append(1)
        if len(calls) == 8:
            with torch.no_grad():
                self.network.fc.bias.fill_(float("nan"))
        return good(self, *arguments, **keywords)

    monkeypatch.setattr(Trainer, "update", poisoned)
    with pytest.raises(InputError, match=r"no finite number near step 8; step 6 is saved"):
        train(make_config(), images, tmp_path, checkpoint_every=3)
    assert len(calls) == 8
    step, tensors = checkpoint(tmp_path)
    assert step == 6
    assert all(value.isfinite().all() for value in tensors.values())


def test_weights_that_are_no_numbers_are_never_saved(tmp_path, images, monkeypatch):
    """The loss of step 6 is a number, but its update is none; the checkpoint due there must not stand."""
    from linocut.training.trainer import Trainer

    good, calls = Trainer.update, []

    def overshooting(self, *arguments, **keywords):
        outcome = good(self, *arguments, **keywords)
        calls.append(1)
        if len(calls) == 6:
            with torch.no_grad():
                self.network.fc.bias[0] = float("inf")
        return outcome

    monkeypatch.setattr(Trainer, "update", overshooting)
    with pytest.raises(InputError, match=r"weights are no finite numbers after step 6; step 3 is saved"):
        train(make_config(), images, tmp_path, checkpoint_every=3)
    assert checkpoint(tmp_path)[0] == 3


@pytest.mark.parametrize("foreign", ['{"foo": 5}', "5", "[", '{"step": "five"}'])
def test_a_line_that_is_no_row_of_a_log_is_named_with_what_to_do(tmp_path, images, config, foreign):
    train(config, images, tmp_path, watch=stop_at(4))
    file = tmp_path / "log.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:2], foreign + "\n", *lines[2:]]))
    with pytest.raises(InputError, match=r"log.jsonl, line 3 is no row of a log .*: remove it"):
        train(config, images, tmp_path, resume=True)
    file.write_text("".join(lines))
    assert train(config, images, tmp_path, resume=True).step == 20


@pytest.mark.parametrize("damage", ["", "[]", "{", "5"])
def test_settings_that_cannot_be_read_may_be_removed(tmp_path, images, config, damage):
    train(config, images, tmp_path, watch=stop_at(4))
    (tmp_path / "config.json").write_text(damage)
    with pytest.raises(InputError, match=r"config.json .*remove it to go on, the checkpoints hold"):
        train(config, images, tmp_path, resume=True)
    (tmp_path / "config.json").unlink()
    with pytest.raises(InputError, match="num_steps"):
        train(make_config(num_steps=5), images, tmp_path, resume=True)
    (tmp_path / "config.json").unlink()
    assert train(config, images, tmp_path, resume=True).step == 20


def test_a_run_without_a_whole_checkpoint_says_that_it_starts_anew(tmp_path, images, config, caplog):
    train(config, images, tmp_path, watch=stop_at(4))
    for file in tmp_path.glob("checkpoints/step-*/manifest.json"):
        file.write_text("{}")
    assert train(config, images, tmp_path, resume=True).step == 20
    assert "no checkpoint is whole: the run starts anew" in caplog.text


@pytest.mark.parametrize("torn", [b'{"step": 5, "lo', b'{"step": 5, "lo\xff\x00'])
def test_a_torn_last_log_line_is_dropped_with_a_warning(tmp_path, images, config, torn):
    train(config, images, tmp_path, watch=stop_at(4))
    with open(tmp_path / "log.jsonl", "ab") as stream:
        stream.write(torn)
    with pytest.warns(UserWarning, match="torn"):
        train(config, images, tmp_path, resume=True)
    assert [row["step"] for row in read_log(tmp_path)] == list(range(1, 21))


def test_a_last_batch_too_small_for_batch_statistics_is_refused_before_the_first_step(tmp_path):
    config = make_config(architecture="preact-resnet-18", batch_size=13, epochs=1)
    with pytest.raises(InputError, match=r"last batch of an epoch would be 1 here.*another batch_size"):
        train(config, make_images(40), tmp_path)
    assert not (tmp_path / "log.jsonl").exists()


def test_images_the_network_cannot_take_and_no_steps_between_checkpoints_are_refused(tmp_path, images):
    with pytest.raises(InputError, match="madry-net cannot take images of 6x6"):
        train(make_config(architecture="madry-net"), images, tmp_path)
    with pytest.raises(InputError, match="checkpoint_every"):
        train(make_config(), images, tmp_path, checkpoint_every=0)


@pytest.mark.parametrize(
    "transform",
    [
        {"class": "Unknown", "settings": {}},
        {"class": "FixedCodebook", "settings": {}},
        {"class": "FixedCodebook", "settings": {"colors": [[0, 0, 0]]}},
    ],
)
def test_a_transform_for_the_test_that_cannot_be_is_refused_before_the_first_step(tmp_path, images, transform):
    with pytest.raises(InputError):
        train(make_config(transform=transform, transform_at="test"), images, tmp_path)
    assert not (tmp_path / "log.jsonl").exists()
    train(make_config(epochs=1), images, tmp_path)  # a run that never began does not keep the folder
    with pytest.raises(InputError, match="holds a run already"):
        train(make_config(epochs=1), images, tmp_path)


@pytest.mark.parametrize("name", ["mps", "meta", "tpu", ""])
def test_other_devices_are_refused(name):
    with pytest.raises(InputError, match="use cpu, cuda or auto"):
        local_device(name)


def test_rows_go_to_tensorboard_where_it_is_installed(tmp_path, images, config, monkeypatch):
    rows = []

    class Board:
        def add_scalar(self, name, value, step):
            rows.append((name, step))

        def close(self):
            rows.append("closed")

    monkeypatch.setattr("linocut.training.journal._tensorboard", lambda folder, step: Board())
    train(config, images, tmp_path)
    assert ("loss", 1) in rows
    assert ("robust_accuracy", 20) in rows
    assert rows[-1] == "closed"


def test_saving_takes_a_small_share_of_the_time_where_nobody_says_how_often(images, tmp_path, monkeypatch):
    saved = []
    slow = loop.save_checkpoint

    def counted(root, step, *rest):
        saved.append(step)
        slow(root, step, *rest)

    looks = itertools.count()  # every look at the clock is 100 s later, so a save takes 100 s
    monkeypatch.setattr(loop, "save_checkpoint", counted)
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: 100.0 * next(looks)))
    config = make_config(epochs=30)
    train(config, images, tmp_path)
    per_epoch = saved[0]
    assert 1 < len(saved) < 10  # the first epoch, a few, the end
    assert all(step % per_epoch == 0 for step in saved)
