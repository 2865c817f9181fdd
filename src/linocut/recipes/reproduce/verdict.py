"""What a reproduction comes down to: every defended row against the same training without a transform."""

from collections.abc import Sequence
from dataclasses import dataclass

from linocut.evaluation.intervals import clopper_pearson
from linocut.recipes.reproduce.overview import Records, worst
from linocut.recipes.reproduce.tables import base_row, words
from linocut.recipes.reproduce.work import Work

NORMS = {"linf": "L∞", "l2": "L2"}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two networks on the same images, in the worst case of one norm."""

    work: Work
    base: Work
    norm: str
    n: int
    standing: int  # images on which the defended network holds
    base_standing: int
    gained: int  # it holds, the other does not
    lost: int

    @property
    def decided(self) -> bool:
        """Whether so lopsided a split would come from a fair coin less than once in twenty times."""
        low, high = clopper_pearson(self.gained, self.gained + self.lost)
        return self.gained + self.lost > 0 and not low <= 0.5 <= high

    @property
    def sentence(self) -> str:
        """The comparison in words, with its numbers."""
        norm = NORMS[self.norm]
        if self.standing == self.base_standing == 0:
            return f"in {norm} none of {self.n} images hold, with the transform or without"
        share, other = (f"{100 * count / self.n:.1f} %" for count in (self.standing, self.base_standing))
        told = f"in {norm} {share} of {self.n} images hold, without the transform {other}"
        if not self.decided:
            return f"{told}: no difference that {self.n} images could show"
        return f"{told}: the transform {'helps' if self.gained > self.lost else 'makes it worse'}"


def comparisons(works: Sequence[Work], records: Records) -> list[Comparison]:
    """Every row with a transform whose base was judged too, with the same seed, in each norm."""
    found = []
    for work in works:
        base = next((other for other in works if _is_base(other, work)), None)
        if base is None:
            continue
        for norm in records[work.place][-1].norms:
            examples, standing = worst(records[work.place], norm)
            others, base_standing = worst(records[base.place], norm)
            shared = examples & others
            found.append(
                Comparison(
                    work=work,
                    base=base,
                    norm=norm,
                    n=len(shared),
                    standing=len(standing & shared),
                    base_standing=len(base_standing & shared),
                    gained=len((standing - base_standing) & shared),
                    lost=len((base_standing - standing) & shared),
                )
            )
    return found


def sentences(works: Sequence[Work], records: Records) -> list[str]:
    """The verdict: one sentence a row and seed, both norms in it."""
    told: dict[str, list[str]] = {}
    several = len({work.config.seed for work in works}) > 1
    for found in comparisons(works, records):
        seed = f", seed {found.work.config.seed}" if several else ""
        name = f"{found.work.data_set}, {words(found.work.row)}{seed}"
        told.setdefault(name, []).append(found.sentence)
    return [f"{name}; worst case: {'; '.join(parts)}." for name, parts in told.items()]


def _is_base(other: Work, work: Work) -> bool:
    return (
        other.row == base_row(work.row) != work.row
        and other.data_set == work.data_set
        and other.config.seed == work.config.seed
    )
