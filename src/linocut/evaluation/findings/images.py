"""Are the images what they seem: quantised, leak."""

from linocut.evaluation.findings.finding import (
    FAIL,
    NOT_APPLICABLE,
    OK,
    WARN,
    Finding,
    nobody_met,
    points,
    status_of_gap,
)
from linocut.evaluation.record import Record, Share

SEEN = "measure/seen"


def quantised(record: Record, norm: str) -> Finding:
    """The worst case again with every kept image in whole grey levels (see rounding.py); a rise above 1 point fails.

    Where the suite also searched among whole levels (`pgd-whole-levels`, `square-whole-levels`), what that found counts
    too. It is called a search only if everything that rounding undid was searched for.
    """
    if (told := nobody_met("quantised", record, norm, ["clean"])) is not None:
        return told
    clean = record.of["clean"]
    rows = [row for name in record.counting(norm) for row in record.of[name].values() if row.broken]
    broken = {row.example for row in rows}
    searched = [row for name in record.names(norm=norm, kind="levels") for row in record.of[name].values()]
    rounded_still = {row.example for row in rows if row.quantised != row.label}
    still = rounded_still | {row.example for row in searched if row.broken}
    whole = bool(searched) and broken - rounded_still <= {row.example for row in searched}
    wrong = record.wrong()
    exact = Share(len(clean) - len(broken | wrong), len(clean))
    rounded = Share(len(clean) - len(still | wrong), len(clean))
    rise = points(rounded, exact)
    how = "Searched for in whole levels too," if whole else "Rounded to whole levels"
    return Finding(
        code="quantised",
        norm=norm,
        status=status_of_gap(rounded, exact, most=1) if rise > 1 else WARN if rise > 0 else OK,
        sentence=f"{how} the adversarial images leave {rounded.percent:.2f} %, unrounded "
        f"{exact.percent:.2f} % (n = {exact.n}).",
        advice="Part of the attack lives below one grey level and dies in a PNG: report both." if rise > 0 else "",
        numbers={"exact": exact.as_json(), "rounded": rounded.as_json(), "rise_points": rise},
    )


def leak(record: Record) -> Finding:
    """Judged images that were also seen in training or in a codebook fit; any fails."""
    rows = record.of.get(SEEN, {}).values()
    if not rows:
        return Finding(
            code="leak",
            status=NOT_APPLICABLE,
            sentence="What the model was trained on is not known.",
            advice="Judge the test split where the training files are too (--root): both are then compared.",
        )
    seen = sorted(row.example for row in rows if row.measure)
    return Finding(
        code="leak",
        status=FAIL if seen else OK,
        sentence=f"{len(seen)} of {len(rows)} judged images are also training images, pixel for pixel.",
        advice="Remove them and judge again: their accuracy says nothing about new images." if seen else "",
        numbers={"examples": seen[:50], "count": len(seen), "n": len(rows)},
    )
