import math

import pytest
from evaluation_cases import Linear, direction

from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError
from linocut.evaluation import arsenal
from linocut.evaluation.balls import PUBLISHED, balls
from linocut.evaluation.suites import SUITES, plan

BOTH = ("linf", "l2")
CIFAR = balls("cifar-10", 3072, BOTH)
TWIN = Linear(direction())

# The paper's table: values, eps, PGD steps and step in L-inf, eps and step in L2.
PAPER = {
    "mnist": (784, 0.3, 100, 0.01, 8.4, 0.1),
    "fashion-mnist": (784, 0.1, 100, 0.01, 2.8, 0.5),
    "cifar-10": (3072, 0.031, 40, 0.007, 1.74, 0.05),
    "gtsrb": (3072, 0.031, 40, 0.007, 1.74, 0.05),
    "resisc45": (3 * 256 * 256, 0.031, 40, 0.007, 13.91, 0.35),
    "imagenette": (3 * 224 * 224, 4 / 255, 10, 1 / 255, 6.09, 0.85),
}


@pytest.mark.parametrize("data", PAPER)
def test_the_paper_suite_has_the_papers_settings(data):
    values, eps, steps, step, l2_eps, l2_step = PAPER[data]
    entries = {entry.name: entry for entry in plan("paper", balls(data, values, BOTH))}
    for norm, radius, size in (("linf", eps, step), ("l2", l2_eps, l2_step)):
        pgd = entries[f"{norm}/pgd-published"]
        assert pgd.threat == ThreatModel(norm, radius)
        assert pgd.attack.num_steps == steps
        assert pgd.attack.step_size == pytest.approx(size, rel=1e-12)
        assert pgd.attack.loss == "cross_entropy"
        assert not pgd.attack.any_iterate
        assert pgd.limit is None
        square = entries[f"{norm}/square-published"]
        assert (square.attack.num_queries, square.limit, square.column) == (1000, 500, "published")


def test_the_l2_ball_holds_the_linf_ball_of_every_data_set():
    for data, paper in PUBLISHED.items():
        assert paper.l2_eps >= paper.linf_eps * math.sqrt(paper.values) * (1 - 2e-3), data


def test_another_size_and_another_radius():
    small = balls("imagenette", 3 * 112 * 112, BOTH)
    assert small["l2"].threat.eps == pytest.approx(6.09 / 2)
    assert small["l2"].step_size == pytest.approx(0.85 / 2)
    assert small["linf"].threat.eps == 4 / 255
    other = balls("cifar-10", 3072, BOTH, eps=0.062)
    assert other["linf"].step_size == pytest.approx(0.014)
    assert other["l2"].threat.eps == pytest.approx(0.062 * math.sqrt(3072))
    assert balls("cifar-10", 3072, ("l2",), eps=0.5)["l2"].threat.eps == 0.5
    assert balls("mine", 100, ("linf",), eps=0.1)["linf"].num_steps == 40
    with pytest.raises(InputError, match="give one, eps"):
        balls("mine", 100, BOTH)


@pytest.mark.parametrize("suite", SUITES, ids="suite-{}".format)
def test_every_suite_is_in_order(suite):
    entries = plan(suite, CIFAR, twin=TWIN, seen=True)
    names = [entry.name for entry in entries]
    assert len(set(names)) == len(names)
    assert names[:4] == ["clean", "measure/gradient", "measure/repeat", "measure/seen"]
    norms = [name.split("/")[0] for name in names if name.startswith("l") and not name.endswith("whole-levels")]
    assert norms == sorted(norms, reverse=True)  # linf first: l2 reuses what it broke
    for norm in BOTH:
        own = [entry for entry in entries if entry.threat and entry.threat.norm == norm]
        assert own[0].name == f"{norm}/pgd-published"
        kinds = [entry.kind for entry in own if entry.column == "worst"]
        last = [kind for kind in kinds if kind in ("noise", "query")]
        assert kinds[len(kinds) - len(last) :] == last  # gradients go before what asks what gradients missed
        assert all(getattr(entry.attack, "any_iterate", True) for entry in own if entry.column == "worst")
    if suite not in ("paper", "alternatives"):
        assert names.index("l2/reuse-linf") < names.index("l2/square")
    for entry in entries:
        assert entry.described()["config"] == entry.config


@pytest.mark.parametrize("norm", BOTH)
def test_the_strong_budget_of_a_survivor(norm):
    """About 3,000 gradients and 5,000 queries: counted from the settings."""
    entries = arsenal.strong(CIFAR[norm], TWIN)
    attacks = [entry.attack for entry in entries]
    gradients = 0
    for attack in attacks:
        parts = [attack.first, attack.second] if hasattr(attack, "first") else [attack]
        for part in parts:
            copies = getattr(part, "copies", 1) * getattr(part, "num_targets", 1)
            gradients += getattr(part, "num_steps", 0) * copies
    queries = sum(getattr(attack, "num_queries", 0) for attack in attacks)
    assert 2500 <= gradients <= 3500
    assert queries == 5000


