"""The one loop: every entry over every batch, each row written before the next batch begins."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from linocut.evaluation.case import Case
from linocut.evaluation.entry import Entry
from linocut.evaluation.ledger import Ledger
from linocut.evaluation.rows import Row
from linocut.evaluation.sample import Batch, Sample
from linocut.evaluation.trial import Lost, Trial, counts

Watch = Callable[[Entry, int, int, int], None]  # entry, examples done, examples due, of which done before


class Judge:
    """Runs a plan over a sample and fills a ledger. What is there already is not done again."""

    def __init__(self, case: Case, plan: Sequence[Entry], sample: Sample, ledger: Ledger, radii: dict[str, float]):
        self.plan, self.sample, self.ledger, self.radii = plan, sample, ledger, radii
        self.trial = Trial(case, sample, ledger.folder, radii)
        self.lost: Lost = defaultdict(dict)
        self.lost_in_levels: dict[str, set[int]] = defaultdict(set)  # to an image that survives rounding, by norm

    def run(self, batches: Sequence[Batch], watch: Watch) -> None:
        """Every entry, in order, over these batches; examples that an entry broke are gone for the next."""
        for entry in self.plan:
            due = [self.due(entry, batch) for batch in batches]
            done, total, before = 0, sum(map(len, due)), 0
            for batch, examples in zip(batches, due, strict=True):
                rows = self.held(entry, batch)
                if {row.example for row in rows} == set(examples):
                    before += len(rows)
                else:
                    # A batch that a crash cut in two is done again whole: batch mates may sway a network's last bits.
                    rows = self.trial.rows(entry, batch, examples, self.lost)
                    self.ledger.append(rows)
                self.remember(entry, rows)
                done += len(rows)
                if examples:
                    watch(entry, done, total, before)

    def due(self, entry: Entry, batch: Batch) -> list[int]:
        """The examples of the batch that this entry must see."""
        examples = [e for e in batch.examples if entry.limit is None or self.sample.position[e] < entry.limit]
        if entry.starts == "linf":
            examples = [e for e in examples if self.lost["linf"].get(e)]
        if entry.starts == "fragile":
            assert entry.threat is not None
            norm = entry.threat.norm
            return [e for e in examples if self.lost[norm].get(e) and e not in self.lost_in_levels[norm]]
        if entry.column == "worst":
            assert entry.threat is not None
            examples = [e for e in examples if e not in self.lost[entry.threat.norm]]
        return examples

    def held(self, entry: Entry, batch: Batch) -> list[Row]:
        """The rows that an earlier run left."""
        found = (self.ledger.rows.get((entry.name, example)) for example in batch.examples)
        return [row for row in found if row is not None]

    def remember(self, entry: Entry, rows: Iterable[Row]) -> None:
        """Notes who is lost, so that they leave: by being wrong at first, or broken inside the judged ball."""
        for row in rows:
            if entry.column == "clean":
                self.trial.clean[row.example] = row.prediction
                if row.prediction != row.label:
                    for norm in self.radii:
                        self.lost[norm][row.example] = None
            elif row.broken and counts(entry, self.radii):
                assert entry.threat is not None
                self.lost[entry.threat.norm].setdefault(row.example, entry.name)
            if row.broken and entry.threat is not None and self._in_levels(entry, row):
                self.lost_in_levels[entry.threat.norm].add(row.example)

    def _in_levels(self, entry: Entry, row: Row) -> bool:
        """Whether an image that broke the model does so in whole levels; a search there has its own ball."""
        return entry.starts == "fragile" or (counts(entry, self.radii) and row.quantised != row.label)
