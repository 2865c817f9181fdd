"""Goes through a plan: skips what is done, goes on with what was begun, makes the rest."""

import json
import sys
import time
from dataclasses import asdict
from typing import Any, Protocol

import linocut
from linocut.errors import InputError
from linocut.models.files import write_whole
from linocut.recipes.reproduce import stamps
from linocut.recipes.reproduce.plan import Plan
from linocut.recipes.reproduce.scales import Numerics
from linocut.recipes.reproduce.stamps import State
from linocut.recipes.reproduce.step import Step, Watch, Workshop, remove
from linocut.training.folder import own_folder

PLAN_FILE = "plan.json"


class Listener(Protocol):
    """Whoever wants to know how a plan gets on."""

    def starts(self, step: Step, state: State) -> Watch:
        """A step begins, or is skipped as done; what it returns is told how far it is."""

    def ends(self, step: Step, seconds: float) -> None:
        """A step that began is done."""


def numerics_of(shop: Workshop) -> Numerics:
    """Those that the folder was begun with, or what suits the device."""
    try:
        held = json.loads((shop.out / PLAN_FILE).read_bytes())["numerics"]
        return Numerics(**held)
    except (OSError, ValueError, LookupError, TypeError):
        return Numerics.on(shop.device)


def check_folder(shop: Workshop) -> None:
    """InputError where the folder holds something else: steps remove what lies in their place."""
    out = shop.out
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is no folder: choose another --out")
    others = [path.name for path in out.iterdir() if path.name != "run.lock"] if out.is_dir() else []
    if others and PLAN_FILE not in others:
        raise InputError(f"{out} holds other things ({others[0]}): choose a new or empty folder for --out")


def carry_out(plan: Plan, shop: Workshop, numerics: Numerics, told: dict[str, Any], listener: Listener) -> None:
    """Do the plan; `told` is what plan.json says of each step besides its name, by that name."""
    check_folder(shop)
    with own_folder(shop.out):
        _write_plan(plan, shop, numerics, told)
        done: set[str] = set()
        for step in plan.steps:
            state = stamps.state(step, shop, done)
            watch = listener.starts(step, state)
            if state is not State.DONE:
                listener.ends(step, _make(step, shop, state, watch))
            done.add(step.name)


def states(plan: Plan, shop: Workshop) -> dict[str, State]:
    """How each step stands now, by name."""
    found: dict[str, State] = {}
    for step in plan.steps:
        found[step.name] = stamps.state(step, shop, [name for name, state in found.items() if state is State.DONE])
    return found


def _make(step: Step, shop: Workshop, state: State, watch: Watch) -> float:
    """Make the step and stamp it; the seconds it took."""
    if state is State.DUE:
        stamps.stamp_path(step, shop).unlink(missing_ok=True)  # first, so that a kill here leaves nothing to believe
        remove((*step.pieces(shop), *step.leavings(shop)))
        stamps.begin(step, shop)
    started = time.monotonic()
    try:
        step.run(shop, watch)
    except BaseException:
        stamps.add_time(step, shop, time.monotonic() - started)
        raise
    stamps.finish(step, shop, took := time.monotonic() - started)
    remove(step.scaffolding(shop))
    return took


def _write_plan(plan: Plan, shop: Workshop, numerics: Numerics, told: dict[str, Any]) -> None:
    steps = [
        {"name": step.name, "title": step.title, "needs": [need.name for need in step.needs]} | told.get(step.name, {})
        for step in plan.steps
    ]
    content = {
        "linocut": linocut.__version__,
        "command": sys.argv,
        "device": str(shop.device),
        "numerics": asdict(numerics),
        "notes": sorted({f"{work.data_set}: {work.note}" for work in plan.works if work.note}),
        "steps": steps,
    }
    write_whole(shop.out / PLAN_FILE, json.dumps(content, indent=1).encode())
