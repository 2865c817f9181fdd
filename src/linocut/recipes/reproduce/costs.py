"""How many passes through a network an attack takes at most."""

from dataclasses import dataclass

from linocut.attacks.transfer import Continued
from linocut.evaluation.entry import Entry

CHECKS = 4  # forwards that judging adds to each example of an attack: two of the find, two of its rounding


@dataclass(frozen=True, kw_only=True)
class Cost:
    """How many images an entry looks at, and the passes of each: gradients, and queries, which have no backward."""

    images: int
    gradients: int
    queries: int

    @property
    def weight(self) -> float:
        """All in one number, a gradient counting three queries."""
        return self.images * (3 * self.gradients + self.queries)


def cost(entry: Entry, n: int) -> Cost:
    """The most that an entry takes on a sample of n, as if no example ever broke."""
    many = n if entry.limit is None else min(n, entry.limit)
    if entry.column == "clean":
        return Cost(images=many, gradients=0, queries=1)
    if entry.column == "measure":
        return Cost(images=many, gradients=1, queries=5)
    gradients, queries = passes(entry.attack)
    return Cost(images=many, gradients=gradients, queries=queries + CHECKS)


def passes(attack: object) -> tuple[int, int]:
    """Gradients and queries for one example."""
    if isinstance(attack, Continued):
        first, second = passes(attack.first), passes(attack.second)
        return first[0] + second[0], first[1] + second[1]
    steps = getattr(attack, "num_steps", 0) * getattr(attack, "copies", 1) * getattr(attack, "num_targets", 1)
    return steps, getattr(attack, "num_queries", 0) + getattr(attack, "draws", 0) + bool(steps)
