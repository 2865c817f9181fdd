"""From a case and a plan to a record: lock, header, judge, merge."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation import ledger as ledgers
from linocut.evaluation.case import Case, at_rest, decide, unit
from linocut.evaluation.closeness import are_alike, is_close
from linocut.evaluation.entry import Entry
from linocut.evaluation.judge import Judge, Watch
from linocut.evaluation.lock import only_writer
from linocut.evaluation.record import Record
from linocut.evaluation.sample import Sample
from linocut.evaluation.workers import Workers

ALONE = Workers()
FEW = 4  # images whose logits a header keeps


def evaluate(
    case: Case,
    plan: Sequence[Entry],
    sample: Sample,
    folder: Path,
    *,
    radii: dict[str, float],
    settings: dict[str, Any],
    card: dict[str, Any] | None = None,
    repeat: Sequence[str] | None = None,
    watch: Watch = lambda *_: None,
    workers: Workers = ALONE,
) -> Record:
    """The record of the plan over the sample, written in the folder; what is there already is not done again.

    `radii` is the judged radius of each norm; `settings` is whatever else a resumed run must repeat (model and
    data hashes, names); `card` is the model's, as its file holds it, where it has one; `repeat` is what
    follows `linocut` in a command that asks for the same. Several workers give the same rows as one, in the same
    order, milliseconds aside.
    """
    values = case.images.pixels[0].numel()
    settings = settings | {
        "radii": radii,
        "dimensions": values,
        "n": sample.n,
        "size": sample.size,
        "batch_size": sample.batch_size,
        "seed": sample.seed,
        "classes": list(case.images.classes),
    }
    entries = {entry.name: entry.described() for entry in plan}
    header = headers.make(settings, entries, card, repeat, device=case.device, answers=answers(case, sample))
    with contextlib.ExitStack() as stack:

        def settle() -> dict[str, Any]:
            headers.require_open(folder)
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as reason:
                raise InputError(f"--out {folder} cannot be a folder ({reason.strerror}): name another") from reason
            stack.enter_context(only_writer(folder))
            return headers.settle(folder, header, lambda held: require_same_answers(case, folder, sample, held, header))

        workers.first_does(settle)
        stack.enter_context(at_rest(case.model, case.raw, case.searcher, case.twin))
        ledger = ledgers.Ledger(folder, workers.rank)
        workers.wait()  # every worker has read the parts before the first one grows
        Judge(case, plan, sample, ledger, radii).run(sample.batches(workers.rank, workers.count), watch)
        require_steady(case, sample, header["made_with"]["answers"])
        workers.wait()
        merged = ledgers.merge(folder) if workers.rank == 0 else None
        workers.wait()
        return Record.read(folder) if merged is None else Record(headers.read(folder), merged)


def answers(case: Case, sample: Sample) -> list[list[float]]:
    """The logits of the first few images; 0 stands for what is no number or infinite."""
    pixels, _ = case.pixels(sample.order[:FEW])
    with at_rest(case.model):
        _, logits = decide(case.model, unit(pixels))
    return [[float(f"{score:.12g}") for score in scores] for scores in logits.nan_to_num(0.0, 0.0, 0.0).tolist()]


def require_steady(case: Case, sample: Sample, before: list[list[float]]) -> None:
    """Nothing, or an error where the model says at the end what it did not say at the beginning."""
    if not are_alike(before, answers(case, sample)):
        raise InputError(
            "the model gives the first images other logits than before it was attacked: it keeps something between "
            "calls, so that no claim about it could be repeated; let it answer each image by itself"
        )


def require_same_answers(
    case: Case, folder: Path, sample: Sample, held: dict[str, Any], header: dict[str, Any]
) -> None:
    """Nothing, or an error where the model says of the first images what it did not say when the ledger was begun.

    A function's hash knows nothing of what the function does. Nor do classes know of a temperature: logits do.
    """
    examples = sample.batches()[0].examples
    pixels, _ = case.pixels(examples)
    with at_rest(case.model):
        guesses, logits = decide(case.model, unit(pixels))
    clean = {row.example: row.prediction for row in ledgers.read_rows(folder) if row.entry == "clean"}
    for example, guess, scores in zip(examples, guesses.tolist(), logits, strict=True):
        before = clean.get(example, guess)
        if guess != before and not is_close(scores, guess, before):
            raise InputError(
                f"{folder} was made with a model that took example {example} for class {before}, "
                f"this one takes it for {guess}: name the old one to go on, or give another --out folder"
            )
    if not are_alike(held["made_with"].get("answers"), header["made_with"]["answers"]):
        raise InputError(
            f"{folder} was made with a model that gave other logits: name the old one to go on, or give another "
            "--out folder"
        )
