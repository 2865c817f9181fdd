"""A codebook fitted when a run begins: found again by every process and every resumed run."""

import json

import pytest

from linocut.errors import InputError
from linocut.models import load
from linocut.training import train
from linocut.transform.modules import FixedCodebook

from .conftest import make_config, make_images
from .test_crash import scenario
from .test_resume import checkpoint, same, stop_at

FIT = {"class": "FixedCodebook", "fit": {"k": 5, "r": 16}, "settings": {"softness": 0.05}}


@pytest.mark.parametrize("when", ["train", "test"])
def test_config_checkpoints_and_model_hold_the_codes_and_the_hash_of_their_images(tmp_path, images, when):
    book = FixedCodebook.fit(images, 5, 16)
    resolved = {"class": "FixedCodebook", "settings": {**book.settings(), "softness": 0.05}}
    train(make_config(transform=FIT, transform_at=when, epochs=1), images, tmp_path)
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    manifest = json.loads(max(tmp_path.glob("checkpoints/*/manifest.json")).read_text())
    for config in (json.loads((tmp_path / "config.json").read_text()), manifest["config"], card["recipe"]):
        assert config["transform"] == resolved
    assert resolved["settings"]["origin"]["sha256"] == images.sha256
    assert load(tmp_path / "model").transform.settings() == resolved["settings"]


def test_retrained_goes_through_the_codes_and_pretrained_does_not(tmp_path, images):
    settings = {**FixedCodebook.fit(images, 5, 16).settings(), "softness": 0.05}
    for name, changes in (
        ("none", {}),
        ("test", {"transform": FIT, "transform_at": "test"}),
        ("train", {"transform": FIT, "transform_at": "train"}),
        ("given", {"transform": {"class": "FixedCodebook", "settings": settings}}),
    ):
        train(make_config(epochs=1, **changes), images, tmp_path / name)
    none, test, trained, given = (checkpoint(tmp_path / name) for name in ("none", "test", "train", "given"))
    assert same(none, test)
    assert not same(none, trained)
    assert same(trained, given)


def test_codes_are_fitted_or_given_and_not_both(tmp_path, images):
    both = {**FIT, "settings": {"colors": [[1]]}}
    with pytest.raises(InputError, match="either them or fit"):
        train(make_config(transform=both, epochs=1), images, tmp_path)


def test_a_resumed_run_finds_the_same_codes(tmp_path, images):
    config = make_config(transform=FIT)
    train(config, images, tmp_path / "straight")
    train(config, images, tmp_path / "stopped", watch=stop_at(7))
    train(config, images, tmp_path / "stopped", resume=True)
    assert same(checkpoint(tmp_path / "straight"), checkpoint(tmp_path / "stopped"))


def test_other_images_and_another_fit_are_refused_by_name(tmp_path, images):
    config = make_config(transform=FIT, epochs=1)
    train(config, images, tmp_path)
    with pytest.raises(InputError, match=r"transform\.settings\.origin\.sha256 was '.*' and is '.*'") as refused:
        train(config, make_images(seed=1), tmp_path, resume=True)
    assert len(str(refused.value)) < 1000
    other = make_config(transform={**FIT, "fit": {"k": 4, "r": 16}}, epochs=1)
    with pytest.raises(InputError, match=r"transform\.settings\.origin\.k was 5 and is 4"):
        train(other, images, tmp_path, resume=True)


@pytest.mark.parametrize(
    ("transform", "told"),
    [
        ({**FIT, "fit": {"k": 5, "radius": 16}}, "cannot be made of these settings"),
        ({**FIT, "fit": {"k": 0}}, "k must be"),
        ({**FIT, "settings": {"hardness": 1}}, "cannot be made of these settings"),
        ({"class": "AdaptiveCodebook", "fit": {}, "settings": {}}, "only a FixedCodebook"),
        ({"class": "Magic", "fit": {}, "settings": {}}, "Magic"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_the_folder_is_touched(tmp_path, images, transform, told):
    with pytest.raises(InputError, match=told):
        train(make_config(transform=transform), images, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_test_split_is_refused(tmp_path):
    images = make_images()
    images.split = "test"
    with pytest.raises(InputError, match="must not see test images"):
        train(make_config(transform=FIT), images, tmp_path)


def test_two_ranks_fit_alike_and_go_on(tmp_path):
    assert scenario("fitted_ranks", tmp_path)["statuses"] == [0, 0]
    assert len(load(tmp_path / "run" / "model").transform.codes) == 4
