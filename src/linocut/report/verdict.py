"""What a ledger comes down to, in plain sentences; every number in them is the record's."""

from collections.abc import Sequence
from itertools import pairwise

from linocut.evaluation.findings import FAIL
from linocut.evaluation.record import Share
from linocut.report.accuracy import Line
from linocut.report.judged import Judged, together
from linocut.report.sources import Subject
from linocut.report.twins import against_twins, pairs
from linocut.report.words import NORMS

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
    return [*(_of_norm(subject, norm) for norm in record.norms), *_limits(subject)]


def of_many(subjects: Sequence[Subject]) -> list[str]:
    """The verdict on several ledgers: defended against undefended where both are there, else the best worst cases."""
    done = [subject for subject in subjects if not subject.unfinished]
    models = together(done)
    alike = len({model.sample for model in models}) == 1
    suites = {model.suite for model in models}  # a shorter one leaves more standing
    matched = pairs(models)
    if matched:
        sentences = against_twins(matched)
    elif len(models) == 1:
        sentences = [*(_of_norm(models[0], norm) for norm in models[0].norms), *_limits(models[0].longest)]
    elif alike and models and len(suites) == 1:
        sentences = [_best(models, norm) for norm in models[0].norms]
    else:
        sentences = [f"{len(subjects)} ledgers, of which no two can be compared."]
    if models and not alike:
        sentences.append("The ledgers judge different images or radii: compare lines of one data set only.")
    elif len(suites) > 1:
        sentences.append(f"The suites differ ({', '.join(sorted(suites))}): compare lines of one suite only.")
    waiting = len(subjects) - len(done)
    if waiting:
        sentences.append(f"{waiting} of {len(subjects)} runs {'is' if waiting == 1 else 'are'} unfinished.")
    return sentences


def _of_norm(judged: Subject | Judged, norm: str) -> str:
    published, same, worst = judged.headline(norm)
    name = NORMS[norm]
    if worst is None:
        return f"In {name} nothing has been judged yet."
    if published is None:
        return f"The worst case in {name} leaves {_percent(worst)}; no published attack was run."
    where = f"on the same {same.share.n} images the worst case" if same else "the worst case"
    if same is None and worst.share.n < judged.n:
        where = f"on the {worst.share.n} images that met every attack the worst case"
    told = f"As published {_percent(published)} hold in {name}; {where} leaves {_percent(same or worst)}"
    return f"{told}: {_judgement(published.share, (same or worst).share)}."


def _so_far(subject: Subject) -> list[str]:
    """What an unfinished run has: figures without a judgement, since what has not run may change it."""
    record = subject.record
    told = [
        f"In {NORMS[norm]} at most {record.worst(norm).percent:.1f} % hold in the worst case." for norm in record.norms
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


def _limits(subject: Subject) -> list[str]:
    record, told = subject.record, []
    failed = sorted({finding.code for finding in subject.findings if finding.status == FAIL})
    if failed:
        checks = "1 check fails" if len(failed) == 1 else f"{len(failed)} checks fail"
        told.append(f"{checks} ({', '.join(failed)}): take the worst case as an upper bound.")
    margins = [(high - low) / 2 for low, high in (record.worst(norm).interval for norm in record.norms)]
    if max(margins) > COARSE:
        told.append(f"With n = {record.clean.n} a figure is known to about ±{max(margins):.0f} points.")
    if record.settings["suite"] == "fast":
        told.append("The suite “fast” is a quick look; “strong” tries more.")
    return told


def _best(models: Sequence[Judged], norm: str) -> str:
    ranked = sorted(models, key=lambda model: model.worst[norm].share.percent, reverse=True)
    shares = [model.worst[norm].share for model in ranked]
    tie = any(first.percent == second.percent for first, second in pairwise(shares[:2]))
    told = f"In {NORMS[norm]} {ranked[0].name} keeps the most in the worst case, {shares[0].percent:.1f} %"
    return told + (", and is not alone in it." if tie else ".")


def _percent(line: Line) -> str:
    return f"{line.share.percent:.1f} %"
