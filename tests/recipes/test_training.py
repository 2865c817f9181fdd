"""The recipes: the paper's settings and numbers, ours beside them, and the smoke run."""

import json
import re
import time
from dataclasses import replace

import pytest

from linocut.attacks import PGD, Dice, ThreatModel
from linocut.data import load
from linocut.errors import InputError
from linocut.models import load as load_model
from linocut.recipes.training import PAPER, ROWS, names, recipe
from linocut.training import train

# data set: architecture, pad, flip, then for ATTA epochs, milestones, attack steps, step, eps, reset
ATTA = {
    "mnist": ("madry-net", 0, False, 60, (55,), 40, 0.01, 0.3, 0),
    "fashion-mnist": ("madry-net", 0, False, 60, (55,), 20, 0.01, 0.1, 0),
    "cifar-10": ("wrn-34-10", 4, True, 38, (30, 35), 7, 2 / 255, 8 / 255, 10),
    "gtsrb": ("wrn-34-10", 4, False, 38, (30, 35), 7, 2 / 255, 8 / 255, 10),
    "resisc45": ("resnet-34", 2, True, 40, (30, 35), 10, 2 / 255, 8 / 255, 10),
    "imagenette": ("resnet-34", 2, True, 40, (30, 35), 10, 1 / 255, 4 / 255, 10),
}


@pytest.mark.parametrize("data_set", ATTA)
def test_atta_has_the_papers_settings(data_set):
    found = recipe(f"{data_set}/baseline")
    assert ATTA[data_set] == (
        found.architecture,
        found.pad,
        found.flip,
        found.epochs,
        found.milestones,
        found.num_steps,
        pytest.approx(found.step_size),
        pytest.approx(found.eps),
        found.reset_every,
    )
    assert (found.batch_size, found.momentum, found.method) == (64, 0.9, "atta")
    assert (found.learning_rate, found.weight_decay) == pytest.approx((0.1 / 64, 2e-4 * 64))


@pytest.mark.parametrize("data_set", ATTA)
def test_natural_training_has_the_papers_settings(data_set):
    found = recipe(f"{data_set}/natural")
    rate = 0.1 if data_set in ("cifar-10", "gtsrb") else 0.01
    assert (found.epochs, found.batch_size, found.learning_rate, found.weight_decay, found.milestones) == (
        40,
        128,
        rate,
        2e-4,
        (35,),
    )
    assert (found.method, found.momentum) == ("natural", 0.9)


def test_rows_choose_the_transform_and_when_it_is_there():
    found = recipe("imagenette/acab-retrained")
    assert found.transform["class"] == "EssentialFeatures"
    assert found.transform["settings"]["kernel_sizes"] == [11, 5, 3]
    assert (found.transform_at, found.image_size) == ("train", 224)
    assert recipe("mnist/ac-pretrained").transform["class"] == "AdaptiveCodebook"
    assert recipe("mnist/ac-pretrained").transform_at == "test"
    assert recipe("gtsrb/ab-retrained").transform["class"] == "AdaptiveBlur"
    assert recipe("cifar-10/baseline").transform is None


# data set: codes, and levels between them; 0.6 of the unit range is 153
CODEBOOKS = {
    "mnist": (2, 153),
    "fashion-mnist": (2, 153),
    "cifar-10": (300, 16),
    "gtsrb": (500, 16),
    "resisc45": (300, 16),
    "imagenette": (500, 16),
    "smoke": (2, 153),
}


@pytest.mark.parametrize("data_set", CODEBOOKS)
def test_fixed_rows_ask_for_the_papers_codebook(data_set):
    k, r = CODEBOOKS[data_set]
    for row, method, when in (
        ("fixed-pretrained", "atta", "test"),
        ("fixed-retrained", "atta", "train"),
        ("natural-fixed-pretrained", "natural", "test"),
        ("natural-fixed-retrained", "natural", "train"),
    ):
        found = recipe(f"{data_set}/{row}")
        assert (found.method, found.transform_at) == (method, when)
        assert found.transform["class"] == "FixedCodebook"
        assert found.transform["fit"] == {"k": k, "r": r}
        # The paper's alpha: 10 on the unit range for grey images, 0.1 on levels (the default) for others.
        assert found.transform["settings"] == ({"softness": 10 / 255} if k == 2 else {})


def test_every_name_is_a_recipe_and_its_docstring_gives_numbers_for_its_row():
    for name in names():
        assert recipe(name).recipe == (name if "/" in name else "smoke/acab-retrained")
    for function in PAPER.values():
        assert "Cost:" in function.__doc__
        for row in ROWS:
            found = re.search(rf"^ +{row} +(\S+) / +(\S+) / +(\S+)$", function.__doc__, re.MULTILINE)
            assert found, (function.__name__, row)


