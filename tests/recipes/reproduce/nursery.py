"""Children that carry out the tiny plan in one folder and are killed, each a little further on."""

import json
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import jinja2  # noqa: F401 - imported here once, not in every child
import torch
from tests.recipes.reproduce.tiny import NUMERICS, shorten, tiny_plan

import linocut.report
from linocut.recipes.reproduce import runner, stamps
from linocut.recipes.reproduce.shelf import Shelf
from linocut.recipes.reproduce.step import Workshop


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly:
    """Kills this process within a step of this name."""

    def __init__(self, name):
        self.name = name

    def starts(self, step, state):
        return lambda share, words: die() if step.name == self.name and share > 0 else None

    def ends(self, step, seconds):
        pass

    def waits(self, step):
        pass


def child(out, shelf, name, moment):
    shop = Workshop(out=out, shelf=shelf, device=torch.device("cpu"))
    begin, finish = stamps.begin, stamps.finish

    def begun(step, shop):
        begin(step, shop)
        if (step.name, "begun") == (name, moment):
            die()

    def finished(step, shop, seconds):
        if (step.name, "unstamped") == (name, moment):
            die()
        finish(step, shop, seconds)

    stamps.begin, stamps.finish = begun, finished
    runner.carry_out(tiny_plan(shop), shop, NUMERICS, {}, Deadly(name if moment == "within" else ""))


def in_order(plan, shop):
    """The steps as a single process takes them."""
    taken = {}
    while len(taken) < len(plan.steps):
        step = runner._in_turn(plan, shop, set(taken))[0]
        taken[step.name] = step
    return list(taken.values())


def main(out, each):
    shorten()
    torch.set_num_threads(1)
    shelf = Shelf(None)
    shop = Workshop(out=out, shelf=shelf, device=torch.device("cpu"))
    steps = in_order(tiny_plan(shop), shop)
    for step in steps:
        step.inputs(shop)  # reads the data, which the children then share
    kills = []
    for number, step in enumerate(steps):
        tells = "ledger" in step.name or step.name.endswith("baseline/seed-0/model")
        moments = ["begun", "within", "unstamped"] if tells else ["begun", "unstamped"]
        turned = moments[number % len(moments) :] if each == 1 else moments
        kills += [(step.name, moment) for moment in turned[:each]]
    assert callable(linocut.report.write)  # what it imports is then there for every child
    statuses = []
    for name, moment in [*kills, ("", "")]:
        pid = os.fork()
        if pid == 0:
            child(out, shelf, name, moment)
            os._exit(0)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    killed = sum(status == -signal.SIGKILL for status in statuses[:-1])
    print(json.dumps({"kills": len(kills), "killed": killed, "last": statuses[-1]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
