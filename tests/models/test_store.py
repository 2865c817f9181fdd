"""Networks on disk: what goes in comes out, and nothing damaged, foreign or absurd does."""

import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest
import safetensors.torch
import torch

from linocut.errors import InputError
from linocut.models import Architecture, Card, Defended, build, load, read_card, save
from linocut.models.pretrained import save_pretrained
from linocut.models.seal import sealed, unsealed
from linocut.models.tensors import without_loss

SMALL = Architecture(name="small-net", in_channels=1)


@pytest.fixture
def defended():
    return Defended(None, build("small-net", 10, 1), mean=[0.25], std=[0.5]).eval()


@pytest.fixture
def folder(tmp_path, defended):
    save(tmp_path / "net", defended, Card(architecture=SMALL, data_set="digits", metrics={"clean": 0.9}))
    return tmp_path / "net"


def weights_of(folder):
    return next(folder.glob("weights-*.safetensors"))


def edit(folder, change):
    content = unsealed((folder / "card.json").read_bytes(), "card.json")
    change(content)
    (folder / "card.json").write_bytes(sealed(content))


def test_what_is_saved_is_loaded(folder, defended):
    images = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    loaded = load(folder)
    assert torch.equal(loaded(images), defended(images))
    assert not loaded.training
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    card = read_card(folder).card
    assert (card.data_set, card.metrics) == ("digits", {"clean": 0.9})


def test_batch_statistics_and_channels_last_survive(tmp_path):
    network = build("wrn-16-4").to(memory_format=torch.channels_last)
    network.bn1.running_mean.fill_(3.0)
    save(tmp_path / "net", Defended(None, network), Card(architecture=Architecture(name="wrn-16-4")))
    loaded = load(tmp_path / "net").model.state_dict()
    assert all(torch.equal(value, loaded[name]) for name, value in network.state_dict().items())


def in_halves(network):
    for tensor in network.state_dict().values():
        if tensor.dim() >= 2:
            tensor.copy_(tensor.half())
    return network


def test_what_halves_can_hold_is_stored_in_half_and_comes_back_to_the_bit(tmp_path):
    network = in_halves(build("small-net", 10, 1))
    with torch.no_grad():
        network.fc.weight[0, :3] = torch.tensor([-0.0, 65504.0, 2.0**-24])  # the largest half and the smallest
        network.fc.bias[0] = 1 / 3
    save(tmp_path / "net", Defended(None, network), Card(architecture=SMALL))
    stored = safetensors.torch.load_file(weights_of(tmp_path / "net"))
    for name, value in network.state_dict().items():
        if value.dim() >= 2:
            assert stored[name].dtype == torch.float16
    assert stored["fc.bias"].dtype == torch.float32
    loaded = load(tmp_path / "net").model.state_dict()
    for name, value in network.state_dict().items():
        assert loaded[name].dtype == value.dtype
        assert torch.equal(loaded[name].flatten().view(torch.uint8), value.flatten().view(torch.uint8))


@pytest.mark.parametrize("value", [65520.0, float("nan"), 1 + 2.0**-11, 2.0**-25])
def test_a_tensor_with_one_value_that_is_no_half_stays_as_it_is(value):
    tensor = torch.ones(5)
    assert without_loss(tensor).dtype == torch.float16
    tensor[3] = value
    assert without_loss(tensor) is tensor
    assert without_loss(torch.tensor(3)).dtype == torch.int64


def test_wrn_16_4_in_halves_takes_less_than_ten_megabytes(tmp_path):
    network = in_halves(build("wrn-16-4"))
    defended = Defended(None, network)
    for write in (save, save_pretrained):
        folder = tmp_path / write.__name__
        write(folder, defended, Card(architecture=Architecture(name="wrn-16-4")))
        assert sum(path.stat().st_size for path in folder.iterdir()) < 6e6
        loaded = load(folder).model.state_dict()
        assert all(torch.equal(value, loaded[name]) for name, value in network.state_dict().items())


def test_a_transform_comes_back_with_its_settings(tmp_path):
    from linocut.transform import modules

    for transform in (modules.EssentialFeatures(eps=0.1, kernel_sizes=(3, 1, 1)), modules.AdaptiveBlur()):
        save(
            tmp_path / "net",
            Defended(transform, build("small-net", 10, 3)),
            Card(architecture=Architecture(name="small-net")),
        )
        loaded = load(tmp_path / "net").transform
        assert type(loaded) is type(transform)
        assert loaded.settings() == transform.settings()