def test_docstrings_quote_the_paper():
    for function, row in (
        ("cifar-10", "acab-retrained          84.52 / 38.46 / 51.97"),
        ("resisc45", "acab-retrained          88.24 / 52.44 / 53.33"),
        ("imagenette", "baseline                93.58 / 65.50 / 75.97"),
        ("mnist", "natural-acab-retrained  99.06 /  0.00 / 77.49"),
        ("mnist", "natural-fixed-retrained 99.17 /  0.04 / 79.79"),
        ("fashion-mnist", "fixed-retrained      80.97 / 40.03 / 69.23"),
        ("cifar-10", "fixed-pretrained          84.73 / 26.42 / 52.91"),
        ("imagenette", "natural-fixed-pretrained 98.29 / 0.79 / 0.66"),
    ):
        assert row.replace(" ", "") in PAPER[function].__doc__.replace(" ", "")


def test_fast_recipes_differ_by_name_and_keep_the_threat():
    for data_set in PAPER:
        slow, fast = recipe(f"{data_set}/acab-retrained"), recipe(f"fast-{data_set}/acab-retrained")
        assert (fast.eps, fast.transform, fast.architecture) == (slow.eps, slow.transform, slow.architecture)
        assert fast.precision == "bfloat16"
        assert fast.compile
        assert fast.averaging > 0
        assert fast.epochs * (fast.num_steps + 1) < slow.epochs * (slow.num_steps + 1)
        # Where perturbations start anew an epoch crosses the radius; elsewhere they grow over the first five.
        an_epoch = fast.num_steps * fast.step_size
        assert an_epoch == pytest.approx(fast.eps if fast.reset_every else fast.eps / 5)


def test_unknown_names_are_refused():
    for name in ("vgg", "cifar-10/magic", "fast-nothing/baseline"):
        with pytest.raises(InputError):
            recipe(name)


def test_a_row_may_change_settings_of_its_transform():
    usual, changed = (recipe(f"fast-cifar-10/acab-retrained{more}") for more in ("", "@order=bins@edge_thresholds=5,9"))
    assert changed.recipe == "fast-cifar-10/acab-retrained@order=bins@edge_thresholds=5,9"
    wanted = {**usual.transform["settings"], "order": "bins", "edge_thresholds": [5, 9]}
    assert changed.to_json()["transform"]["settings"] == json.loads(json.dumps(wanted))
    one = recipe("smoke/acab-retrained@kernel_sizes=5,1@edge_thresholds=20").transform["settings"]
    assert (one["kernel_sizes"], one["edge_thresholds"]) == ([5, 1], [20])


def test_a_row_may_change_settings_of_its_training():
    config = recipe("fast-mnist/ac-retrained@separation=2+epochs=3+loss=trades")
    assert (config.epochs, config.loss, config.transform["settings"]["separation"]) == (3, "trades", 2)
    assert config.recipe == "fast-mnist/ac-retrained@separation=2+epochs=3+loss=trades"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("baseline@order=bins", "only an adaptive transform"),
        ("fixed-retrained@k=3", "only an adaptive transform"),
        ("acab-retrained@order", "wanted setting=value"),
        ("acab-retrained@", "wanted setting=value"),
        ("acab-retrained@order=bins@order=population", "given twice"),
        ("baseline+epochs=1+epochs=2", "given twice"),
        ("baseline+method=natural", "tells rows apart"),
        ("baseline+colour=3", "with a field of"),
        ("acab-retrained@colour=3", "no setting 'colour'; there are"),
        ("acab-retrained@order=size", "'population' or 'bins'"),
        ("magic@order=bins", "no row of the paper is called 'magic'"),
    ],
)
def test_changes_that_make_no_sense_are_refused(row, told):
    for name in (f"cifar-10/{row}", f"smoke/{row}"):
        with pytest.raises(InputError, match=told):
            recipe(name)


def robust_accuracy(folder, images, eps):
    """Under the paper's PGD for grey images: 100 steps of 0.01, best iterate, random start."""
    model = load_model(folder / "model")
    dice = Dice.of(0, len(images))
    result = PGD(num_steps=100, step_size=0.01).run(model, images.unit(), images.labels, ThreatModel("linf", eps), dice)
    return 1 - result.broken.float().mean().item()


def test_smoke_learns_robustly_through_the_transform(tmp_path, count):
    """Digits, eps 0.2: at least 90 % clean, and 20 points more robust than natural training through AC+AB."""
    pytest.importorskip("sklearn")
    images, test_images = (load("digits", None, split, 8) for split in ("train", "test"))
    judged = replace(
        test_images, pixels=test_images.pixels[: count(200, 359)], labels=test_images.labels[: count(200, 359)]
    )
    found = {}
    for name in ("smoke", "smoke/natural-acab-retrained"):
        out, started = tmp_path / name.replace("/", "-"), time.process_time()
        config = recipe(name)
        metrics = train(config, images, out, test_images=test_images).metrics
        assert time.process_time() - started < 60
        found[name] = (metrics["test_accuracy"], robust_accuracy(out, judged, config.eps))
    clean, robust = found["smoke"]
    assert clean >= 0.9
    assert robust >= found["smoke/natural-acab-retrained"][1] + 0.2, found
