"""The step that judges a network by a suite, into a ledger."""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation.balls import balls
from linocut.evaluation.entry import Entry
from linocut.evaluation.ledger import read_rows
from linocut.evaluation.quick import UnfaithfulCopy
from linocut.evaluation.request import Request, carry_out
from linocut.evaluation.suites import plan as suite_plan
from linocut.recipes.reproduce.costs import cost
from linocut.recipes.reproduce.making import Model
from linocut.recipes.reproduce.step import Step, Watch, Workshop, digest
from linocut.recipes.reproduce.work import Judgement, Work

SEED = 0  # of the choice of images and all dice, the same for every network: they are judged on the same images


class Evaluate(Step):
    """A suite on a network; where the suite uses a twin, the network of the same training without a transform."""

    def __init__(self, work: Work, judgement: Judgement, model: Model, twin: Model | None):
        self.work, self.judgement, self.model = work, judgement, model
        self.twin = twin if judgement.suite != "paper" else None
        needs = [model] if self.twin is None else [model, self.twin]
        many = "all images" if judgement.n is None else f"{judgement.n} images"
        super().__init__(f"{work.place}/ledger-{judgement.suite}", f"suite {judgement.suite} on {many}", needs)

    def ledger(self, shop: Workshop) -> Path:
        return shop.out / self.name

    def pieces(self, shop: Workshop) -> list[Path]:
        return [self.ledger(shop)]

    def wish(self) -> dict[str, Any]:
        return {"judgement": asdict(self.judgement), "seed": SEED}

    def inputs(self, shop: Workshop) -> dict[str, Any]:
        entries = {entry.name: entry.config for entry in self.entries(shop)}
        data = shop.shelf.test(self.work).sha256
        return {**self.wish(), "entries": digest(entries), "data": data}

    def entries(self, shop: Workshop) -> list[Entry]:
        """What the suite will run."""
        values = shop.shelf.test(self.work).pixels[0].numel()
        return self._entries(values)

    def _entries(self, values: int) -> list[Entry]:
        radii = balls(self.work.config.data_set, values, ("linf", "l2"), self.judgement.eps)
        twin = torch.nn.Identity() if self.twin is not None else None
        return suite_plan(self.judgement.suite, radii, twin=twin, seen=True, fixed_codes=self.work.is_fixed)

    def count(self, shop: Workshop) -> int:
        """How many images are judged."""
        there = len(shop.shelf.test(self.work))
        return there if self.judgement.n is None else min(there, self.judgement.n)

    def can_go_on(self, shop: Workshop) -> bool:
        folder = self.ledger(shop)
        if not (folder / headers.NAME).exists():
            return True
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a torn last line is what a kill leaves
                read_rows(folder)
            return headers.read(folder)["settings"].get("model") == str(self.model.folder(shop))
        except (InputError, OSError, UnicodeDecodeError):
            return False

    def run(self, shop: Workshop, watch: Watch) -> None:
        wanted, config = self.judgement, self.work.config
        entries, n = self.entries(shop), self.count(shop)
        costs = {entry.name: cost(entry, n).weight for entry in entries}
        whole, passed = sum(costs.values()), dict(zip(costs, _sums_before(costs), strict=True))

        def tell(entry: Entry, done: int, due: int, before: int) -> None:
            share = passed[entry.name] + costs[entry.name] * done / max(1, due)
            watch(share / whole, f"{entry.name}, {done} of {due}")

        request = Request(
            model=str(self.model.folder(shop)),
            twin=None if self.twin is None else str(self.twin.folder(shop)),
            data=config.data_set,
            out=self.ledger(shop),
            suite=wanted.suite,
            n=n,
            eps=wanted.eps,
            root=shop.shelf.root,
            image_size=config.image_size,
            batch_size=wanted.batch_size,
            seed=SEED,
            device=str(shop.device),
            precision=wanted.precision,
            compile=wanted.compile,
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*the last line was cut short")
            plain = replace(request, precision="float32", compile=False)
            if self._searched_plainly(shop):
                carry_out(plain, tell)
                return
            try:
                carry_out(request, tell)
            except UnfaithfulCopy:
                carry_out(plain, tell)

    def _searched_plainly(self, shop: Workshop) -> bool:
        """Whether a run that is gone on with had no faithful copy; another machine might find one."""
        folder = self.ledger(shop)
        return (folder / headers.NAME).exists() and headers.read(folder)["settings"]["precision"] == "float32"


def _sums_before(costs: Mapping[str, float]) -> list[float]:
    """For each cost, the sum of those before it."""
    sums, total = [], 0.0
    for value in costs.values():
        sums.append(total)
        total += value
    return sums