def test_unknown_transforms_are_neither_saved_nor_loaded(folder, defended):
    with pytest.raises(InputError, match="ReLU"):
        save(folder, Defended(torch.nn.ReLU(), defended.model), Card(architecture=SMALL))
    edit(folder, lambda card: card.update(transform={"class": "os.system", "settings": {}}))
    with pytest.raises(InputError, match=r"os\.system"):
        load(folder)


def test_every_flipped_byte_is_detected(folder, count):
    random = torch.Generator().manual_seed(0)
    for file in (weights_of(folder), folder / "card.json"):
        whole = file.read_bytes()
        for _ in range(count(20, 200)):
            place = int(torch.randint(len(whole), (), generator=random))
            bit = 1 << int(torch.randint(8, (), generator=random))
            file.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
            with pytest.raises(InputError):
                load(folder)
        file.write_bytes(whole)
    load(folder)


def test_a_flipped_byte_passes_without_the_hash(folder):
    """Why the hash is needed: safetensors itself loads a damaged tensor without a word."""
    whole = bytearray(weights_of(folder).read_bytes())
    whole[-100] ^= 4
    safetensors.torch.load(bytes(whole))


def test_truncated_weights_are_refused(folder):
    file = weights_of(folder)
    whole = file.read_bytes()
    for length in (0, 1, 7, 8, 9, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError, match="bytes"):
            load(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda card: card.update(format="linocut-model-9"),
        lambda card: card.update(surprise=1),
        lambda card: card.pop("metrics"),
        lambda card: card["architecture"].update(name="vgg"),
        lambda card: card["architecture"].update(num_classes=10**12),
        lambda card: card["architecture"].update(num_classes=11),
        lambda card: card["architecture"].update(in_channels=True),
        lambda card: card["weights"].update(file="../elsewhere"),
        lambda card: card["weights"].update(file="absent.safetensors"),
        lambda card: card["weights"].update(bytes="many"),
        lambda card: card["weights"].update(sha256="0" * 64),
        lambda card: card.update(mean=["a"]),
        lambda card: card.update(std=[0.0]),
        lambda card: card.update(mean=[10**400]),
        lambda card: card.update(mean=[], std=[]),
        lambda card: card.update(mean=[0.5, 0.5], std=[0.5, 0.5]),
        lambda card: card.update(transform={"class": "EssentialFeatures", "settings": {"lloyd_steps": "x"}}),
        lambda card: card.update(transform={"class": "EssentialFeatures", "settings": {"eps": 10**400}}),
        lambda card: card.update(transform={"class": "EssentialFeatures"}),
    ],
)
def test_wrong_cards_are_refused(folder, change):
    edit(folder, change)
    with pytest.raises(InputError):
        load(folder)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 100_000, "\xff", '{"a": NaN, "sha256": ""}', "{" + " " * (1 << 20)]
)
def test_cards_that_are_none_are_refused(folder, text):
    (folder / "card.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"card\.json"):
        load(folder)


def with_weights(folder, tensors=None, content=None):
    """Exchange the weights for others and make the card's size and hash agree with them."""
    content = safetensors.torch.save(tensors) if content is None else content
    weights_of(folder).write_bytes(content)
    edit(
        folder,
        lambda card: card["weights"].update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest()),
    )


def test_missing_extra_misshapen_and_mistyped_tensors_are_refused(folder, defended):
    good = defended.model.state_dict()
    for tensors in (
        {name: value for name, value in good.items() if name != "fc.bias"},
        {**good, "payload": torch.zeros(3)},
        {**good, "fc.bias": torch.zeros(11)},
        {**good, "fc.bias": torch.zeros(10, dtype=torch.float64)},
        {**good, "fc.bias": torch.zeros(10, dtype=torch.bfloat16)},
        {**good, "fc.bias": torch.zeros(11, dtype=torch.float16)},
        {**good, "bn1.num_batches_tracked": torch.zeros((), dtype=torch.float16)},
    ):
        with_weights(folder, tensors)
        with pytest.raises(InputError):
            load(folder)
    with_weights(folder, good)
    load(folder)


