"""What a finding is, and how counts become points."""

from dataclasses import asdict, dataclass, field
from typing import Any

from linocut.evaluation.record import Share

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


def points(weak: Share, strong: Share) -> float:
    """By how many percentage points `weak` lies above `strong`."""
    return weak.percent - strong.percent


def status_of_gap(weak: Share, strong: Share) -> str:
    """FAIL when `weak` lies more than half a point above `strong`.

    With few examples one of them is several points; that still fails, because an alarm costs a look and a miss costs
    a wrong result. The finding's numbers say how many examples it rests on.
    """
    return OK if points(weak, strong) <= 0.5 else FAIL
