"""Published networks are taken over where they are what a training would make, so that other rows can join them."""

import json
import shutil
from dataclasses import replace

import pytest

from linocut.recipes.reproduce import making
from linocut.recipes.reproduce.plan_file import numerics_of
from linocut.recipes.reproduce.reproduction import prepare
from linocut.recipes.reproduce.scales import Numerics

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


def test_the_plan_says_which_networks_are_taken_over(published, tmp_path, short):
    def planned(**settings):
        estimates = prepare(
            [("digits", "baseline")],
            scale=breakable,
            seeds=(0,),
            out=tmp_path / "out",
            root=None,
            device=CPU,
            title="taken over",
            **settings,
        ).estimates
        return estimates[f"{BASE}/model"]

    assert planned(published=published) == {"seconds": 0, "at_most": False, "whole_batches": True, "taken_over": True}
    alone = planned()
    assert alone["seconds"] > 0
    assert "taken_over" not in alone


def told(results, place, precision):
    (results / place).mkdir(parents=True)
    (results / place / "config.json").write_text(json.dumps({"precision": precision}))


def test_rows_that_join_are_trained_in_the_format_of_the_published(tmp_path):
    results = tmp_path / "results"
    shop = replace(shop_at(tmp_path / "out"), published=results)
    assert numerics_of(shop) == Numerics.on(shop.device)  # nothing lies there
    told(results, "mnist/baseline/seed-0", "bfloat16")
    assert Numerics.on(shop.device).precision == "float32"
    assert numerics_of(shop) == replace(Numerics.on(shop.device), precision="bfloat16")
    told(results, "mnist/ac-retrained/seed-0", "float32")
    assert numerics_of(shop) == Numerics.on(shop.device)  # they differ
