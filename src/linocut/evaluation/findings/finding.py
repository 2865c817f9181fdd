"""What a finding is, and how counts become points."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from linocut.evaluation.record import Record, Share

OK, WARN, FAIL, NOT_APPLICABLE = "ok", "warn", "fail", "not applicable"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The outcome of one check in one norm (or none): a plain sentence, its numbers, and what to do."""

    code: str
    status: str
    sentence: str
    advice: str = ""
    norm: str | None = None
    numbers: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def skipped(code: str, norm: str | None, sentence: str) -> Finding:
    """The finding of a check that could not be made."""
    return Finding(code=code, norm=norm, status=NOT_APPLICABLE, sentence=sentence)


def nobody_met(code: str, record: Record, norm: str, names: Iterable[str]) -> Finding | None:
    """The finding of a check whose attacks met no example that is classified rightly; None where one did."""
    examples = {example for name in names for example in record.of.get(name, {})}
    if not examples or not examples <= record.wrong():
        return None
    return skipped(code, norm, "Its attacks met no example that is classified rightly.")


def points(weak: Share, strong: Share) -> float:
    """By how many percentage points `weak` lies above `strong`."""
    return weak.percent - strong.percent


def status_of_gap(weak: Share, strong: Share, *, most: float = 0.5) -> str:
    """OK up to `most` points by which `weak` lies above `strong`, else WARN for a single example and FAIL for more.

    With few examples one is several points, and an attack that stops at the first find may find or miss it by chance.
    The finding's numbers say how many examples it rests on.
    """
    gap = points(weak, strong)
    if gap <= most:
        return OK
    return FAIL if gap * weak.n > 150 else WARN  # an example is 100 / n points
