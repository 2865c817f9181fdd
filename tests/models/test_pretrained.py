"""Folders in Hugging Face's layout: whole, checked, and local."""

import json

import pytest
import safetensors.torch
import torch

from linocut.errors import InputError
from linocut.models import Architecture, Card, Defended, build, load, save
from linocut.transform.modules import EssentialFeatures, FixedCodebook

CARD = Card(
    architecture=Architecture(name="small-net", in_channels=1), data_set="digits", metrics={"clean": [90.1, {"n": 500}]}
)


@pytest.fixture
def model():
    return Defended(EssentialFeatures.preset("mnist", image_size=8), build("small-net", 10, 1), [0.5], [0.25]).eval()


def test_what_is_saved_comes_back(model, tmp_path):
    model.save_pretrained(tmp_path / "m", CARD)
    assert {path.name for path in (tmp_path / "m").iterdir()} == {"config.json", "model.safetensors", "README.md"}
    x = torch.rand((4, 1, 8, 8), generator=torch.Generator().manual_seed(0))
    for again in (Defended.from_pretrained(tmp_path / "m"), load(tmp_path / "m")):
        assert not again.training
        assert again.transform.settings() == model.transform.settings()
        assert torch.equal(again(x), model(x))


def test_others_can_read_it(model, tmp_path):
    model.save_pretrained(tmp_path, CARD)
    tensors = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert tensors.keys() == model.model.state_dict().keys()
    assert json.loads((tmp_path / "config.json").read_text())["architecture"]["name"] == "small-net"
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("---\nlibrary_name: linocut\n")
    assert "small-net on digits" in text
    assert '[90.1, {"n": 500}]' in text
    assert "eps=0.3" in text


def test_the_readme_names_the_size_and_spares_the_reader_a_codebook(tmp_path):
    card = Card(architecture=Architecture(name="small-net", in_channels=1), recipe={"image_size": 8})
    grey = FixedCodebook.depth(40)
    Defended(grey, build("small-net", 10, 1)).save_pretrained(tmp_path, card)
    text = (tmp_path / "README.md").read_text()
    assert "(B,1,8,8)" in text
    assert "colors=<40 entries" in text
    assert Defended.from_pretrained(tmp_path).transform.settings() == grey.settings()


def test_saving_again_replaces(model, tmp_path):
    model.save_pretrained(tmp_path, CARD)
    other = Defended(None, build("small-net", 10, 1, generator=torch.Generator().manual_seed(5))).eval()
    other.save_pretrained(tmp_path, CARD)
    assert Defended.from_pretrained(tmp_path).transform is None


def test_weights_that_were_exchanged_are_refused(model, tmp_path):
    model.save_pretrained(tmp_path, CARD)
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match="SHA-256"):
        Defended.from_pretrained(tmp_path)


def test_names_are_not_looked_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="nothing is downloaded"):
        Defended.from_pretrained("someone/model")


def test_another_layout_is_not_mixed_in(model, tmp_path):
    save(tmp_path, model, CARD)
    with pytest.raises(InputError, match="another folder"):
        model.save_pretrained(tmp_path, CARD)
