"""A plan of seconds: the real steps on a handful of digits, with a published attack of two steps."""

import dataclasses

from linocut.evaluation import arsenal, balls
from linocut.recipes.reproduce import scales
from linocut.recipes.reproduce.plan import Planner
from linocut.recipes.reproduce.scales import Numerics
from linocut.recipes.reproduce.work import Judgement
from linocut.training import run

NUMERICS = Numerics(precision="float32", search="float32", compile=False)


def shorten():
    """Let the published attack on digits take two steps, probe two radii, draw no curves; what undoes it."""
    before = balls.PUBLISHED["digits"], arsenal.RADII, run.draw_curves

    def put(published, radii, draw):
        balls.PUBLISHED["digits"], arsenal.RADII, run.draw_curves = published, radii, draw

    put(dataclasses.replace(before[0], num_steps=2), (0.5, 1.0), lambda out: None)
    return lambda: put(*before)


def tiny(data_set, row, seed, shelf, numerics):
    """The smoke scale, smaller still; the baseline meets two suites."""
    work = scales.smoke(data_set, row, seed, shelf, numerics).with_config(epochs=2, num_steps=1, batch_size=8)
    suites = ("pgd-margin-1", "pgd-ce-1") if row == "baseline" else ("pgd-margin-1",)
    judged = tuple(Judgement(suite=suite, n=3, batch_size=3, eps=0.2) for suite in suites)
    return dataclasses.replace(work, train_images=24, judgements=judged)


def tiny_plan(shop, rows=("fixed-pretrained", "baseline"), seeds=(0,), **changes):
    """The plan of these rows; `changes` are settings of every training."""

    def scale(*asked):
        return tiny(*asked).with_config(**changes)

    return Planner(scale, shop.shelf, NUMERICS).plan([("digits", row) for row in rows], seeds, "tiny")
