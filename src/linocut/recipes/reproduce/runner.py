"""Goes through a plan: skips what is done, goes on with what was begun, makes the rest; others may do so too."""

import contextlib
import time
from typing import Any, Protocol

from linocut.errors import InputError
from linocut.files import TEMPORARY_SUFFIX
from linocut.recipes.reproduce import locks, plan_file, stamps
from linocut.recipes.reproduce.making import FitCodebook, Train
from linocut.recipes.reproduce.plan import Plan
from linocut.recipes.reproduce.scales import Numerics
from linocut.recipes.reproduce.stamps import Seen, State
from linocut.recipes.reproduce.step import Step, Watch, Workshop, remove

PAUSE = 0.2  # seconds between two looks at what another process is making


class Listener(Protocol):
    """Whoever wants to know how a plan gets on."""

    def starts(self, step: Step, state: State) -> Watch:
        """A step begins, or is skipped as done; what it returns is told how far it is."""

    def ends(self, step: Step, seconds: float) -> None:
        """A step that began is done."""

    def waits(self, step: Step) -> None:
        """Nothing can be begun before another process has done this step."""


def check_folder(shop: Workshop) -> None:
    """InputError where the folder holds something else: steps remove what lies in their place."""
    out = shop.out
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is no folder: choose another --out")
    names = [path.name for path in out.iterdir()] if out.is_dir() else []
    others = [name for name in names if name != locks.FOLDER and not name.endswith(TEMPORARY_SUFFIX)]
    # Looked for last: a process that is just beginning writes its plan before anything else.
    if others and not (out / plan_file.NAME).exists():
        raise InputError(f"{out} holds other things ({others[0]}): choose a new or empty folder for --out")


def carry_out(
    plan: Plan,
    shop: Workshop,
    numerics: Numerics,
    told: dict[str, Any],
    listener: Listener,
    seen: Seen | None = None,
) -> None:
    """Do the plan, or what other processes leave of it; back when every step is done.

    `told` is what plan.json says of each step besides its name, by that name.
    """
    check_folder(shop)
    seen = {} if seen is None else seen
    with contextlib.ExitStack() as stack:
        with locks.one_at_a_time(shop):
            alone = stack.enter_context(locks.member(shop))
            plan_file.add(plan, shop, numerics, told, alone=alone)
        done: set[str] = set()
        while len(done) < len(plan.steps):
            busy = _advance(plan, shop, done, seen, listener)
            if busy is not None:
                listener.waits(busy)
                time.sleep(PAUSE)


def states(plan: Plan, shop: Workshop, seen: Seen) -> dict[str, State]:
    """How each step stands now, by name."""
    found: dict[str, State] = {}
    for step in plan.steps:
        done = [name for name, state in found.items() if state is State.DONE]
        found[step.name] = stamps.state(step, shop, done, seen)
    return found


def _advance(plan: Plan, shop: Workshop, done: set[str], seen: Seen, listener: Listener) -> Step | None:
    """None after one more step was made or found done; where none can be begun, the first that others are at."""
    busy = None
    for step in _in_turn(plan, shop, done):
        with locks.free(step, shop) as ours:
            if ours:
                state = stamps.state(step, shop, done, seen)  # only now: another process may just have done it
                watch = listener.starts(step, state)
                if state is not State.DONE:
                    listener.ends(step, _make(step, shop, state, watch))
                done.add(step.name)
                return None
        busy = busy or step
    return busy


def _in_turn(plan: Plan, shop: Workshop, done: set[str]) -> list[Step]:
    """The steps that could be begun, those that end a row before those that begin one, else as in the plan."""

    def turn(step: Step) -> int:
        if stamps.seems_made(step, shop):
            return 0  # that needs but a look, and others stand on it
        if not isinstance(step, FitCodebook | Train):
            return 1
        return 2 if stamps.read(step, shop) else 3

    ready = (step for step in plan.steps if step.name not in done and all(need.name in done for need in step.needs))
    return sorted(ready, key=turn)


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
    remove(left for piece in step.pieces(shop) for left in piece.rglob(f".*{TEMPORARY_SUFFIX}"))  # of killed runs
    stamps.finish(step, shop, took := time.monotonic() - started)
    remove(step.scaffolding(shop))
    return took
