"""Is the iterative attack as strong as it can be: one-step, unbounded, monotone, converged, ascent."""

from linocut.evaluation.findings.finding import FAIL, OK, WARN, Finding, nobody_met, points, skipped, status_of_gap
from linocut.evaluation.record import Record, Share


def one_step(record: Record, norm: str) -> Finding:
    """Whether the published iterative attack is at least as strong as one step of the same size as the ball."""
    iterative, single = f"{norm}/pgd-published", f"{norm}/one-step"
    if not (record.ran(iterative) and record.ran(single)):
        return skipped("one-step", norm, "The suite did not run an iterative and a one-step attack.")
    if (told := nobody_met("one-step", record, norm, [iterative])) is not None:
        return told
    many, one = record.after(iterative, record.of[single]), record.after(single, record.of[iterative])
    gap, status = points(many, one), status_of_gap(many, one)
    return Finding(
        code="one-step",
        norm=norm,
        status=status,
        sentence=f"One step leaves {one}; the published iterative attack {many}.",
        advice="An attack that one step beats is stuck: look for masked gradients, take larger steps."
        if status != OK
        else "",
        numbers={"one_step": one.as_json(), "iterative": many.as_json(), "weaker_points": gap},
    )


def unbounded(record: Record, norm: str) -> Finding:
    """Whether a gradient attack with the whole box to move in breaks every example."""
    name = f"{norm}/unbounded"
    if not record.ran(name):
        return skipped("unbounded", norm, "The suite did not run an attack with an unlimited ball.")
    if (told := nobody_met("unbounded", record, norm, [name])) is not None:
        return told
    left = record.after(name)
    return Finding(
        code="unbounded",
        norm=norm,
        status=FAIL if left.count else OK,
        sentence=f"With the whole box allowed, {left.count} of {left.n} examples stand.",
        advice="Any image is allowed there, so what stands shows an attack that cannot see, not a defence."
        if left.count
        else "",
        numbers={"left": left.as_json()},
    )


def monotone(record: Record, norm: str) -> Finding:
    """Whether accuracy never rises when the ball grows."""
    names = [name for name in record.names(norm=norm) if name.startswith(f"{norm}/radius-") and record.ran(name)]
    names.sort(key=lambda name: record.entries[name]["eps"])
    if len(names) < 2:
        return skipped("monotone", norm, "The suite did not run attacks at several radii.")
    if (told := nobody_met("monotone", record, norm, names)) is not None:
        return told
    shares = [record.after(name) for name in names]
    lowest, peak, trough = shares[0], shares[0], shares[0]  # the largest rise goes from the trough to the peak
    for share in shares[1:]:
        if points(share, lowest) > points(peak, trough):
            peak, trough = share, lowest
        lowest = min(lowest, share, key=lambda s: s.percent)
    rise, status = points(peak, trough), status_of_gap(peak, trough)
    status = WARN if status == OK and rise > 0 else status
    curve = {f"{record.entries[name]['eps']:.6g}": share.as_json() for name, share in zip(names, shares, strict=True)}
    return Finding(
        code="monotone",
        norm=norm,
        status=status,
        sentence=f"Over {len(names)} radii accuracy goes "
        + " ".join(f"{share.percent:.1f}" for share in shares)
        + f" %; the largest rise is {rise:.2f} points (n = {shares[0].n}).",
        advice="A larger ball holds every attack of a smaller one: use more steps, and steps that grow with it."
        if rise > 0
        else "",
        numbers={"curve": curve, "rise_points": rise},
    )


def converged(record: Record, norm: str) -> Finding:
    """Whether twice the steps change nothing, and whether the published steps can cross the ball at all."""
    name, doubled = f"{norm}/pgd-published", f"{norm}/double-steps"
    if not (record.ran(name) and record.ran(doubled)):
        return skipped("converged", norm, "The suite did not run the published attack and one of twice its steps.")
    if (told := nobody_met("converged", record, norm, [name])) is not None:
        return told
    entry = record.entries[name]
    ratio = entry["path"] / entry["eps"]
    before, after = record.after(name, record.of[doubled]), record.after(doubled, record.of[name])
    fall, status = points(before, after), status_of_gap(before, after)
    status = WARN if status == OK and ratio < 2 else status
    return Finding(
        code="converged",
        norm=norm,
        status=status,
        sentence=f"Doubling the published steps takes accuracy from {before.percent:.2f} to {after.percent:.2f} % "
        f"(n = {before.n}); its path is {ratio:.2f} radii long.",
        advice="" if status == OK else "Use more or larger steps before believing the published column.",
        numbers={
            "before": before.as_json(),
            "after": after.as_json(),
            "fall_points": fall,
            "path_over_radius": ratio,
        },
    )


def ascent(record: Record, norm: str) -> Finding:
    """Examples on which the published attack ends at a lower loss than it began with; more than 1 % fail.

    An attack climbs the loss. Where gradients tell the truth next to none ends lower, so this needs no other attack.
    It fails too where a loss above zero does not move at all on more than 10 %. (One of zero may move below what a
    float tells.)
    """
    name = f"{norm}/pgd-published"
    rows = [row for row in record.of.get(name, {}).values() if row.loss_start is not None and row.loss_end is not None]
    if (told := nobody_met("ascent", record, norm, [name])) is not None:
        return told
    if not rows and record.of.get(name):
        return Finding(
            code="ascent",
            norm=norm,
            status=FAIL,
            sentence="The published attack never met a loss that is a number.",
            advice="The logits are NaN or infinite where it walks, and no attack can climb them: mend the model.",
        )
    if not rows:
        return skipped("ascent", norm, "The suite did not run the published attack.")
    lower = Share(sum(row.loss_end < row.loss_start for row in rows), len(rows))  # type: ignore[operator]
    still = Share(sum(row.loss_end == row.loss_start != 0 for row in rows), len(rows))
    sentence = f"On {lower.count} of {lower.n} examples the published attack ends at a lower loss than it began at"
    advice = "The gradient it follows points down: it is masked, or its surrogate misleads." if lower.count else ""
    if stuck := still.percent > 10:
        sentence += f", and on {still.count} the loss does not move"
        advice = "No step changes the loss: the gradient is cut off or rounded away, so attack through another one."
    return Finding(
        code="ascent",
        norm=norm,
        status=FAIL if stuck or lower.percent > 1 else WARN if lower.count else OK,
        sentence=f"{sentence}.",
        advice=advice,
        numbers={"lower": lower.as_json(), "still": still.as_json()},
    )
