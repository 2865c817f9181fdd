"""Crashes: kills, damage, full disks, two at once. Each fault is first shown to harm the plain way."""

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from linocut.errors import InputError
from linocut.training import train
from linocut.training.checkpoints import find_checkpoint
from linocut.training.curves import draw_curves
from linocut.training.folder import own_folder

from .test_resume import checkpoint, same, stop_at

NURSERY = Path(__file__).with_name("nursery.py")


def scenario(name, folder, *numbers):
    command = [sys.executable, "-W", "ignore", str(NURSERY), name, str(folder), *map(str, numbers)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_plain_save_does_not_survive_kills(tmp_path):
    assert scenario("naive", tmp_path, 12)["torn"] > 0


def test_killed_at_random_moments_every_run_resumes_to_the_same_bits(tmp_path, count):
    kills = count(3, 100)
    outcome = scenario("kills", tmp_path, kills)
    assert outcome == {"killed": kills, "resumed": kills}
    straight = checkpoint(tmp_path / "straight")
    assert all(same(checkpoint(tmp_path / f"run-{turn}"), straight) for turn in range(kills))


def test_killed_at_every_stage_of_a_save_every_run_resumes_to_the_same_bits(tmp_path, count):
    """Two files and a manifest, each written, flushed, renamed, and its folder flushed."""
    stages = count(6, 24)
    outcomes = scenario("stages", tmp_path, stages)["outcomes"]
    assert outcomes == [[-9, 0]] * stages
    bits = [checkpoint(tmp_path / f"run-{stage}") for stage in range(stages)]
    assert all(same(each, bits[0]) for each in bits)


@pytest.fixture(scope="module")
def two_checkpoints(tmp_path_factory):
    """A run stopped with two checkpoints, of steps 6 and 9; the tests damage copies of it."""
    from .conftest import TwoLayers, make_config, make_images

    out = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("linocut.models.architecture", fromlist=["x"]).NETWORKS, "two-layers", TwoLayers)
        train(make_config(), make_images(), out, checkpoint_every=3, watch=stop_at(9))
    return out


def damaged(files, count):
    """Ways to damage the bytes of a file, and a word for each."""
    random = torch.Generator().manual_seed(1)
    for file in files:
        whole = file.read_bytes()
        for length in (0, 1, 8, 9, len(whole) // 2, len(whole) - 8, len(whole) - 2):
            yield file, whole, whole[:length]
        for _ in range(count):
            place, bit = (int(torch.randint(n, (), generator=random)) for n in (len(whole), 8))
            yield file, whole, whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]


def test_every_truncation_and_flipped_bit_is_detected_and_the_one_before_is_used(two_checkpoints, tmp_path, count):
    shutil.copytree(two_checkpoints, tmp_path / "run")
    root = tmp_path / "run" / "checkpoints"
    newest = root / "step-000000009"
    assert find_checkpoint(root, print).step == 9
    files = [newest / name for name in ("state.safetensors", "canvas-0.safetensors", "manifest.json")]
    for file, whole, content in damaged(files, count(10, 200)):
        file.write_bytes(content)
        told = []
        assert find_checkpoint(root, told.append).step == 6
        assert len(told) == 1
        file.write_bytes(whole)


def test_a_flipped_bit_passes_unseen_through_a_plain_load(two_checkpoints, tmp_path):
    import safetensors.torch

    file = two_checkpoints / "checkpoints" / "step-000000009" / "state.safetensors"
    tensors = safetensors.torch.load_file(file)
    torch.save(tensors, tmp_path / "plain.pt")
    whole = bytearray((tmp_path / "plain.pt").read_bytes())
    weights = tensors["network.hidden.weight"].numpy().tobytes()
    whole[whole.find(weights) + 5] ^= 64
    (tmp_path / "plain.pt").write_bytes(whole)
    assert not torch.equal(torch.load(tmp_path / "plain.pt")["network.hidden.weight"], tensors["network.hidden.weight"])


def test_a_run_with_a_damaged_newest_checkpoint_still_ends_in_the_same_bits(two_checkpoints, tmp_path, images, config):
    shutil.copytree(two_checkpoints, tmp_path / "run")
    state = tmp_path / "run" / "checkpoints" / "step-000000009" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-1])
    train(config, images, tmp_path / "run", resume=True)
    train(config, images, tmp_path / "straight")
    assert same(checkpoint(tmp_path / "run"), checkpoint(tmp_path / "straight"))


@contextlib.contextmanager
def no_file_over(size):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_a_clear_error_for_new_runs_logs_and_figures_too(tmp_path, images, config):
    with no_file_over(0), pytest.raises(InputError, match=r"could not write .*config.json"):
        train(config, images, tmp_path / "new")
    with no_file_over(800), pytest.raises(InputError, match=r"cannot write .*log.jsonl"):
        train(config, images, tmp_path / "run", checkpoint_every=10)
    with pytest.warns(UserWarning, match="torn"):
        assert train(config, images, tmp_path / "run", resume=True).step == 20
    with no_file_over(100), pytest.raises(InputError, match=r"could not write .*curves.png"):
        draw_curves(tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir() if "curves" in path.name) == []


def test_a_full_disk_is_a_clear_error_and_keeps_the_last_checkpoint(two_checkpoints, tmp_path, images, config):
    """The system's limit on file sizes stands in for a full disk: writes fail in the middle of a file."""
    shutil.copytree(two_checkpoints, tmp_path / "run")
    with no_file_over(6000), pytest.raises(InputError, match=r"could not write .*step-0000000.*free space"):
        train(config, images, tmp_path / "run", resume=True)
    assert find_checkpoint(tmp_path / "run" / "checkpoints", print).step == 9
    train(config, images, tmp_path / "run", resume=True)
    assert checkpoint(tmp_path / "run")[0] == 20


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path, images, config):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot use"):
        train(config, images, tmp_path / "file" / "run")
    with pytest.raises(InputError, match="cannot use"):
        train(config, images, Path("/proc/linocut-run"))


def test_odd_paths_work(tmp_path, images, config):
    out = tmp_path / "ödd näme [1] %s 'x' \u4e2d"
    train(config, images, out, watch=stop_at(4))
    assert train(config, images, out, resume=True).step == 20


def test_a_second_process_is_refused(tmp_path, images, config):
    with own_folder(tmp_path), pytest.raises(InputError, match="another process"):
        train(config, images, tmp_path)
    train(config, images, tmp_path)


def test_signals_finish_the_step_save_and_set_the_status(tmp_path):
    outcomes = scenario("signals", tmp_path, 15, 2)
    for number, status in (("15", 143), ("2", 130)):
        assert outcomes[number]["status"] == status
        assert checkpoint(tmp_path / f"signal-{number}")[0] == outcomes[number]["rows"]  # a row a step
