"""`linocut train`: from a recipe's name to a model's folder."""

import json

import pytest
from typer.testing import CliRunner

from linocut.cli import app
from linocut.models import load
from linocut.recipes.training import recipe

pytest.importorskip("sklearn")
QUICK = ["--set", "epochs=1", "--set", "num_steps=1", "--set", "batch_size=256", "--device", "cpu"]


def run(*words):
    return CliRunner().invoke(app, ["train", *map(str, words)])


def test_a_recipe_becomes_a_model_with_card_log_and_curves(tmp_path):
    done = run("--recipe", "smoke/baseline", *QUICK, "--out", tmp_path / "run", "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["step"] == 6
    assert result["metrics"]["test_images"] == 359
    assert load(tmp_path / "run" / "model").transform is None
    card = json.loads((tmp_path / "run" / "model" / "card.json").read_text())
    assert card["recipe"]["recipe"] == "smoke/baseline"
    assert card["recipe"]["num_steps"] == 1
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, 7))
    assert {"loss", "robust_accuracy", "images_per_second", "learning_rate"} < rows[0].keys()
    assert (tmp_path / "run" / "curves.png").exists()
    again = run("--recipe", "smoke/baseline", *QUICK, "--out", tmp_path / "run")
    assert again.exit_code == 2
    assert "--resume" in again.output
    changed = run("--recipe", "smoke/baseline", *QUICK, "--set", "seed=3", "--out", tmp_path / "run", "--resume")
    assert changed.exit_code == 2
    assert "seed was 0 and is 3" in changed.output


def test_a_run_is_repeated_from_its_config(tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    for named, out, more in (("smoke/acab-retrained", first, QUICK), (first / "config.json", again, QUICK[-2:])):
        done = run("--recipe", named, *more, "--out", out)
        assert done.exit_code == 0, done.output
    cards = [json.loads((out / "model" / "card.json").read_text()) for out in (first, again)]
    assert cards[0] == cards[1]  # the hash of the weights too


@pytest.mark.parametrize("content", [None, "{", "[1]", "[" * 10**5, '{"epochs": 3}', '{"recipe": 5}'])
def test_a_file_that_is_no_config_is_refused(content, tmp_path):
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content)
    refused = run("--recipe", file, "--out", tmp_path / "run")
    assert refused.exit_code == 2
    assert str(file) in refused.output
    assert refused.output.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 2.5},
        {"epochs": True},
        {"flip": "no"},
        {"seed": None},
        {"transform": "abc"},
        {"batch_size": 64.0},
        {"learning_rate": True},
        {"num_steps": None},
        {"epoch": 3},
        {"eps": 5},
    ],
)
def test_a_config_whose_values_are_of_another_type_is_refused(change, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(recipe("smoke").to_json() | change))
    refused = run("--recipe", file, "--out", tmp_path / "run")
    assert refused.exit_code == 2
    assert str(file) in refused.output
    assert next(iter(change)) in refused.output
    assert refused.output.count("\n") == 1


def test_the_progress_bar_shows_what_matters(tmp_path):
    done = run("--recipe", "smoke/natural", *QUICK, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "images/s" in done.output
    assert "robust" in done.output


def test_the_folder_of_data_sets_is_named_as_for_the_other_verbs(tmp_path, monkeypatch):
    for words, place in ((["--data", "given"], "given"), (["--root", "given"], "given"), ([], "told")):
        monkeypatch.setenv("LINOCUT_DATA", str(tmp_path / "told"))
        done = run("--recipe", "mnist/baseline", *words, "--out", tmp_path / "run")
        assert done.exit_code == 2
        assert f"{place}/mnist is missing" in done.output


def test_what_is_wrong_is_said_in_a_line(tmp_path, monkeypatch):
    monkeypatch.delenv("LINOCUT_DATA", raising=False)
    for words in (
        ["--recipe", "nothing"],
        ["--set", "epoch=3"],
        ["--recipe", "mnist/baseline"],
        ["--device", "abacus"],
    ):
        done = run(*words, "--out", tmp_path / "run")
        assert done.exit_code == 2, done.output
        assert "Traceback" not in done.output
    assert run("--recipe", "smoke").exit_code == 2


def test_recipes_are_listed():
    assert "cifar-10/acab-retrained" in run("--list").output
    assert "fast-gtsrb/baseline" in json.loads(run("--list", "--json").output)


def test_a_codebook_is_fitted_and_can_be_set(tmp_path):
    asked = ["--recipe", "smoke/natural-fixed-retrained", *QUICK, "--out", tmp_path / "run"]
    done = run(*asked, "--json")
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "run" / "model").transform.settings()["colors"] == [[0], [255]]
    assert run(*asked, "--resume").exit_code == 0
    wish = '{"class": "FixedCodebook", "fit": {"k": 3, "r": 100}, "settings": {}}'
    other = [*asked[:-1], tmp_path / "other", "--set", f"transform={wish}"]
    assert run(*other).exit_code == 0
    origin = load(tmp_path / "other" / "model").transform.settings()["origin"]
    assert (origin["k"], origin["r"], origin["split"]) == (3, 100, "train")
