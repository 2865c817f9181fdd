"""The steps of a reproduction, in the order in which they are done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from linocut.recipes.reproduce.judging import Evaluate
from linocut.recipes.reproduce.making import FitCodebook, Model, PutBefore, Train
from linocut.recipes.reproduce.reporting import WriteReport
from linocut.recipes.reproduce.scales import Numerics, Scale
from linocut.recipes.reproduce.shelf import Shelf
from linocut.recipes.reproduce.step import Step
from linocut.recipes.reproduce.tables import base_row
from linocut.recipes.reproduce.work import Work
from linocut.recipes.training.rows import training_changes

S = TypeVar("S", bound=Step)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every step, each after all that it needs; the works are the rows that were asked for."""

    works: tuple[Work, ...]
    steps: tuple[Step, ...]


class Planner:
    """Collects steps, none twice."""

    def __init__(self, scale: Scale, shelf: Shelf, numerics: Numerics):
        self.scale, self.shelf, self.numerics = scale, shelf, numerics
        self.steps: dict[str, Step] = {}

    def plan(self, rows: Sequence[tuple[str, str]], seeds: Sequence[int], title: str) -> Plan:
        """The plan for these (data set, row) pairs, once for each seed.

        A row with a transform needs the network of the same training without one: a pretrained row stands on it,
        a retrained one is attacked with its images. It is trained for them, and judged only if it was asked for.
        """
        works, ledgers = [], []
        for data_set, row in rows:
            for seed in seeds:
                work = self.work(data_set, row, seed)
                model = self.model(work)
                twin = None if work.config.transform is None else self.model(self.work(data_set, base_row(row), seed))
                works.append(work)
                ledgers += [self._add(Evaluate(work, judgement, model, twin)) for judgement in work.judgements]
        self._add(WriteReport(title, tuple(works), tuple(ledgers)))
        return Plan(works=tuple(works), steps=tuple(self.steps.values()))

    def work(self, data_set: str, row: str, seed: int) -> Work:
        """The work of a row; changes of its training come after all that the scale sets."""
        changes = training_changes(row)
        work = self.scale(data_set, row.partition("+")[0], seed, self.shelf, self.numerics)
        return work.trained_with(row, changes) if changes else work

    def model(self, work: Work) -> Model:
        """The step that makes the network of a row, after those it needs."""
        known = self.steps.get(f"{work.place}/model")
        if known is not None:
            assert isinstance(known, Model)
            return known
        base = self.model(self.work(work.data_set, base_row(work.row), work.config.seed)) if work.comes_later else None
        book = (self._add(FitCodebook(work)),) if work.is_fixed else ()
        return self._add(Train(work, *book) if base is None else PutBefore(work, base, *book))

    def _add(self, step: S) -> S:
        return self.steps.setdefault(step.name, step)  # type: ignore[return-value]
