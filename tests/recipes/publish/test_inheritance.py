"""Published networks are taken over where they are what a training would make, so that other rows can join them."""

import json
import shutil
from dataclasses import asdict, replace

import pytest

from linocut.errors import InputError
from linocut.models.seal import sealed, unsealed
from linocut.recipes.reproduce import making
from linocut.recipes.reproduce.plan_file import numerics_of
from linocut.recipes.reproduce.reproduction import prepare
from linocut.recipes.reproduce.scales import Numerics
from linocut.recipes.reproduce.stamps import State

from ..reproduce.conftest import do, shop_at
from ..reproduce.tiny import shorten
from .conftest import BASE, CPU, FIXED, breakable, plan_at, put

AC = "digits/ac-pretrained/seed-0"


class Trained(Exception):
    """Somebody began a training."""


@pytest.fixture
def nobody_trains(monkeypatch):
    def refuse(*_, **__):
        raise Trained

    monkeypatch.setattr(making, "train", refuse)


@pytest.fixture
def short():
    undo = shorten()
    yield
    undo()


def with_published(out, results, rows):
    plan, shop = plan_at(out, rows=rows)
    return plan, replace(shop, published=results)


def test_another_row_joins_the_published_ones(published, tmp_path, nobody_trains, short):
    results = tmp_path / "results"
    shutil.copytree(published, results)
    made = do(*with_published(tmp_path / "out", results, ("ac-pretrained",))).made
    assert f"{AC}/model" in made
    for name in ("model/card.json", "config.json", "log.jsonl"):
        assert (tmp_path / "out" / BASE / name).read_bytes() == (published / BASE / name).read_bytes()
    done = put(tmp_path / "out", results)
    assert (results / AC / "model/card.json").is_file()
    assert (results / FIXED / "model/card.json").is_file()
    assert {name.rpartition("/")[0] for name in done.verified} == {AC}
    assert all(each.whole.claims and not each.whole.failures for each in done.verified.values())


def test_what_a_killed_process_left_unfinished_is_not_taken_over(published, tmp_path, nobody_trains):
    results = tmp_path / "results"
    shutil.copytree(published, results)
    (results / BASE / "model" / ".card.json.7.unfinished").write_text("{")
    plan, shop = with_published(tmp_path / "out", results, ("baseline",))
    plan.steps[0].run(shop, lambda share, words: None)
    taken, whole = (sorted(path.name for path in (at / BASE / "model").iterdir()) for at in (shop.out, published))
    assert taken == whole


@pytest.mark.parametrize("change", [{"epochs": 2}, {"seed": 1}, {"learning_rate": 0.05}])
def test_another_training_is_not_taken_over(published, tmp_path, nobody_trains, change):
    plan, shop = with_published(tmp_path / "out", published, ("baseline",))
    step = plan.steps[0]
    step.work = step.work.with_config(**change)
    with pytest.raises(Trained):
        step.run(shop, lambda share, words: None)


def test_a_damaged_network_is_trained_again(published, tmp_path, nobody_trains):
    results = tmp_path / "results"
    shutil.copytree(published, results)
    (weights,) = (results / BASE / "model").glob("weights-*")
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    plan, shop = with_published(tmp_path / "out", results, ("baseline",))
    with pytest.raises(Trained):
        plan.steps[0].run(shop, lambda share, words: None)


def test_how_quickly_it_was_made_does_not_matter(published, tmp_path, nobody_trains):
    plan, shop = with_published(tmp_path / "out", published, ("baseline",))
    step = plan.steps[0]
    step.work = step.work.with_config(channels_last=True)
    step.run(shop, lambda share, words: None)
    assert (shop.out / BASE / "model/card.json").is_file()


CODES = "digits/fixed-retrained/seed-0"


def test_a_network_behind_codes_is_taken_over_once_they_are_fitted(tmp_path, short, monkeypatch):
    plan, shop = plan_at(tmp_path / "first", rows=("fixed-retrained",))
    do(plan, shop)
    results, out = tmp_path / "results", tmp_path / "out"
    put(shop.out, results)

    def refuse(*_, **__):
        raise Trained

    monkeypatch.setattr(making, "train", refuse)
    assert f"{CODES}/model" in do(*with_published(out, results, ("fixed-retrained",))).made
    card = (results / CODES / "model/card.json").read_bytes()
    assert (out / CODES / "model/card.json").read_bytes() == card
    (out / CODES / "codebook.json").write_text('{"x"')  # damaged: fitted again, and no plan stumbles over it
    again = prepared("fixed-retrained", out, results)
    assert again.states[f"{CODES}/codebook"] is State.DUE
    assert "taken_over" not in again.estimates[f"{CODES}/model"]  # which codes it will have is not known yet
    do(*with_published(out, results, ("fixed-retrained",)))
    assert (out / CODES / "model/card.json").read_bytes() == card


def prepared(row, out, published):
    """The reproduction of a row of digits, planned and timed."""
    return prepare(
        [("digits", row)],
        scale=breakable,
        seeds=(0,),
        out=out,
        root=None,
        device=CPU,
        title="planned",
        published=published,
    )


def test_the_plan_says_which_networks_are_taken_over(published, tmp_path, short):
    name = f"{BASE}/model"
    joined = prepared("baseline", tmp_path / "out", published).estimates[name]
    assert joined == {"seconds": 0, "at_most": False, "whole_batches": True, "taken_over": True}
    alone = prepared("baseline", tmp_path / "out", None).estimates[name]
    assert alone["seconds"] > 0
    assert "taken_over" not in alone


def test_a_published_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a folder"):
        prepared("baseline", tmp_path / "out", tmp_path / "nowhere")


def trained(published, results, place, precision):
    """A network of that data set, trained in that format."""
    shutil.copytree(published / BASE / "model", results / place / "model")
    file = results / place / "model" / "card.json"
    card = unsealed(file.read_bytes(), str(file))
    file.write_bytes(sealed({**card, "recipe": {**card["recipe"], "precision": precision}}))


def test_rows_that_join_are_trained_in_the_format_of_the_published(published, tmp_path):
    results = tmp_path / "results"
    shop = replace(shop_at(tmp_path / "out"), published=results)
    usual = Numerics.on(shop.device)
    assert numerics_of(shop, {"mnist"}) == usual  # nothing lies there
    trained(published, results, "mnist/baseline/seed-0", "bfloat16")
    assert usual.precision == "float32"
    assert numerics_of(shop, {"mnist"}) == replace(usual, precision="bfloat16")
    assert numerics_of(shop, {"gtsrb"}) == usual  # another data set
    trained(published, results, "gtsrb/baseline/seed-0", "float32")
    assert numerics_of(shop, {"mnist"}) == replace(usual, precision="bfloat16")
    assert numerics_of(shop, {"mnist", "gtsrb"}) == usual  # they differ
    (results / "gtsrb/baseline/seed-0/model/card.json").write_text("{")
    assert numerics_of(shop, {"mnist", "gtsrb"}) == replace(usual, precision="bfloat16")  # that one is damaged
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "plan.json").write_text(json.dumps({"numerics": asdict(usual)}))
    assert numerics_of(shop, {"mnist"}) == usual  # what a folder was begun with stays
