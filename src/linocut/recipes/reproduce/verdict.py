"""What a reproduction comes down to: every defended row against the same training without a transform."""

from collections.abc import Sequence
from dataclasses import dataclass

from linocut.evaluation.intervals import lopsided
from linocut.evaluation.record import Share
from linocut.recipes.reproduce.overview import Records, published_pgd, worst
from linocut.recipes.reproduce.tables import base_row, words
from linocut.recipes.reproduce.work import Work

NORMS = {"linf": "L∞", "l2": "L2"}
LITTLE = 2.0  # points


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
    def sentence(self) -> str:
        """The comparison in words, with its numbers."""
        norm = NORMS[self.norm]
        if self.standing == self.base_standing == 0:
            return f"in {norm} none of {self.n} images hold, with the transform or without"
        share, other = (_percent(Share(count, self.n)) for count in (self.standing, self.base_standing))
        told = f"in {norm} {share} of {self.n} images hold, without the transform {other}"
        if not lopsided(self.gained, self.lost):
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
    """The verdict: one sentence a row and seed, both norms in it; then where the published attack flatters most."""
    told: dict[str, list[str]] = {}
    for found in comparisons(works, records):
        told.setdefault(_name(found.work, works), []).append(found.sentence)
    compared = [f"{name}, worst case: {'; '.join(parts)}." for name, parts in told.items()]
    return compared + flattery(works, records)


def flattery(works: Sequence[Work], records: Records) -> list[str]:
    """The one row and norm whose published figure promises most beyond the worst case on the same images."""
    most, told = LITTLE, []
    for work in works:
        judged = records[work.place]
        for norm in judged[0].norms:
            examples, standing = worst(judged, norm)
            name = published_pgd(judged[0], norm)
            if name not in judged[0].published(norm):
                continue
            shared = examples & set(judged[0].of[name])
            published, left = judged[0].after(name, shared), Share(len(standing & shared), len(shared))
            if shared and published.percent - left.percent > most:
                most = published.percent - left.percent
                told = [
                    f"The published attack flatters most in {NORMS[norm]} for {_name(work, works)}: it leaves "
                    f"{_percent(published)} of {len(shared)} images, all attacks together leave {_percent(left)}."
                ]
    return told


def _percent(share: Share) -> str:
    return f"{share.percent:.{share.decimals}f} %"


def _name(work: Work, works: Sequence[Work]) -> str:
    """The row in words, with its data set and seed where there are several."""
    data_set = f"{work.data_set}, " if len({other.data_set for other in works}) > 1 else ""
    seed = f", seed {work.config.seed}" if len({other.config.seed for other in works}) > 1 else ""
    return f"{data_set}{words(work.row)}{seed}"


def _is_base(other: Work, work: Work) -> bool:
    return (
        other.row == base_row(work.row) != work.row
        and other.data_set == work.data_set
        and other.config.seed == work.config.seed
    )
