"""Weights of others: understood where they fit, refused where they do not, and never run."""

import argparse
import json
import os
import pickle
import traceback
import warnings

import pytest
import torch
from typer.testing import CliRunner

from linocut.cli import app
from linocut.errors import InputError
from linocut.models import Architecture, build, load
from linocut.models.foreign import read_pt

SMALL = Architecture(name="small-net", in_channels=1)


class Payload:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"epoch": 3, "state_dict": state},
        lambda state: {"module." + name: value for name, value in state.items()},
        lambda state: {"net": {"module._orig_mod." + name: value.double() for name, value in state.items()}},
    ],
)
def test_usual_state_dicts_are_understood(tmp_path, wrap):
    network = build("small-net", 10, 1)
    torch.save(wrap(network.state_dict()), tmp_path / "net.pt")
    read = read_pt(tmp_path / "net.pt", SMALL)
    images = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(read(images), network(images))


def test_a_malicious_file_is_refused_and_not_run(tmp_path):
    target = tmp_path / "payload-ran"
    file = tmp_path / "evil.pt"
    torch.save({"state_dict": build("small-net", 10, 1).state_dict(), "extra": Payload(target)}, file)
    with pytest.raises(InputError, match="refused"):
        read_pt(file, SMALL)
    assert not target.exists()
    torch.load(file, weights_only=False)  # the payload is real: a plain load runs it
    assert target.exists()


def scripted(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), str(path))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: torch.save({"a": argparse.Namespace(x=1)}, path), "argparse.Namespace"),
        (lambda path: torch.save(torch.nn.Linear(1, 1), path), "torch.nn.modules.linear.Linear"),
        (lambda path: torch.save({"a": Payload("x")}, path), "mkdir"),
        (lambda path: path.write_bytes(pickle.dumps({"a": argparse.Namespace(x=1)})), "no .pt file of weights"),
        (scripted, "TorchScript"),
        (lambda path: path.write_text("hello"), "no .pt file of weights"),
    ],
)
def test_nobody_is_told_how_to_read_a_file_that_was_refused(tmp_path, make, told):
    make(tmp_path / "net.pt")
    with pytest.raises(InputError) as refused:
        read_pt(tmp_path / "net.pt", SMALL)
    shown = "".join(traceback.format_exception(refused.value))
    assert told in str(refused.value)
    assert not [advice for advice in ("safe_globals", "Re-running", "`weights_only`") if advice in shown]
    assert "weights_only" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"garbage" * 100, b"PK\x03\x04" + b"0" * 100])
def test_files_that_are_none_are_refused(tmp_path, content):
    (tmp_path / "net.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"net\.pt"):
        read_pt(tmp_path / "net.pt", SMALL)


@pytest.mark.parametrize("content", [[1, 2], {}, {"a": 1}, {"fc.bias": torch.zeros(3)}])
def test_other_contents_are_refused(tmp_path, content):
    torch.save(content, tmp_path / "net.pt")
    with pytest.raises(InputError):
        read_pt(tmp_path / "net.pt", SMALL)
    with pytest.raises(InputError):
        read_pt(tmp_path / "absent.pt", SMALL)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(1).expand(10**6, 10**6),
        torch.zeros(1, dtype=torch.half).expand(10**6, 10**6),
        torch.zeros(10, 128).to_sparse(),
        torch.zeros(10, 128, device="meta"),
    ],
    ids=["huge", "huge half", "sparse", "meta"],
)
def test_tensors_that_claim_what_they_do_not_hold_are_refused(tmp_path, tensor):
    state = build("small-net", 10, 1).state_dict()
    torch.save({**state, "fc.weight": tensor}, tmp_path / "net.pt")
    assert (tmp_path / "net.pt").stat().st_size < 2**20
    with pytest.raises(InputError, match=r"fc\.weight"):
        read_pt(tmp_path / "net.pt", SMALL)


def test_import_verb_writes_a_folder_that_loads(tmp_path):
    network = build("small-net", 10, 1)
    torch.save(network.state_dict(), tmp_path / "net.pt")
    command = [
        "models",
        "import",
        str(tmp_path / "net.pt"),
        "--architecture",
        "small-net",
        "--in-channels",
        "1",
    ]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "net"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["folder"] == str(tmp_path / "net")
    assert torch.equal(load(tmp_path / "net").model.fc.weight, network.fc.weight)


def test_list_verb_names_every_network():
    done = CliRunner().invoke(app, ["models", "list", "--json"])
    assert '"madry-net": 3274634' in done.output
    assert "wrn-34-10" in CliRunner().invoke(app, ["models", "list"]).output
