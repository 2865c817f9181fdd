"""Which rows, how large, in what order, and for how long."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from linocut.errors import InputError
from linocut.evaluation.record import Record
from linocut.recipes.reproduce import overview, scales, verdict
from linocut.recipes.reproduce.calibration import Calibration, Pace
from linocut.recipes.reproduce.costs import passes
from linocut.recipes.reproduce.departures import departures
from linocut.recipes.reproduce.judging import Evaluate
from linocut.recipes.reproduce.making import PutBefore, Train
from linocut.recipes.reproduce.plan import Planner
from linocut.recipes.reproduce.reporting import notes_of, part_notes, search_notes
from linocut.recipes.reproduce.reproduction import prepare
from linocut.recipes.reproduce.scales import Numerics
from linocut.recipes.reproduce.shelf import Shelf, some_of
from linocut.recipes.reproduce.tables import DATA_SETS, TABLES, base_row, chosen, rows_of, words
from linocut.recipes.training import PAPER, ROWS
from linocut.report.paper import rows as paper_rows

from .conftest import shop_at
from .tiny import NUMERICS, tiny, tiny_plan

GPU = Numerics(precision="bfloat16", search="bfloat16", compile=True)
CODES = {"none": None, "ac+ab": "acab"}


def in_paper(data_set):
    """The rows that the paper reports for a data set, under our names."""
    found = set()
    for line in paper_rows():
        wanted = (line.training, CODES.get(line.transform, line.transform))
        at = "train" if line.transform_at == "none" else line.transform_at
        names = [name for name, row in ROWS.items() if (row.method, row.transform, row.transform_at) == (*wanted, at)]
        if line.dataset == data_set:
            found |= set(names)
    return found


@pytest.mark.parametrize("data_set", PAPER)
def test_the_tables_hold_the_papers_rows(data_set):
    assert set(rows_of("main", data_set)) <= in_paper(data_set)
    assert set(rows_of("modes", data_set)) <= in_paper(data_set)
    assert set(rows_of("ablation", data_set)) <= in_paper(data_set)
    assert in_paper(data_set) <= set(rows_of("square", data_set))
    assert {row.split("@")[0] for table in TABLES for row in rows_of(table, data_set)} <= set(ROWS)


@pytest.mark.parametrize("data_set", DATA_SETS)
def test_decisions_change_one_setting_of_the_papers_transform(data_set):
    usual, *others = rows_of("decisions", data_set)[1:]
    before = scales.scale_named("small")(data_set, usual, 0, Shelf(None), GPU).config.transform["settings"]
    seen = []
    for row in others:
        after = scales.scale_named("small")(data_set, row, 0, Shelf(None), GPU).config.transform["settings"]
        seen += [(name, str(after[name])) for name in after if after[name] != before[name]]
    assert len(seen) == len(set(seen)) == len(others)  # each another one


def test_a_changed_row_has_its_base_and_no_figure_of_the_paper():
    row = "ac-pretrained@separation=2@lloyd_steps=1"
    assert (base_row(row), words(row)) == ("baseline", "ATTA + AC, pretrained, separation=2, lloyd_steps=1")
    assert base_row("natural-acab-retrained+epochs=3") == "natural+epochs=3"
    assert words("baseline+epochs=3") == "ATTA, epochs=3"
    small = scales.scale_named("small")
    changed, usual = (small("mnist", name, 0, Shelf(None), GPU) for name in (row, "ac-pretrained"))
    assert overview._paper(usual) is not None
    assert overview._paper(changed) is None
    assert changed.comes_later


def test_settings_of_the_training_hold_for_twins_too(tmp_path):
    changes = ["batch_size=16", "loss=trades", "eps=0.1"]
    (asked,) = chosen("digits", ["ac-retrained@separation=2"], None, changes)
    assert asked[1] == "ac-retrained@separation=2+batch_size=16+loss=trades+eps=0.1"
    plan = Planner(scales.smoke, Shelf(None), NUMERICS).plan([asked], [0], "changed")
    trained = [step.work for step in plan.steps if isinstance(step, Train)]
    assert {work.row for work in trained} == {asked[1], "baseline+batch_size=16+loss=trades+eps=0.1"}
    assert {(work.config.batch_size, work.config.loss) for work in trained} == {(16, "trades")}
    assert {judged.eps for work in trained for judged in work.judgements} == {0.1}  # digits are judged at their own
    assert all(work.config.recipe == f"smoke/{work.row}" for work in trained)
    assert verdict._is_base(trained[1], trained[0])


@pytest.mark.parametrize("changes", [["transform=null"], ["seed=3"], ["epochs=1", "epochs=2"]])
def test_settings_that_tell_rows_apart_or_come_twice_are_refused(changes):
    with pytest.raises(InputError, match=r"tells rows apart|given twice"):
        chosen("digits", ["baseline"], None, changes)


def test_what_is_asked_for():
    assert chosen("mnist", ["natural"], None) == [("mnist", "natural")]
    several = ["ab-retrained", "baseline", "ab-retrained"]  # in the order asked for, each once
    assert chosen("mnist", several, None) == [("mnist", "ab-retrained"), ("mnist", "baseline")]
    assert {name for name, _ in chosen(None, (), "ablation")} == set(PAPER)
    assert [row for _, row in chosen("cifar-10", (), None)] == list(rows_of("main", "cifar-10"))


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        (("svhn", (), None), "fashion-mnist"),
        (("mnist", ["natural", "acab"], None), "acab-retrained"),
        (("mnist", (), "table-1"), "ablation"),
        (("mnist", ["natural"], "main"), "one of them"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(asked, there):
    with pytest.raises(InputError, match=there):
        chosen(*asked)
    with pytest.raises(InputError, match="smoke, small, slow, large, paper"):
        scales.scale_named("huge")


def test_rows_have_plain_names():
    assert words("acab-retrained") == "ATTA + AC+AB, retrained"
    assert words("natural-fixed-pretrained") == "natural training + fixed codebook, pretrained"
    assert base_row("natural-fixed-pretrained") == "natural"


@pytest.mark.parametrize("data_set", DATA_SETS)
@pytest.mark.parametrize("row", ["baseline", "fixed-retrained", "natural-acab-pretrained"])
def test_every_scale_has_a_work_for_every_row(data_set, row):
    shelf = Shelf(None)
    small = scales.scale_named("small")(data_set, row, 3, shelf, GPU)
    assert small.config.seed == 3
    assert [judgement.suite for judgement in small.judgements] == ["paper", "strong"]
    assert small.judgements[0].n is None
    assert small.judgements[1].n <= 2000
    wanted = {"digits": "small-net", "mnist": "madry-net", "fashion-mnist": "madry-net"}.get(data_set, "wrn-16-4")
    assert small.config.architecture == wanted
    smoke = scales.scale_named("smoke")(data_set, row, 0, shelf, GPU)
    assert smoke.config.data_set == "digits"  # there are no files here
    assert "figures mean nothing" in smoke.note
    if data_set == "digits":
        with pytest.raises(InputError, match="not in the paper"):
            scales.scale_named("paper")(data_set, row, 0, shelf, GPU)
    else:
        paper = scales.scale_named("paper")(data_set, row, 0, shelf, GPU)
        assert paper.config.precision == "float32"
        assert {judgement.n for judgement in paper.judgements} == {None}
        large = scales.scale_named("large")(data_set, row, 0, shelf, GPU)
        assert (large.config.architecture, large.config.image_size) == (
            paper.config.architecture,
            paper.config.image_size,
        )
        assert large.config.recipe == small.config.recipe
        slow = scales.scale_named("slow")(data_set, row, 3, shelf, GPU)
        assert slow.judgements == small.judgements
        assert (slow.config.recipe, slow.config.epochs, slow.config.num_steps) == (
            paper.config.recipe,
            paper.config.epochs,
            paper.config.num_steps,
        )
        same = ("architecture", "image_size", "transform", "precision", "half_weights", "seed")
        assert all(getattr(slow.config, name) == getattr(small.config, name) for name in same)
        plain = large.config.architecture == "madry-net"
        for judgement in (*large.judgements, *small.judgements):
            assert (judgement.precision, judgement.compile) == (("float32", False) if plain else ("bfloat16", True))


def test_small_is_a_network_of_a_few_megabytes_judged_on_2000_images():
    small = scales.scale_named("small")("cifar-10", "baseline", 0, Shelf(None), GPU)
    assert (small.config.architecture, small.config.half_weights) == ("wrn-16-4", True)
    assert [(judged.suite, judged.n, judged.batch_size) for judged in small.judgements] == [
        ("paper", None, 2000),
        ("strong", 2000, 2000),
    ]
    assert not scales.scale_named("smoke")("cifar-10", "baseline", 0, Shelf(None), GPU).config.half_weights
    assert not scales.scale_named("paper")("cifar-10", "baseline", 0, Shelf(None), GPU).config.half_weights


def test_pictures_take_the_size_that_is_asked_for_and_their_transform_follows():
    asked = ("imagenette", "acab-retrained@separation=2", 0, Shelf(None), GPU)
    papers, usual = scales.scale_named("large")(*asked), scales.scale_named("small")(*asked)
    assert (papers.config.image_size, usual.config.image_size) == (224, 64)
    assert "pictures of 64 pixels (224)" in departures(usual.config)
    for name in ("large", "slow"):
        work = scales.scale_named(name, 112)(*asked)
        assert work.config.image_size == 112
        assert work.config.transform["settings"]["kernel_sizes"] == [5, 3, 1]  # of 224 pixels: 11, 5, 3
        assert work.config.transform["settings"]["separation"] == 2
        assert "pictures of 112 pixels" in departures(work.config)
    grey = ("mnist", "ac-retrained", 0, Shelf(None), GPU)
    assert scales.scale_named("small", 112)(*grey) == scales.scale_named("small")(*grey)


def test_smoke_takes_the_sets_own_images_where_they_are(data_root):
    work = scales.scale_named("smoke")("mnist", "acab-retrained", 0, Shelf(data_root), GPU)
    assert work.config.data_set == "mnist"
    assert len(Shelf(data_root).train(work)) == 256


def test_some_images_are_spread_over_the_set():
    work = tiny("digits", "baseline", 0, Shelf(None), NUMERICS)
    whole = Shelf(None).train(replace(work, train_images=None))
    few = some_of(whole, 10)
    assert len(few) == 10
    assert torch.equal(few.pixels[-1], whole.pixels[-1])
    assert few.sha256 != whole.sha256
    assert some_of(whole, 10**6) is whole


def test_every_step_comes_after_what_it_needs(tmp_path):
    plan = tiny_plan(shop_at(tmp_path), rows=("acab-pretrained", "fixed-retrained", "natural"), seeds=(0, 1))
    seen = set()
    for step in plan.steps:
        assert {need.name for need in step.needs} <= seen
        seen.add(step.name)
    assert plan.steps[-1].name == "report"
    # The baseline is trained for the rows that stand on it, and not judged, since nobody asked.
    assert "digits/baseline/seed-1/model" in seen
    assert "digits/baseline/seed-1/ledger-pgd-ce-1" not in seen
    assert sum(isinstance(step, PutBefore) for step in plan.steps) == 2
    judged = [step for step in plan.steps if isinstance(step, Evaluate)]
    assert all((step.twin is None) == (step.work.row == "natural") for step in judged)


def test_times_are_measured_and_nothing_is_written(tmp_path):
    rows = [("digits", "acab-retrained")]
    reproduction = prepare(
        rows, scale=tiny, seeds=[0], out=tmp_path / "out", root=None, device=torch.device("cpu"), title="t"
    )
    assert all(told["seconds"] > 0 for told in reproduction.estimates.values())
    assert reproduction.seconds_left == pytest.approx(sum(told["seconds"] for told in reproduction.estimates.values()))
    assert not (tmp_path / "out").exists()
    assert json.dumps(reproduction.estimates)
    assert reproduction.estimates["digits/acab-retrained/seed-0/model"]["transform_seconds"] > 0
    assert "transform_seconds" not in reproduction.estimates["digits/baseline/seed-0/model"]


def test_a_missing_package_is_found_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"linocut\[report\]"):
        prepare([], scale=tiny, seeds=[0], out=tmp_path, root=None, device=torch.device("cpu"), title="t")


def test_a_speed_is_measured_once_for_all_trainings_of_a_network(tmp_path):
    calibration, shelf = Calibration(torch.device("cpu"), tmp_path), Shelf(None)
    work = tiny("digits", "baseline", 0, shelf, NUMERICS)
    images = shelf.train(work)
    speed, step = calibration.of(work, images), calibration.step(work, images)
    assert speed is calibration.of(work.with_config(seed=5, epochs=9, num_steps=30), images)
    assert step is calibration.step(work.with_config(seed=5, epochs=9), images)
    in_l2 = work.with_config(norm="l2", eps=1.74, step_size=0.4, canvas_store="half")
    assert calibration.of(in_l2, images) is not speed
    assert calibration.step(in_l2, images) is not step
    assert calibration.step(work.with_config(num_steps=30), images).whole > step.whole > 0
    assert speed.transform == 0
    assert Pace(batch=2.0, image=0.5).of(5, 2) == 3 * 2.0 + 5 * 0.5


def test_the_costs_of_attacks_are_counted():
    from linocut.attacks import apgd, noise_averaged, pgd, square, transfer

    climb = pgd.PGD(num_steps=7)
    assert passes(climb) == (7, 1)
    assert passes(apgd.TargetedAPGD(num_steps=10, num_targets=3))[0] == 30
    assert passes(noise_averaged.NoiseAveragedPGD(num_steps=5, copies=4))[0] == 20
    assert passes(square.Square(num_queries=50)) == (0, 50)
    assert passes(transfer.Continued(first=climb, second=climb)) == (14, 2)


def test_the_worst_case_is_over_all_suites(finished):
    shop = shop_at(finished)
    report = tiny_plan(shop).steps[-1]
    records = report.records(shop)
    both = records["digits/baseline/seed-0"]
    assert [type(record) for record in both] == [Record, Record]
    examples, standing = overview.worst(both, "linf")
    assert standing <= examples - both[0].broken_by(both[0].counting("linf")) - both[1].wrong()
    lines = overview.lines(report.works, records)
    assert [line.row for line in lines] == ["fixed-pretrained", "baseline"]
    for line in lines:
        for cell in line.cells.values():
            assert cell.low <= cell.mean <= cell.high
            assert cell.n == 3
    assert "per cent of 3 images" in overview.as_markdown(lines)
    assert overview.headings(lines)["linf_worst"] == "L∞ worst"
    more = {**lines[0].cells, "clean": replace(lines[0].cells["clean"], n=9)}
    assert overview.headings([replace(lines[0], cells=more)])["linf_worst"] == "L∞ worst, n=3"


@pytest.mark.parametrize(
    ("gained", "lost", "said"), [(40, 10, "helps"), (10, 40, "makes it worse"), (3, 2, "no difference that 100")]
)
def test_the_verdict_follows_the_images_on_which_both_differ(gained, lost, said):
    told = verdict.sentence([compared(gained, lost)], [0])
    assert told.endswith(f": {said} images could show" if "difference" in said else f": the transform {said}")
    assert f"in L2 {30 + gained:.1f} % of 100 images hold, without the transform {30 + lost:.1f} %" in told


def compared(gained, lost, seed=0, *, standing=30, n=100, norm="l2"):
    work = tiny("digits", "acab-retrained", seed, Shelf(None), NUMERICS)
    return verdict.Comparison(
        work=work,
        base=work,
        norm=norm,
        n=n,
        standing=standing + gained,
        base_standing=standing + lost,
        gained=gained,
        lost=lost,
    )


def test_the_verdict_says_what_each_seed_says():
    same = [compared(40, 10, 0), compared(30, 10, 1), compared(20, 1, 2)]
    assert verdict.sentence(same, [0, 1, 2]) == (
        "in L2 70.0, 60.0 and 50.0 % of 100 images hold, without the transform 40.0, 40.0 and 31.0 %: "
        "the transform helps, with each seed"
    )
    assert verdict.sentence([*same[:2], compared(1, 1, 2)], [0, 1, 2]).endswith(
        ": the transform helps with seeds 0 and 1, no difference that 100 images could show with seed 2"
    )
    nothing = [compared(0, 0, seed, standing=0) for seed in (0, 1)]
    assert verdict.sentence(nothing, [0, 1]) == "in L2 none of 100 images hold, with the transform or without"


def test_the_verdict_is_a_sentence_a_row_however_its_seeds_were_judged(monkeypatch):
    found = [compared(40, 10, 0), compared(1, 0, 2, n=2000), compared(30, 10, 1), compared(9, 9, 1, norm="linf")]
    monkeypatch.setattr(verdict, "comparisons", lambda works, records: found)
    monkeypatch.setattr(verdict, "flattery", lambda works, records: [])
    works = [each.work for each in found]
    assert verdict.sentences(works, {}) == [
        "ATTA + AC+AB, retrained, seeds 0, 1 and 2, worst case: "
        "in L∞ with seed 1 39.0 % of 100 images hold, without the transform 39.0 %: no difference that 100 images "
        "could show; in L2 with seeds 0 and 1 70.0 and 60.0 % of 100 images hold, without the transform 40.0 and "
        "40.0 %: the transform helps, with each seed; in L2 with seed 2 1.55 % of 2000 images hold, without the "
        "transform 1.50 %: no difference that 2000 images could show."
    ]


@pytest.mark.parametrize("scale", ["small", "slow", "large"])
def test_a_row_and_its_twin_are_searched_in_the_same_format(scale):
    for data_set in PAPER:
        works = [scales.scale_named(scale)(data_set, row, 0, Shelf(None), GPU) for row in rows_of("main", data_set)]
        [used] = {judgement.precision for work in works for judgement in work.judgements}
        assert used == ("float32" if "mnist" in data_set else "bfloat16")


def test_the_overview_says_in_what_a_training_departs_from_the_papers():
    def work(data_set, row, scale="small"):
        return Planner(scales.scale_named(scale), Shelf(None), GPU).work(data_set, row, 0)

    rows = ["baseline", "ac-retrained@order=bins", "natural", "baseline+epochs=50+norm=l2+eps=1.74+canvas_store=half"]
    atta = "4 attack steps (7), batches of 512 (64), bfloat16 (float32)"
    assert notes_of([work("cifar-10", row) for row in rows]) == [
        f"cifar-10, ATTA: wrn-16-4 (the paper: wrn-34-10), 20 epochs (38), {atta}.",
        "cifar-10, natural training: wrn-16-4 (the paper: wrn-34-10), 20 epochs (40), batches of 512 (128), "
        "bfloat16 (float32).",
        "cifar-10, ATTA, epochs=50, norm=l2, eps=1.74, canvas_store=half: wrn-16-4 (the paper: wrn-34-10), "
        f"l2 1.74 (linf 0.0314), 50 epochs (38), {atta}.",
    ]
    assert notes_of([work("gtsrb", "baseline", "paper"), work("digits", "baseline")]) == []
    two_ways = notes_of(
        [work("mnist", "baseline"), work("mnist", "ac-retrained"), work("mnist", "ab-retrained", "slow")]
    )
    assert two_ways == [
        "mnist, ATTA: 20 epochs (the paper: 60), 2 attack steps (40), batches of 512 (64), bfloat16 (float32).",
        "mnist, ATTA: bfloat16 (the paper: float32).",
    ]
    [told] = notes_of([work("gtsrb", "baseline", "smoke")])
    assert told.startswith("gtsrb, ATTA: a test of the code, its figures mean nothing; digits stand in")


def test_the_overview_says_where_only_a_part_of_a_set_was_judged():
    works = [scales.scale_named("small")(name, "baseline", 0, Shelf(None), GPU) for name in ("mnist", "gtsrb")]

    def judged(*sizes):
        told = zip(works, sizes, strict=True)
        return {w.place: [SimpleNamespace(settings={"size": n, "data": w.data_set})] for w, n in told}

    assert part_notes(works, judged(10_000, 9_500)) == []
    [told] = part_notes(works, judged(10_000, 781))
    assert told == "gtsrb: a part of the set, 781 test images of 12630: the paper's figures are of others."


def test_the_overview_says_where_rows_were_not_searched_alike():
    works = [scales.scale_named("small")("mnist", row, 0, Shelf(None), GPU) for row in ("baseline", "ac-retrained")]

    def judged(*formats):
        return {
            work.place: [SimpleNamespace(settings={"precision": one})] * 2
            for work, one in zip(works, formats, strict=True)
        }

    assert search_notes(works, judged("float32", "float32")) == []
    [told] = search_notes(works, judged("float32", "bfloat16"))
    assert "baseline in float32; ac-retrained in bfloat16" in told