def test_a_card_without_its_weights_says_where_to_look(folder):
    weights_of(folder).unlink()
    with pytest.raises(InputError, match=r"is not there \(\d+ bytes by its card.*verification\.json"):
        load(folder)


def test_absurd_headers_are_refused_before_memory_is_spent(folder):
    huge = json.dumps({"fc.bias": {"dtype": "F32", "shape": [1 << 50], "data_offsets": [0, 1 << 52]}}).encode()
    for content in (
        (1 << 60).to_bytes(8, "little") + b"{}",
        len(huge).to_bytes(8, "little") + huge,
        (2).to_bytes(8, "little") + b"[]",
        b"\x80\x04\x95" + b"x" * 40,
    ):
        with_weights(folder, content=content)
        with pytest.raises(InputError):
            load(folder)


def test_a_network_of_another_shape_is_not_saved(tmp_path, defended):
    with pytest.raises(InputError, match="fit"):
        save(tmp_path, defended, Card(architecture=Architecture(name="small-net", num_classes=3)))


def test_a_card_that_could_not_be_loaded_is_not_saved(tmp_path):
    short = Defended(None, build("small-net", 10, 3), mean=[0.5], std=[0.5])
    with pytest.raises(InputError, match="one a channel"):
        save(tmp_path / "net", short, Card(architecture=Architecture(name="small-net")))
    assert not (tmp_path / "net").exists()


def test_a_card_json_cannot_hold_is_not_saved(tmp_path, defended):
    with pytest.raises(InputError, match="JSON"):
        save(tmp_path, defended, Card(architecture=SMALL, metrics={"loss": float("nan")}))


def test_saving_again_replaces_the_pair_and_leaves_nothing_behind(folder, defended):
    with torch.no_grad():
        defended.model.fc.bias.add_(1)
    save(folder, defended, Card(architecture=SMALL))
    assert torch.equal(load(folder).model.fc.bias, defended.model.fc.bias)
    assert len(list(folder.iterdir())) == 2


KILLED = """
import os, pathlib, signal, sys, torch
from linocut.models import Architecture, Card, Defended, build, save
folder, stage = sys.argv[1], int(sys.argv[2])
steps = {"number": 0}
def dying(call):
    def stand_in(*arguments):
        if steps["number"] == stage:
            os.kill(os.getpid(), signal.SIGKILL)
        steps["number"] += 1
        return call(*arguments)
    return stand_in
for place, name in ((os, "fsync"), (os, "replace"), (pathlib.Path, "write_bytes")):
    setattr(place, name, dying(getattr(place, name)))
network = build("small-net", 10, 1, generator=torch.Generator().manual_seed(1))
small = Architecture(name="small-net", in_channels=1)
save(folder, Defended(None, network), Card(architecture=small, data_set="new"))
print("finished", steps["number"])
"""


def test_a_save_killed_at_any_stage_leaves_a_network_that_loads(folder, defended, count):
    """Write, flush, rename, flush the folder; twice. Stage 8 is past the last."""
    for stage in count((2, 6, 8), range(9)):
        command = [sys.executable, "-c", KILLED, str(folder), str(stage)]
        done = subprocess.run(command, env=os.environ, capture_output=True)
        assert done.returncode == (0 if stage == 8 else -signal.SIGKILL), done.stderr.decode()
        loaded, name = load(folder), read_card(folder).card.data_set
        assert name == ("digits" if stage < 7 else "new")
        assert torch.equal(loaded.model.fc.weight, defended.model.fc.weight) == (name == "digits")


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path, defended):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(InputError, match="could not write"):
        save(blocked / "net", defended, Card(architecture=SMALL))


def test_a_full_disk_keeps_the_old_network(folder, defended, monkeypatch):
    from pathlib import Path

    def full(self, content):
        with open(self, "wb") as stream:
            stream.write(content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    before = load(folder).model.fc.bias
    with torch.no_grad():
        defended.model.fc.bias.add_(1)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="No space left"):
        save(folder, defended, Card(architecture=SMALL))
    assert torch.equal(load(folder).model.fc.bias, before)
    assert len(list(folder.iterdir())) == 2


def test_the_folder_of_a_training_is_told_from_its_network(tmp_path, folder):
    (tmp_path / "run").mkdir()
    folder.rename(tmp_path / "run" / "model")
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"its network is .*run/model"):
        load(tmp_path / "run")
