"""One call of `linocut reproduce`: from what was asked for to a plan with estimates, and its execution."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from linocut.data.loading import root_from_environment
from linocut.errors import InputError
from linocut.models.devices import name_of
from linocut.recipes.reproduce import plan_file, runner, stamps
from linocut.recipes.reproduce.calibration import Calibration
from linocut.recipes.reproduce.estimates import estimate
from linocut.recipes.reproduce.making import Train
from linocut.recipes.reproduce.plan import Plan, Planner
from linocut.recipes.reproduce.reporting import WriteReport
from linocut.recipes.reproduce.scales import Numerics, Scale
from linocut.recipes.reproduce.shelf import Shelf
from linocut.recipes.reproduce.stamps import Seen, State
from linocut.recipes.reproduce.step import Step, Workshop
from linocut.report import require_jinja


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A plan in its folder, how each step stands, and what each is expected to take, where that was asked.

    seen: what of the outcomes was hashed to learn how the steps stand.
    """

    shop: Workshop
    plan: Plan
    states: dict[str, State]
    estimates: dict[str, dict[str, Any]]
    numerics: Numerics
    seen: Seen

    @property
    def seconds_left(self) -> float:
        """The sum of what is not done; what was begun counts whole."""
        return sum(self.estimates[name]["seconds"] for name, state in self.states.items() if state is not State.DONE)

    @property
    def report(self) -> WriteReport:
        last = self.plan.steps[-1]
        assert isinstance(last, WriteReport)
        return last

    def carry_out(self, listener: runner.Listener) -> None:
        """Do what is left, together with other processes that do the same."""
        runner.carry_out(self.plan, self.shop, self.numerics, self.estimates, listener, self.seen)


def prepare(
    rows: Sequence[tuple[str, str]],
    *,
    scale: Scale,
    seeds: Sequence[int],
    out: Path,
    root: Path | None,
    device: torch.device,
    title: str,
    published: Path | None = None,
    timed: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> Reproduction:
    """The reproduction for these rows; a few steps are timed here unless they were before, and nothing is written.

    timed: whether anyone wants the estimates. `tell` hears which network is being timed: on a CPU a large one takes
    a minute.
    """
    shelf = Shelf(root or root_from_environment())
    shop = Workshop(out=out.absolute(), shelf=shelf, device=device, published=published)
    runner.check_folder(shop)
    require_jinja()  # at the end would be hours later
    if published is not None and not published.is_dir():
        raise InputError(f"{published} is not a folder: --published takes one that `linocut publish` wrote")
    numerics = plan_file.numerics_of(shop, {data_set for data_set, _ in rows})
    plan = Planner(scale, shop.shelf, numerics).plan(rows, seeds, title)
    seen: Seen = {}
    states = runner.states(plan, shop, seen)
    estimates = _estimates(plan, shop, states, tell) if timed else {}
    return Reproduction(shop=shop, plan=plan, states=states, estimates=estimates, numerics=numerics, seen=seen)


def _estimates(
    plan: Plan, shop: Workshop, states: dict[str, State], tell: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """What each step took, if it is done, or will take by what plan.json says, or by times taken now."""
    device = _name(shop.device)
    known = plan_file.held_estimates(plan, shop, device)
    with tempfile.TemporaryDirectory() as scratch:
        calibration = Calibration(shop.device, Path(scratch), tell)

        def expected(step: Step) -> dict[str, Any]:
            if states[step.name] is State.DONE:
                return _exactly(stamps.read(step, shop)["seconds"])
            made = all(states[need.name] is State.DONE for need in step.needs)  # a codebook decides which network it is
            if isinstance(step, Train) and made and step.is_published(shop):
                return _exactly(0) | {"taken_over": True}
            return known.get(step.name) or estimate(step, shop, calibration) | {"timed_on": device}

        return {step.name: expected(step) for step in plan.steps}


def _name(device: torch.device) -> str:
    """The device as one tells it from others that are quicker or slower."""
    if device.type == "cuda":
        return name_of(device)
    return f"{device.type} {name_of(device)}, threads: {torch.get_num_threads()}"


def _exactly(seconds: float) -> dict[str, Any]:
    return {"seconds": round(seconds, 1), "at_most": False, "whole_batches": True}
