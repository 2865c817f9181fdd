"""What a reproduction comes down to: every defended row against the same training without a transform."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from linocut.evaluation.intervals import lopsided
from linocut.evaluation.record import Share
from linocut.recipes.reproduce.overview import Records, worst
from linocut.recipes.reproduce.tables import base_row, words
from linocut.recipes.reproduce.work import Work
from linocut.report.words import NORMS, rounded

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
    def outcome(self) -> str:
        """What the images on which the two differ say of the transform."""
        if not lopsided(self.gained, self.lost):
            return f"no difference that {self.n} images could show"
        return f"the transform {'helps' if self.gained > self.lost else 'makes it worse'}"


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
    """The verdict: one sentence a row, all its seeds and both norms in it; then where the published attack flatters."""
    rows: dict[tuple[str, str], dict[tuple[str, int], list[Comparison]]] = {}
    for found in sorted(comparisons(works, records), key=lambda each: each.work.config.seed):
        row = rows.setdefault((found.work.data_set, found.work.row), {})
        row.setdefault((found.norm, found.n), []).append(found)
    compared = []
    for work in works:
        row = rows.pop((work.data_set, work.row), {})
        if row:
            seeds = sorted({each.work.config.seed for same in row.values() for each in same})
            parts = "; ".join(
                sentence(row[key], seeds) for key in sorted(row, key=lambda key: list(NORMS).index(key[0]))
            )
            compared.append(f"{_name(work, works, seeds)}, worst case: {parts}.")
    return compared + flattery(works, records)


def sentence(found: Sequence[Comparison], seeds: Sequence[int]) -> str:
    """Comparisons of one row in one norm on as many images, one a seed, in words with their numbers.

    seeds: those of the whole row; where only some were compared so, they are named.
    """
    norm, n = NORMS[found[0].norm], found[0].n
    where = f"in {norm}" + (
        f" with {_seeds([each.work.config.seed for each in found])}" if len(found) < len(seeds) else ""
    )
    if not any(each.standing or each.base_standing for each in found):
        return f"{where} none of {n} images hold, with the transform or without"
    share, other = (
        _listed([_figure(Share(count, n)) for count in counts])
        for counts in ([each.standing for each in found], [each.base_standing for each in found])
    )
    outcomes: dict[str, list[int]] = {}
    for each in found:
        outcomes.setdefault(each.outcome, []).append(each.work.config.seed)
    told = [f"{outcome} with {_seeds(among)}" for outcome, among in outcomes.items()]
    if len(outcomes) == 1:
        told = [f"{found[0].outcome}{', with each seed' * (len(found) > 1)}"]
    return f"{where} {share} % of {n} images hold, without the transform {other} %: {', '.join(told)}"


def flattery(works: Sequence[Work], records: Records) -> list[str]:
    """The one row and norm whose published figure promises most beyond the worst case on the same images."""
    most, told = LITTLE, []
    for work in works:
        judged = records[work.place]
        for norm in judged[0].norms:
            examples, standing = worst(judged, norm)
            name = judged[0].white_box(norm)
            if name not in judged[0].published(norm):
                continue
            shared = examples & set(judged[0].of[name])
            published, left = judged[0].after(name, shared), Share(len(standing & shared), len(shared))
            if shared and published.percent - left.percent > most:
                most = published.percent - left.percent
                row = _name(work, works, [work.config.seed])
                told = [
                    f"The published attack flatters most in {NORMS[norm]} for {row}: it leaves "
                    f"{_figure(published)} % of {len(shared)} images, all attacks together leave {_figure(left)} %."
                ]
    return told


def _figure(share: Share) -> str:
    return rounded(share.percent, share.decimals)


def _listed(told: Sequence[str]) -> str:
    *others, last = told
    return f"{', '.join(others)} and {last}" if others else last


def _name(work: Work, works: Sequence[Work], seeds: Collection[int]) -> str:
    """The row in words, with its data set and seeds where the works have several."""
    data_set = f"{work.data_set}, " if len({other.data_set for other in works}) > 1 else ""
    several = len({other.config.seed for other in works}) > 1
    return f"{data_set}{words(work.row)}{f', {_seeds(seeds)}' * several}"


def _seeds(seeds: Collection[int]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {_listed([str(seed) for seed in seeds])}"


def _is_base(other: Work, work: Work) -> bool:
    return (
        other.row == base_row(work.row) != work.row
        and other.data_set == work.data_set
        and other.config.seed == work.config.seed
    )
