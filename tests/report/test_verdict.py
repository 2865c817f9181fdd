"""The sentences, on ledgers whose figures are known."""

import json
from dataclasses import replace

import pytest
from report_cases import card, made_up

from linocut.evaluation.findings import Finding
from linocut.report import verdict, write
from linocut.report.judged import together
from linocut.report.sources import read_all
from linocut.report.twins import gains, pairs


def judged(folder, published, worst, **more):
    (subject,) = read_all([made_up(folder, published={"linf": published}, worst={"linf": worst}, **more)])
    return subject


@pytest.mark.parametrize(
    ("published", "worst", "words"),
    [
        (50, 50, "about as strong as everything else"),
        (50, 49, "about as strong as everything else"),
        (50, 40, "part of the published figure is the attack's weakness"),
        (52, 12, "most of the published figure is the attack's weakness"),
        (30, 0, "nothing holds, and the published figure is the attack's weakness"),
        (1, 0, "nothing holds, and the published attack nearly shows it"),
        (0, 0, "nothing holds, and the published attack already shows it"),
    ],
)
def test_the_gap_decides_the_words(tmp_path, published, worst, words):
    first = verdict.of_one(judged(tmp_path / "x", published, worst))[0]
    assert first.startswith(f"As published {published}.0 % hold in L∞; the worst case leaves {worst}.0 %")
    assert words in first


def test_where_only_the_published_attack_met_all_images_its_strength_is_not_praised(tmp_path):
    folder = made_up(tmp_path / "x", published={"linf": 50}, worst={"linf": 49})
    header = json.loads((folder / "header.json").read_text())
    header["entries"]["linf/pgd-margin"] |= {"column": "probe", "limit": 10}
    (folder / "header.json").write_text(json.dumps(header))
    first = verdict.of_one(*read_all([folder]))[0]
    assert first.endswith("leaves 49.0 %: most images met no other attack, so a longer suite may leave less.")


def test_of_thousands_of_images_two_decimals_are_told(tmp_path):
    assert "As published 34.75 % hold in L∞; the worst case leaves 29.45 %" in " ".join(
        verdict.of_one(judged(tmp_path / "x", 695, 589, n=2000))
    )


def test_a_model_that_is_never_right_is_not_called_broken_by_an_attack(tmp_path):
    (told,) = verdict.of_one(judged(tmp_path / "wrong", 0, 0, wrong=100))
    assert told.startswith("None of the 100 images is classified rightly even without an attack")
    assert "As published" in verdict.of_one(judged(tmp_path / "nearly", 0, 0, wrong=99))[0]


def test_limits_are_said(tmp_path):
    told = " ".join(verdict.of_one(judged(tmp_path / "few", 5, 5, n=10)))
    assert "With n = 10 a figure is known to about ±" in told
    many = " ".join(verdict.of_one(judged(tmp_path / "many", 500, 500, n=1000)))
    assert "a figure is known" not in many
    assert "quick look" in " ".join(verdict.of_one(judged(tmp_path / "fast", 5, 5, suite="fast")))


def test_a_failing_check_is_named(tmp_path):
    subject = judged(tmp_path / "x", 50, 50)
    failing = Finding(code="zero-gradient", status="fail", sentence="")
    told = verdict.of_one(replace(subject, findings=(failing,)))
    assert "1 check fails (zero-gradient): take the worst case as an upper bound." in told


def twins(tmp_path, published, worst, n=1000, **more):
    """A defended model with these counts beside an undefended one that keeps 200 and 100."""
    for name, transform, counts in (("twin", None, (200, 100)), ("mine", "EssentialFeatures", (published, worst))):
        shares = [{"l2": count} for count in counts]
        made_up(tmp_path / name, n=n, published=shares[0], worst=shares[1], the_card=card(name, transform), **more)
    return read_all([tmp_path / "mine", tmp_path / "twin"])


@pytest.mark.parametrize(
    ("worst", "words"),
    [
        (100, "In the worst case mine is not clearly better than twin."),
        (105, "In the worst case mine is not clearly better than twin."),
        (110, "In the worst case mine keeps 1.0 points more in L2 than twin."),  # ten images gained, none lost
        (40, "In the worst case mine keeps 6.0 points less in L2 than twin."),
        (200, "In the worst case mine keeps 10.0 points more in L2 than twin."),
    ],
)
def test_only_the_worst_case_makes_a_model_better(tmp_path, worst, words):
    first, numbers, *_ = verdict.of_many(twins(tmp_path, 500, worst))
    assert first == words
    assert "L2 +30.0 points as published" in numbers
    words = "most of the gain is the attack's weakness" if worst > 100 else "the gain is all the attack's weakness"
    assert (words in numbers) == (worst < 250)


