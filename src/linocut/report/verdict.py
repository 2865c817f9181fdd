"""What ledgers come down to, in plain sentences; every number in them is that of their records."""

from collections.abc import Mapping, Sequence

from linocut.evaluation.findings import FAIL
from linocut.evaluation.record import Share
from linocut.report.accuracy import Line
from linocut.report.judged import Judged, together
from linocut.report.sources import Subject
from linocut.report.twins import against_twins, differ, pairs
from linocut.report.words import NORMS, told_apart

LITTLE = 2.0  # points; below that the published attack counts as as strong as all others together
COARSE = 5.0  # points to either side; an interval wider than that is mentioned


def of_one(subject: Subject) -> list[str]:
    """The verdict on one ledger: a sentence a norm, then what limits it."""
    record = subject.record
    if not record.clean.n:
        return ["This run has judged no example yet."]
    if not record.clean.count:
        return [
            f"None of the {record.clean.n} images is classified rightly even without an attack, so nothing was "
            "attacked: check labels, value range and normalisation first."
        ]
    if subject.unfinished:
        return _so_far(subject)
    failed = sorted({finding.code for finding in subject.findings if finding.status == FAIL})
    return [*(_of_norm(subject, norm) for norm in record.norms), *_limits(subject, failed)]


def of_many(subjects: Sequence[Subject]) -> list[str]:
    """The verdict on several ledgers: on the one model that all are about; defended against undefended where both are
    there; else the best worst cases.
    """
    models = [model for model in together(subjects) if not model.unfinished]
    short = dict(zip(names := [model.name for model in models], told_apart(names), strict=True))
    matched = pairs(models)
    images = {model.longest.sample for model in models}
    suites = {model.longest.record.settings["suite"] for model in models}  # a shorter one leaves more standing
    if matched:
        sentences = against_twins(matched, short)
    elif len(models) == 1:
        sentences = _of_model(models[0])
    elif len(images) == len(suites) == 1:
        sentences = [_best(models, norm, short) for norm in models[0].norms]
    else:
        sentences = [f"{len(subjects)} ledgers, of which no two can be compared."]
    if len(images) > 1:
        sentences.append("The ledgers judge different images or radii: compare lines of one data set only.")
    elif len(suites) > 1:
        sentences.append(f"The suites differ ({', '.join(sorted(suites))}): compare lines of one suite only.")
    waiting = sum(subject.unfinished for subject in subjects)
    if waiting:
        sentences.append(f"{waiting} of {len(subjects)} runs {'is' if waiting == 1 else 'are'} unfinished.")
    return sentences


def _of_model(model: Judged) -> list[str]:
    """The verdict on one model by all its ledgers; published and worst are compared on the images of the longest."""
    told = of_one(model.longest)
    if len(model.ledgers) == 1 or not model.longest.record.clean.count:
        return told
    lines = []
    for norm in model.norms:
        published, worst = model.longest.headline(norm)[0], model.headline(norm)[2]
        line = _in_words(norm, published, worst, "the worst case of all ledgers")
        if model.longest.n < model.n:  # the table has the published figure of all
            line = f"Of the {model.longest.n:,} images that met every attack: {line[0].lower()}{line[1:]}"
        lines.append(line)
    return [*lines, *_limits(model.longest, model.failed)]


def _of_norm(subject: Subject, norm: str) -> str:
    published, same, worst = subject.headline(norm)
    where = f"on the same {same.share.n} images the worst case" if same else "the worst case"
    if same is None and worst is not None and worst.share.n < subject.n:
        where = f"on the {worst.share.n} images that met every attack the worst case"
    return _in_words(norm, published, same or worst, where, alone=_was_alone(subject, norm))


def _was_alone(subject: Subject, norm: str) -> bool:
    """Whether nothing but the published attack met all images: in `paper` the rest is run on a few hundred."""
    entries = [subject.record.entries[name] for name in subject.record.counting(norm)]
    return not any(entry["column"] == "worst" and entry["kind"] != "reuse" for entry in entries)


def _in_words(norm: str, published: Line | None, worst: Line | None, where: str, *, alone: bool = False) -> str:
    name = NORMS[norm]
    if worst is None:
        return f"In {name} nothing has been judged yet."
    if published is None:
        return f"The worst case in {name} leaves {_percent(worst)}; no published attack was run."
    told = f"As published {_percent(published)} hold in {name}; {where} leaves {_percent(worst)}"
    if alone and 0 < worst.share.count and published.share.percent - worst.share.percent <= LITTLE:
        return f"{told}: most images met no other attack, so a longer suite may leave less."
    return f"{told}: {_judgement(published.share, worst.share)}."


def _so_far(subject: Subject) -> list[str]:
    """What an unfinished run has: figures without a judgement, since what has not run may change it."""
    record = subject.record
    told = [
        f"In {NORMS[norm]} at most {record.worst(norm).percent:.{record.clean.decimals}f} % hold in the worst case."
        for norm in record.norms
    ]
    return [
        f"Unfinished: {record.clean.n} of {record.settings.get('n')} examples have been looked at, "
        "and not every attack has run on them.",
        *told,
        "What stands so far can only fall: run the same command again to go on.",
    ]


def _judgement(published: Share, worst: Share) -> str:
    gap = published.percent - worst.percent
    if published.count == 0:
        return "nothing holds, and the published attack already shows it"
    if worst.count == 0:
        shown = (
            "the published attack nearly shows it" if gap <= LITTLE else "the published figure is the attack's weakness"
        )
        return f"nothing holds, and {shown}"
    if gap <= LITTLE:
        return "the published attack is about as strong as everything else that was tried"
    if gap > published.percent / 2:
        return "most of the published figure is the attack's weakness"
    return "part of the published figure is the attack's weakness"


def _limits(subject: Subject, failed: Sequence[str]) -> list[str]:
    record, told = subject.record, []
    if failed:
        checks = "1 check fails" if len(failed) == 1 else f"{len(failed)} checks fail"
        told.append(f"{checks} ({', '.join(failed)}): take the worst case as an upper bound.")
    margins = [(high - low) / 2 for low, high in (record.worst(norm).interval for norm in record.norms)]
    if max(margins) > COARSE:
        told.append(f"With n = {record.clean.n} a figure is known to about ±{max(margins):.0f} points.")
    if record.settings["suite"] == "fast":
        told.append("The suite “fast” is a quick look; “strong” tries more.")
    return told


def _best(models: Sequence[Judged], norm: str, short: Mapping[str, str]) -> str:
    found = [(model, line) for model in models if (line := model.headline(norm)[2])]
    found.sort(key=lambda each: each[1].share.percent, reverse=True)
    (first, best), *others = found
    told = f"In {NORMS[norm]} {short[first.name]} keeps the most in the worst case, {_percent(best)}"
    close = sum(not differ(first.standing(norm), model.standing(norm)) for model, _ in others)
    if close:
        told += f"; {close} other{'s keep' if close > 1 else ' keeps'} not clearly less"
    if first.failed:
        told += f", an upper bound, since its checks fail ({', '.join(first.failed)})"
    return f"{told}."


def _percent(line: Line) -> str:
    return f"{line.share.percent:.{line.share.decimals}f} %"
