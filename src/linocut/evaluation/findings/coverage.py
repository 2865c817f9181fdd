"""Did the gradient attacks miss what others found: black-box, noise, transfer, containment, silent."""

import math

from linocut.evaluation.findings.finding import FAIL, OK, WARN, Finding, nobody_met, points, skipped
from linocut.evaluation.record import Record


def black_box(record: Record, norm: str) -> Finding:
    """Examples that stand against gradients and fall to Square; more than 1 % of all that it was run for fail."""
    only, tried = _missed_by_gradients(record, norm, "query")
    if not tried:
        return skipped("black-box", norm, "No black-box attack was run.")
    if (told := nobody_met("black-box", record, norm, ["clean"])) is not None:
        return told
    share = 100 * len(only) / tried
    return Finding(
        code="black-box",
        norm=norm,
        status=FAIL if share > 1 else WARN if only else OK,
        sentence=f"{len(only)} of {tried} examples stand against every gradient attack and fall to Square.",
        advice="Gradients are masked: an attack that uses none does better." if only else "",
        numbers={"examples": sorted(only)[:50], "count": len(only), "n": tried, "percent": share},
    )


def noise(record: Record, norm: str) -> Finding:
    """Examples that random noise breaks and gradients do not; any fails."""
    only, tried = _missed_by_gradients(record, norm, "noise")
    if not tried:
        return skipped("noise", norm, "No random noise was tried.")
    if (told := nobody_met("noise", record, norm, ["clean"])) is not None:
        return told
    return Finding(
        code="noise",
        norm=norm,
        status=FAIL if only else OK,
        sentence=f"{len(only)} of {tried} examples fall to random noise and to no gradient attack.",
        advice="An attack weaker than chance says nothing: look for masked gradients." if only else "",
        numbers={"examples": sorted(only)[:50], "count": len(only), "n": tried},
    )


def transfer(record: Record, norm: str) -> Finding:
    """Examples that fall only to another model's adversarial images; more than 0.5 % fail."""
    names = _tried(record, norm, "transfer")
    if not names:
        named = record.settings.get("twin") is not None
        return Finding(
            code="transfer",
            norm=norm,
            status=WARN,
            sentence=f"Transfer was skipped: {'this suite does not try the twin' if named else 'no twin was named'}.",
            advice=("Take the suite strong" if named else "Name the undefended twin (--twin)")
            + ": its images often pass a defence that masks gradients.",
        )
    if (told := nobody_met("transfer", record, norm, ["clean"])) is not None:
        return told
    others = [name for name in record.counting(norm) if record.entries[name]["kind"] != "transfer"]
    only = record.broken_by(names) - record.broken_by(others) - record.wrong()
    n = len(record.of["clean"])
    share = 100 * len(only) / n
    return Finding(
        code="transfer",
        norm=norm,
        status=FAIL if share > 0.5 else WARN if only else OK,
        sentence=f"{len(only)} of {n} examples fall only to images made against the twin.",
        advice="Gradients of this model are worse than another model's: they are masked." if only else "",
        numbers={"examples": sorted(only)[:50], "count": len(only), "n": n, "percent": share},
    )


def containment(record: Record) -> Finding:
    """Whether L2 accuracy is at most L-inf accuracy, as it must be when the L2 ball holds the L-inf ball."""
    radii = record.norms
    if not {"linf", "l2"} <= set(radii):
        return skipped("containment", None, "Only one norm was judged.")
    corner = radii["linf"] * math.sqrt(record.settings["dimensions"])
    if radii["l2"] < corner * (1 - 1e-6):
        return skipped(
            "containment",
            None,
            f"The L2 ball ({radii['l2']:.4g}) does not hold the L-inf ball ({corner:.4g}).",
        )
    merged = points(record.worst("l2"), record.worst("linf"))
    before = _published_gap(record)
    numbers = {"merged_points": merged, "published_points": before}
    if merged > 0:
        return Finding(
            code="containment",
            status=FAIL,
            sentence=f"After merging, L2 accuracy lies {merged:.2f} points above L-inf accuracy: a fault of this tool.",
            advice="Please report it with the ledger.",
            numbers=numbers,
        )
    if before is not None and before > 0:
        return Finding(
            code="containment",
            status=WARN,
            sentence=f"As published, L2 accuracy lies {before:.2f} points above L-inf accuracy although its ball holds "
            "the other; the worst case repairs it.",
            advice="The L2 attack is too weak: do not quote its column alone.",
            numbers=numbers,
        )
    return Finding(
        code="containment", status=OK, sentence="L2 accuracy does not exceed L-inf accuracy.", numbers=numbers
    )


def silent(record: Record, norm: str) -> Finding:
    """Examples that stand although an attack or its quick copy took a point of theirs for misclassified; any fails."""
    if (told := nobody_met("silent", record, norm, ["clean"])) is not None:
        return told
    names = record.counting(norm)
    seen = {row.example for name in names for row in record.of[name].values() if row.silent} - record.wrong()
    lost = seen - record.broken_by(names)
    published = {row.example for name in record.published(norm) for row in record.of[name].values() if row.silent}
    counted_elsewhere = len(published - record.wrong() - lost)
    return Finding(
        code="silent",
        norm=norm,
        status=FAIL if lost else WARN if counted_elsewhere else OK,
        sentence=f"{len(lost)} examples stand although an attack saw a point that is misclassified, or all but; "
        f"{counted_elsewhere} more do so in the published column only.",
        advice="Count them as broken if in doubt: they lie on the very boundary."
        if lost
        else "Count every iterate, as the worst case does."
        if counted_elsewhere
        else "",
        numbers={"examples": sorted(lost)[:50], "lost": len(lost), "published_only": counted_elsewhere},
    )


def _tried(record: Record, norm: str, kind: str) -> list[str]:
    """The entries of a kind that ran, or had nobody left to run on."""
    names = record.counting(norm, kind=kind)
    return [name for name in names if record.ran(name) or not record.of[name]]


def _missed_by_gradients(record: Record, norm: str, kind: str) -> tuple[set[int], int]:
    """The examples that attacks of this kind break and gradients do not, and among how many."""
    names = _tried(record, norm, kind)
    gradient = record.broken_by(record.counting(norm, kind="gradient") + record.counting(norm, kind="rival"))
    gradient |= record.wrong()
    tried: set[int] = set()
    for name in names:
        # An example that gradients broke first never met the attack, and would not have counted.
        limit = record.entries[name]["limit"]
        tried |= set(record.of[name]) | (gradient if limit is None else set())
    return record.broken_by(names) - gradient, len(tried)


def _published_gap(record: Record) -> float | None:
    names = [f"{norm}/pgd-published" for norm in ("l2", "linf")]
    if not all(record.ran(name) for name in names):
        return None
    shared = set(record.of[names[0]]) & set(record.of[names[1]])
    l2, linf = (record.after(name, shared) for name in names)
    return points(l2, linf)