def test_published_and_worst_are_compared_on_the_same_images(tmp_path):
    """The published attack met the last 250, of which 240 and 200 stand; of all the worst case leaves 240 and 100."""
    first, numbers, *_ = verdict.of_many(twins(tmp_path, 240, 240, met=250))
    assert first == "In the worst case mine keeps 14.0 points more in L2 than twin."
    assert numbers.endswith("L2 +16.0 points as published, +56.0 in the worst case on the same 250 images.")


def test_many_pairs_are_counted(tmp_path):
    mine, twin = twins(tmp_path, 500, 100)
    counts = {"better": 300, "worse": 20, "worst": 10}
    for name, worst in counts.items():
        both = {"published": {"l2": 400}, "worst": {"l2": worst}}
        made_up(tmp_path / name, n=1000, **both, the_card=card(name, "AdaptiveBlur"))
    better, worse, worst = read_all([tmp_path / name for name in counts])
    told = verdict.of_many([twin, mine, better, worse, worst])[0]
    assert told == (
        "Of 4 defended models, beside the same without their defence, in the worst case: "
        "in L2 1 clearly better, 2 clearly worse."
    )
    assert verdict.of_many([twin, mine, worse])[0].endswith("in L2 none clearly better, 1 clearly worse.")


def test_pairs_share_training_and_images(tmp_path):
    mine, twin = twins(tmp_path, 500, 100)
    assert [(a.name, b.name) for a, b in pairs(together([mine, twin]))] == [("mine", "twin")]
    published, worst = gains(*together([mine, twin]), "l2")
    assert (published.points, published.clear, worst.points, worst.clear) == (30.0, True, 0.0, False)
    made_up(tmp_path / "seed", published={"l2": 1}, worst={"l2": 1}, the_card=card("seed", "AdaptiveBlur"), seed=7)
    made_up(
        tmp_path / "nat", n=1000, published={"l2": 1}, worst={"l2": 1}, the_card=card("n", "AdaptiveBlur", "natural")
    )
    others = read_all([tmp_path / "seed", tmp_path / "nat"])
    assert pairs(together([*others, twin])) == []


def test_a_twin_of_another_suite_is_none_and_one_of_the_same_seed_is_preferred(tmp_path):
    mine, twin = twins(tmp_path, 500, 100)
    made_up(tmp_path / "again", n=1000, published={"l2": 9}, worst={"l2": 9}, the_card=card("again", None))
    [again] = read_all([tmp_path / "again"])
    mine, twin, again = together(
        [
            replace(subject, identity=replace(subject.identity, seed=seed))
            for subject, seed in ((mine, 1), (twin, 0), (again, 1))
        ]
    )
    assert pairs([twin, again, mine]) == [(mine, again)]
    mine.longest.record.settings["suite"] = "another"
    assert pairs([twin, again, mine]) == []


def test_the_longer_suite_of_a_model_is_its_worst_case(tmp_path):
    """The short suite leaves the transform's gain standing, the long one does not."""
    for name, front, short, long in (("plain", None, 100, 50), ("defended", "EssentialFeatures", 300, 20)):
        told = {"the_card": card(name, front), "n": 1000, "model_hash": name}
        made_up(tmp_path / f"{name}-a", published={"linf": 400}, worst={"linf": short}, suite="paper", **told)
        ledger = made_up(tmp_path / f"{name}-b", published={"linf": 400}, worst={"linf": long}, **told)
        header = json.loads((ledger / "header.json").read_text())
        header["entries"]["linf/another"] = header["entries"]["linf/pgd-margin"]
        (ledger / "header.json").write_text(json.dumps(header))
    told = verdict.of_many(read_all([tmp_path]))
    assert len(told) == 2
    assert "keeps 3.0 points less in L∞" in told[0]


