"""Fifteen checks on a record; each is a pure function of the ledger, so a report can repeat them."""

from collections.abc import Callable

from linocut.evaluation.findings import coverage, gradients, images, strength
from linocut.evaluation.findings.finding import FAIL, NOT_APPLICABLE, OK, WARN, Finding
from linocut.evaluation.record import Record

__all__ = ["CHECKS", "FAIL", "NOT_APPLICABLE", "OK", "WARN", "Finding", "find"]

Check = Callable[..., Finding]  # of a record, and of one of its norms

CHECKS: dict[str, Check] = {
    "zero-gradient": gradients.zero_gradient,
    "randomness": gradients.randomness,
    "one-step": strength.one_step,
    "unbounded": strength.unbounded,
    "monotone": strength.monotone,
    "converged": strength.converged,
    "ascent": strength.ascent,
    "black-box": coverage.black_box,
    "noise": coverage.noise,
    "containment": coverage.containment,
    "transfer": coverage.transfer,
    "surrogate": gradients.surrogate,
    "silent": coverage.silent,
    "quantised": images.quantised,
    "leak": images.leak,
}
ONCE = {"zero-gradient", "randomness", "containment", "leak"}  # the others are asked for each norm


def find(record: Record) -> list[Finding]:
    """All findings, in the order of CHECKS; one a norm where the check is about a norm."""
    found = []
    for code, check in CHECKS.items():
        found += [check(record)] if code in ONCE else [check(record, norm) for norm in record.norms]
    return found
