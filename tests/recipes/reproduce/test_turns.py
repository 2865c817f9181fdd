"""Which step is taken next: rows get done one after the other, however many processes there are."""

import threading
from heapq import heappop, heappush
from types import SimpleNamespace

import pytest

from linocut.recipes.reproduce import plan_file, runner, stamps
from linocut.recipes.reproduce.judging import Evaluate
from linocut.recipes.reproduce.making import FitCodebook, PutBefore, Train
from linocut.recipes.reproduce.reporting import WriteReport

from .conftest import NUMERICS, Notes, do, shop_at
from .tiny import tiny_plan

ROWS = ("acab-retrained", "fixed-pretrained", "ac-retrained", "natural", "baseline", "ab-retrained")
SECONDS = {Train: 100, FitCodebook: 5, PutBefore: 1, Evaluate: 30, WriteReport: 2}


class Clock:
    """Time that passes only where threads sleep; one of them runs at a time, so every run is the same."""

    def __init__(self):
        self.now, self.waiting = 0.0, []

    def sleep(self, seconds):
        turn = self.queue(seconds)
        self.go_on()
        turn.wait()

    def queue(self, seconds):
        turn = threading.Event()
        heappush(self.waiting, (self.now + seconds, len(self.waiting), id(turn), turn))
        return turn

    def go_on(self):
        if self.waiting:
            self.now, *_, turn = heappop(self.waiting)
            turn.set()

    def run(self, jobs):
        def alone(job, turn):
            turn.wait()
            try:
                job()
            finally:
                self.go_on()

        threads = [threading.Thread(target=alone, args=(job, self.queue(0))) for job in jobs]
        for thread in threads:
            thread.start()
        self.go_on()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture
def clock(monkeypatch):
    """Steps that only take their time, longer in every row than in the one before, and leave nothing."""
    clock = Clock()
    for kind, seconds in SECONDS.items():

        def run(step, shop, watch, seconds=seconds):
            row = getattr(getattr(step, "work", None), "row", "baseline")
            clock.sleep(seconds + 7 * ROWS.index(row))

        monkeypatch.setattr(kind, "run", run)
    monkeypatch.setattr(runner, "time", SimpleNamespace(sleep=clock.sleep, monotonic=lambda: clock.now))
    return clock


class Steps(Notes):
    """The steps in the order in which they were begun, each with the judgements that could have been begun instead."""

    def __init__(self, plan, shop, begun):
        super().__init__()
        self.plan, self.shop, self.begun = plan, shop, begun

    def starts(self, step, state):
        if state is not stamps.State.DONE:
            taken = {name for name, _ in self.begun}
            made = {each.name for each in self.plan.steps if stamps.read(each, self.shop).get("outputs") is not None}
            left = [
                each.name
                for each in self.plan.steps
                if isinstance(each, Evaluate) and each.name not in taken and {n.name for n in each.needs} <= made
            ]
            self.begun.append((step.name, left))
        return super().starts(step, state)

    def waits(self, step):
        pass


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
def test_no_row_is_begun_while_another_can_be_judged(tmp_path, clock, processes):
    shop, begun = shop_at(tmp_path / "out"), []
    plan = tiny_plan(shop, rows=ROWS)

    def process():
        own = tiny_plan(shop, rows=ROWS)
        runner.carry_out(own, shop, NUMERICS, {}, Steps(own, shop, begun))

    clock.run([process] * processes)
    assert sorted(name for name, _ in begun) == sorted(step.name for step in plan.steps)
    trainings = {step.name for step in plan.steps if isinstance(step, Train)}
    assert {name: left for name, left in begun if name in trainings and left} == {}


def test_after_a_loss_what_is_nearly_done_comes_first(tmp_path, clock):
    """Of four rows the third is trained; the last was being trained, and is judged with the images of the first."""
    shop, rows = shop_at(tmp_path / "out"), ("baseline", "ab-retrained", "natural", "acab-retrained")
    plan = tiny_plan(shop, rows=rows)
    _, _, natural, last = [step for step in plan.steps if isinstance(step, Train)]
    shop.out.mkdir()
    (shop.out / plan_file.NAME).write_text("{}")
    stamps.begin(natural, shop)
    stamps.finish(natural, shop, 100.0)
    stamps.begin(last, shop)
    made = []
    clock.run([lambda: made.extend(do(plan, shop).made)])
    ended = {name.split("/")[1]: None for name in reversed(made) if "ledger" in name}
    assert list(reversed(ended)) == ["natural", "baseline", "acab-retrained", "ab-retrained"]
    assert made.index(f"{last.work.place}/model") < made.index("digits/baseline/seed-0/model")


def test_one_process_does_row_after_row(tmp_path, clock):
    shop = shop_at(tmp_path / "out")
    plan, made = tiny_plan(shop, rows=("baseline", "fixed-pretrained", "ac-retrained"), seeds=(0, 1)), []
    clock.run([lambda: made.extend(do(plan, shop).made)])
    assert made == [step.name for step in plan.steps]