def test_without_twins_the_best_is_named(tmp_path):
    for name, worst in (("low", 10), ("high", 30)):
        made_up(tmp_path / name, published={"linf": 40}, worst={"linf": worst}, the_card=card(name, None))
    made_up(tmp_path / "near", published={"linf": 40}, worst={"linf": 29}, the_card=card("near", None))
    low, high, near = (replace(each, findings=()) for each in read_all([tmp_path / n for n in ("low", "high", "near")]))
    assert verdict.of_many([low, high]) == ["In L∞ high keeps the most in the worst case, 30.0 %."]
    [told] = verdict.of_many([low, high, near])
    assert told == "In L∞ high keeps the most in the worst case, 30.0 %; 1 other keeps not clearly less."
    failing = Finding(code="ascent", status="fail", sentence="")
    [told] = verdict.of_many([low, replace(high, findings=(failing,)), near])
    assert told.endswith("not clearly less, an upper bound, since its checks fail (ascent).")


def test_a_named_twin_is_one_where_neither_has_a_card(tmp_path):
    for name, published, worst, more in (("plain", 20, 10, {}), ("mine", 60, 10, {"twin_hash": "plain"})):
        made_up(
            tmp_path / name, published={"linf": published}, worst={"linf": worst}, model=name, model_hash=name, **more
        )
    told = verdict.of_many(read_all([tmp_path / "mine", tmp_path / "plain"]))
    assert told[0] == "In the worst case mine is not clearly better than plain."
    assert "L∞ +40.0 points as published, ±0.0 in the worst case (the gain is all the attack's weakness)" in told[1]


def test_functions_of_another_name_or_with_other_answers_are_never_one(tmp_path):
    """The hash of a function says little: two lambdas may have the same."""
    for name, model, wrong in (("a", "m:forest", 5), ("b", "m:logreg", 5), ("c", "m:forest", 8)):
        made_up(
            tmp_path / name, published={"linf": 40}, worst={"linf": 30}, wrong=wrong, model=model, model_hash="same"
        )
    assert [len(model.ledgers) for model in together(read_all([tmp_path]))] == [1, 1, 1]
    made_up(tmp_path / "d", published={"linf": 40}, worst={"linf": 20}, wrong=5, model="m:logreg", model_hash="same")
    assert sorted(len(model.ledgers) for model in together(read_all([tmp_path]))) == [1, 1, 2]


def test_the_best_is_not_named_where_suites_differ(tmp_path):
    """The one that was attacked less would win."""
    for name, worst, suite in (("low", 10, "strong"), ("high", 30, "paper")):
        made_up(tmp_path / name, published={"linf": 40}, worst={"linf": worst}, the_card=card(name, None), suite=suite)
    told = verdict.of_many(read_all([tmp_path / "low", tmp_path / "high"]))
    assert told == [
        "2 ledgers, of which no two can be compared.",
        "The suites differ (paper, strong): compare lines of one suite only.",
    ]


def test_different_images_are_not_compared(tmp_path):
    for name in ("mnist", "cifar-10"):
        made_up(tmp_path / name, published={"linf": 40}, worst={"linf": 4}, data=name, data_hash=name)
    told = " ".join(verdict.of_many(read_all([tmp_path])))
    assert "compare lines of one data set only" in told


def test_an_attack_that_met_some_images_speaks_for_them_alone(tmp_path):
    """Those it never met would count as standing against it."""
    made_up(tmp_path / "x", n=1000, published={"linf": 600}, worst={"linf": 600}, square=(200, 4))
    [subject] = read_all([tmp_path / "x"])
    _, same, worst = subject.headline("linf")
    assert (same, worst.share.count, worst.share.n) == (None, 4, 200)
    assert subject.record.worst("linf").count == 404
    told = verdict.of_one(subject)[0]
    assert "on the 200 images that met every attack the worst case leaves 2.0 %" in told
    page = write([tmp_path / "x", made_up(tmp_path / "y", published={"linf": 5}, worst={"linf": 5})], tmp_path / "page")
    assert page.read_text(encoding="utf-8").count('<span class="aside">of 200</span>') == 1
    assert "is of those that met the most attacks.</p>" in page.read_text(encoding="utf-8")


def test_an_attack_that_met_some_images_and_says_the_same_changes_nothing(tmp_path):
    made_up(tmp_path / "x", n=1000, published={"linf": 600}, worst={"linf": 500}, square=(200, 190))
    [subject] = read_all([tmp_path / "x"])
    assert subject.headline("linf")[2].share.n == 1000
