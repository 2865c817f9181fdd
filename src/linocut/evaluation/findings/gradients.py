"""Does the gradient say anything: zero-gradient, randomness, surrogate."""

from linocut.evaluation.findings.finding import FAIL, OK, WARN, Finding, nobody_met, points, skipped, status_of_gap
from linocut.evaluation.record import Record

GRADIENT, REPEAT = "measure/gradient", "measure/repeat"


def zero_gradient(record: Record) -> Finding:
    """Examples whose input gradient is zero or not finite; more than 0.1 % fail."""
    rows = record.of.get(GRADIENT, {}).values()
    if not rows:
        return skipped("zero-gradient", None, "No input gradient was measured.")
    zero = sum(row.measure == 0 for row in rows)
    not_finite = sum(row.measure is None for row in rows)
    share = 100 * (zero + not_finite) / len(rows)
    return Finding(
        code="zero-gradient",
        status=FAIL if share > 0.1 else WARN if share else OK,
        sentence=f"{zero} of {len(rows)} examples have a zero input gradient and {not_finite} one that is not finite.",
        advice="A gradient attack that sees nothing proves nothing. Where a preprocessing cuts the gradient off, name "
        "it with --preprocess, so that attacks pass straight through it (BPDA)."
        if share
        else "",
        numbers={"zero": zero, "not_finite": not_finite, "n": len(rows), "percent": share},
    )


def randomness(record: Record) -> Finding:
    """Examples whose logits change between forwards of one image, on the grid of whole levels or off it; any fails."""
    rows = record.of.get(REPEAT, {}).values()
    if not rows:
        return skipped("randomness", None, "The model was not run twice.")
    differ, draws = sum(bool(row.measure) for row in rows), record.settings.get("draws", 1)
    sentence = f"{differ} of {len(rows)} examples give other logits when run again."
    if draws > 1:
        sentence += f" All accuracies here are of the expectation over {draws} draws."
    return Finding(
        code="randomness",
        status=FAIL if differ else OK,
        sentence=sentence,
        advice="Switch to eval mode; a defence that draws at random must be attacked through its expectation."
        if differ
        else "",
        numbers={"differ": differ, "n": len(rows), "draws": draws},
    )


RIVALS = {
    "rival-true": "PGD along the model's true gradient",
    "rival-undefended": "PGD on the network without its transform",
}


def surrogate(record: Record, norm: str) -> Finding:
    """Whether the surrogate gradient attacks better than the true one and than that without the transform."""
    base = f"{norm}/pgd-published"
    rivals = [name for name in record.names(norm=norm, kind="rival") if record.ran(name)]
    if not (record.ran(base) and rivals):
        tried = record.names(norm=norm, kind="rival")
        return skipped(
            "surrogate",
            norm,
            "The model offers no other gradient of itself to compare with (no transform with hooks)."
            if tried
            else "The suite compares the surrogate with no other gradient.",
        )
    if (told := nobody_met("surrogate", record, norm, [base])) is not None:
        return told
    numbers, gaps, statuses = {}, {}, {OK}
    for name in rivals:
        own, rival = record.after(base, record.of[name]), record.after(name, record.of[base])
        numbers[name.removeprefix(f"{norm}/")] = {"surrogate": own.as_json(), "rival": rival.as_json()}
        gaps[RIVALS[name.removeprefix(f"{norm}/")]] = points(own, rival)
        statuses.add(status_of_gap(own, rival))
    status, worst = next(one for one in (FAIL, WARN, OK) if one in statuses), max(0.0, *gaps.values())
    stronger = " or ".join(rival for rival, gap in gaps.items() if gap > 0)
    return Finding(
        code="surrogate",
        norm=norm,
        status=status,
        sentence=f"The published PGD is as strong as {' and as '.join(gaps)}."
        if status == OK
        else f"The published PGD leaves up to {worst:.2f} points more than {stronger} "
        f"(n = {len(record.of[rivals[0]])}).",
        advice="" if status == OK else "The gradient it follows misleads it: attack through another one.",
        numbers=numbers | {"weaker_points": worst},
    )
