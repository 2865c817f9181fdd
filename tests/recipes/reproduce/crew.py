"""Processes that share one folder: so many at once, or one that is killed while another waits for it."""

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import jinja2  # noqa: F401 - imported here once, not in every process
import torch
from tests.recipes.reproduce.tiny import NUMERICS, shorten, tiny_plan

import linocut.report
from linocut.recipes.reproduce import runner, stamps
from linocut.recipes.reproduce.shelf import Shelf
from linocut.recipes.reproduce.step import Workshop

SHELF = Shelf(None)
MOST = 60.0  # seconds to wait for a sign


class Diary:
    """Writes down what this process does, a line each, in one file for all; stays for ever within `stuck_in`."""

    def __init__(self, file, stuck_in=""):
        self.file, self.stuck_in = file, stuck_in

    def note(self, *words):
        with open(self.file, "a") as file:
            file.write(json.dumps([os.getpid(), *words]) + "\n")

    def starts(self, step, state):
        self.note("starts", step.name, state.value)

        def watch(share, words):
            if step.name == self.stuck_in and share > 0:
                self.note("stuck", step.name)
                time.sleep(MOST)

        return watch

    def ends(self, step, seconds):
        self.note("ends", step.name)

    def waits(self, step):
        self.note("waits", step.name)


def hashing(diary):
    """Let the diary hold every look at an outcome's files that decides whether a step is done."""
    plain = stamps.outputs

    def noted(step, shop):
        diary.note("hashes", step.name)
        return plain(step, shop)

    stamps.outputs = noted


def child(out, diary, rows, together=1):
    """Fork a process that carries out the plan of these rows as soon as so many are there; its number."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            hashing(diary)
            diary.note("comes")
            wait_for(diary.file, "comes", together)
            shop = Workshop(out=out, shelf=SHELF, device=torch.device("cpu"))
            runner.carry_out(tiny_plan(shop, rows=rows), shop, NUMERICS, {}, diary)
            status = 0
        finally:
            os._exit(status)
    return pid


def wait_for(file, word, times=1):
    """Until the diary holds the word so many times."""
    end = time.monotonic() + MOST
    while not file.exists() or file.read_text().count(f'"{word}"') < times:
        assert time.monotonic() < end, f"nobody ever {word}"
        time.sleep(0.02)


def crew(out, crews):
    """Each of these rows by a process of its own, all at once; their exit statuses."""
    pids = [child(out, Diary(out.with_suffix(".diary")), rows, len(crews)) for rows in crews]
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def takeover(out, rows, name):
    """The first process is killed within the step, while the second waits for it; their exit statuses."""
    file = out.with_suffix(".diary")
    first = child(out, Diary(file, stuck_in=name), rows)
    wait_for(file, "stuck")
    second = child(out, Diary(file), rows)
    wait_for(file, "waits")
    os.kill(first, signal.SIGKILL)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in (first, second)]


def main(folder, jobs):
    shorten()
    torch.set_num_threads(1)
    shop = Workshop(out=folder / "nowhere", shelf=SHELF, device=torch.device("cpu"))
    for step in tiny_plan(shop).steps:
        step.inputs(shop)  # reads the data, which the children then share
    assert callable(linocut.report.write)  # what it imports is then there for every child
    statuses = {}
    for name, job in jobs.items():
        work = takeover if "name" in job else crew
        statuses[name] = work(folder / name, **job)
    print(json.dumps(statuses))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