def test_strong_steps_are_those_of_the_page():
    for norm, factors in (("linf", (0.5, 1, 2, 4)), ("l2", (1, 3, 7))):
        ball = CIFAR[norm]
        entries = {entry.name: entry.attack for entry in arsenal.strong(ball, None)}
        for factor in factors:
            attack = entries[f"{norm}/pgd-ce-{factor:g}"]
            assert attack.num_steps == 100
            assert attack.step_for(ball.threat) == pytest.approx(factor * 2.5 * ball.threat.eps / 100)
    assert {"linf/apgd-ce", "linf/apgd-dlr", "linf/apgd-t", "linf/pgd-frozen", "linf/pgd-identity"} <= {
        entry.name for entry in arsenal.strong(CIFAR["linf"], None)
    }


def test_a_list_of_names_and_one_norm():
    entries = plan("apgd-ce,square", {"l2": CIFAR["l2"]})
    assert [entry.name for entry in entries if entry.column == "worst"] == ["l2/apgd-ce", "l2/square"]
    with pytest.raises(InputError, match="twice"):
        plan("square,square", CIFAR)


def test_every_probe_that_findings_look_for_is_in_the_plan():
    names = {entry.name for entry in plan("fast", CIFAR)}
    for norm in BOTH:
        wanted = ("one-step", "double-steps", "rival-true", "rival-undefended", "unbounded", "radius-0.25", "radius-2")
        assert {f"{norm}/{name}" for name in wanted} <= names


def test_more_attacks_come_after_all_else():
    """So that a ledger can grow by them: the entries before keep their place and their settings."""
    before = plan("fast", CIFAR)
    grown = plan("fast", CIFAR, also="apgd-ce")
    assert [entry.described() for entry in grown[: len(before)]] == [entry.described() for entry in before]
    assert [entry.name for entry in grown[len(before) :]] == ["linf/apgd-ce", "l2/reuse-linf-again", "l2/apgd-ce"]


def test_autoattack_is_four_lines_a_norm():
    pytest.importorskip("pyautoattack")
    for entries in (plan("autoattack", CIFAR), plan("fast", CIFAR, also="autoattack")):
        for norm in BOTH:
            parts = {entry.name: entry.kind for entry in entries if entry.name.startswith(f"{norm}/autoattack")}
            assert parts == {
                f"{norm}/autoattack-apgd-ce": "gradient",
                f"{norm}/autoattack-apgd-t": "gradient",
                f"{norm}/autoattack-fab-t": "gradient",
                f"{norm}/autoattack-square": "query",
            }


def test_whole_levels_are_searched_last_in_a_ball_rounded_as_images_are():
    for suite in ("strong", "full"):
        entries = plan(suite, balls("cifar-10", 3072, ("linf", "l2")))
        names = [f"{norm}/{attack}-whole-levels" for attack in ("pgd", "square") for norm in ("linf", "l2")]
        assert [entry.name for entry in entries[-4:]] == names
        for entry, eps in zip(entries[-4:], (8 / 255, 1.74, 8 / 255, 1.74), strict=True):
            assert (entry.kind, entry.starts) == ("levels", "fragile")
            assert entry.threat.eps == pytest.approx(eps)
    for eps, levels in ((0.3, 76), (0.1, 25), (8 / 255, 8), (0.0314, 8), (0.5 / 255, None)):  # halves go down
        last = plan("strong", balls("mnist", 784, ("linf",), eps=eps))[-1]
        assert last.threat.eps == (levels / 255 if levels else eps)
        assert (last.kind == "levels") == (levels is not None)


def test_the_alternatives_differ_from_the_published_attack_in_their_gradient_alone():
    entries = [entry for entry in plan("alternatives", CIFAR) if entry.threat is not None]
    assert all(entry.limit is None and entry.column in ("published", "worst") for entry in entries)
    for norm in BOTH:
        own = [entry for entry in entries if entry.column == "published" and entry.threat.norm == norm]
        names = [entry.name.partition("/")[2].removesuffix("-published") for entry in own]
        assert names == ["pgd", "edges", "few-colors", "soft", "identity", "printed-colors"]
        ways = {(e.attack.num_steps, e.attack.step_size, e.attack.loss, e.attack.any_iterate) for e in own}
        assert ways == {(CIFAR[norm].num_steps, CIFAR[norm].step_size, "cross_entropy", False)}


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_asks_whether_the_model_repeats_itself(suite):
    (asked,) = [entry for entry in plan(suite, CIFAR) if entry.name == "measure/repeat"]
    assert asked.limit >= 20


def test_a_name_of_one_norm_alone_runs_there():
    names = [entry.name for entry in plan("pgd-margin-2,pgd-ce-7,square", CIFAR)]
    assert {"linf/pgd-margin-2", "l2/pgd-ce-7", "linf/square", "l2/square"} <= set(names)
    assert not {"l2/pgd-margin-2", "linf/pgd-ce-7"} & set(names)
    with pytest.raises(InputError, match="no suite or attack 'pgd-ce-7'"):
        plan("pgd-ce-7", {"linf": CIFAR["linf"]})
