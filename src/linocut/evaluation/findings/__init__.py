"""Fifteen checks on a record; each is a pure function of the ledger, so a report can repeat them."""

from linocut.evaluation.findings import coverage, gradients, images, strength
from linocut.evaluation.findings.finding import FAIL, NOT_APPLICABLE, OK, WARN, Finding
from linocut.evaluation.record import Record

__all__ = ["CHECKS", "FAIL", "NOT_APPLICABLE", "OK", "WARN", "Finding", "find"]

WHOLE = {  # asked once
    "zero-gradient": gradients.zero_gradient,
    "randomness": gradients.randomness,
    "containment": coverage.containment,
    "leak": images.leak,
}
PER_NORM = {  # asked for each norm
    "one-step": strength.one_step,
    "unbounded": strength.unbounded,
    "monotone": strength.monotone,
    "converged": strength.converged,
    "ascent": strength.ascent,
    "black-box": coverage.black_box,
    "noise": coverage.noise,
    "transfer": coverage.transfer,
    "surrogate": gradients.surrogate,
    "silent": coverage.silent,
    "quantised": images.quantised,
}
CHECKS = [
    "zero-gradient",
    "randomness",
    "one-step",
    "unbounded",
    "monotone",
    "converged",
    "ascent",
    "black-box",
    "noise",
    "containment",
    "transfer",
    "surrogate",
    "silent",
    "quantised",
    "leak",
]


def find(record: Record) -> list[Finding]:
    """All findings, in the order of CHECKS; one a norm where the check is about a norm."""
    found = []
    for code in CHECKS:
        if code in WHOLE:
            found.append(WHOLE[code](record))
        else:
            found.extend(PER_NORM[code](record, norm) for norm in record.norms)
    return found
