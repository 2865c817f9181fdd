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


def points(weak: Share, strong: Share) -> float:
    """By how many percentage points `weak` lies above `strong`."""
    return weak.percent - strong.percent


def status_of_gap(weak: Share, strong: Share) -> str:
    """FAIL when `weak` lies more than half a point above `strong`; only WARN when that is a single example.

    With few examples one of them is several points, and one may go either way.
    """
    if points(weak, strong) <= 0.5:
        return OK
    return FAIL if weak.count - strong.count >= 2 else WARN
