"""One entry on one batch: runs it, lets the model decide what is broken, keeps the images, returns the rows."""

import time
from pathlib import Path
from typing import cast

import torch

from linocut.attacks.attack import Attack, Result
from linocut.attacks.dice import Dice, example_seed
from linocut.attacks.hooks import NotApplicable
from linocut.attacks.threat import ThreatModel
from linocut.attacks.whole_levels import in_whole_levels
from linocut.errors import InputError
from linocut.evaluation import figures, shards
from linocut.evaluation.balls import holds
from linocut.evaluation.case import Case, Model, predict, unit
from linocut.evaluation.entry import Entry
from linocut.evaluation.rounding import predict_rounded
from linocut.evaluation.rows import Row
from linocut.evaluation.sample import Batch, Sample

Lost = dict[str, dict[int, str | None]]  # norm -> example -> the entry that broke it, None if it was never right


def counts(entry: Entry, radii: dict[str, float]) -> bool:
    """Whether a success of this entry lies inside the judged ball."""
    return entry.threat is not None and entry.threat.eps <= radii[entry.threat.norm]


class Trial:
    """Runs entries for a judge; `clean` are the clean predictions that the judge has seen so far."""

    def __init__(self, case: Case, sample: Sample, folder: Path, radii: dict[str, float]):
        self.case, self.sample, self.folder, self.radii = case, sample, folder, radii
        self.clean: dict[int, int] = {}

    def rows(self, entry: Entry, batch: Batch, examples: list[int], lost: Lost) -> list[Row]:
        """Runs one entry on some examples of a batch."""
        if not examples:
            return []
        started = time.perf_counter()
        pixels, labels = self.case.pixels(examples)
        if entry.column == "clean":
            rows = self._look(entry, batch, examples, pixels, labels)
        elif entry.column == "measure":
            rows = self._measure(entry, examples, pixels, labels)
        else:
            rows = self._attack_the_right(entry, batch, examples, unit(pixels), labels, lost)
        each = 1000 * (time.perf_counter() - started) / len(rows)
        return [Row(**row, milliseconds=round(each, 3)) for row in rows]

    def _basics(self, entry: Entry, example: int, label: int) -> dict:
        return {
            "example": example,
            "label": label,
            "entry": entry.name,
            "config": entry.config,
            "seed": example_seed(self.sample.seed, example, entry.name),
            "clean": self.clean.get(example, -1),
            "prediction": self.clean.get(example, -1),
        }

    def _look(self, entry: Entry, batch: Batch, examples: list[int], pixels, labels) -> list[dict]:
        """The clean predictions; the natural images are kept, so that the ledger can be checked without the data."""
        guesses = predict(self.case.model, unit(pixels)).tolist()
        kept = {"example": torch.tensor(examples), "label": labels, "pixels": pixels}
        shards.write(shards.path_of(self.folder, "images", "natural", batch.number), kept)
        self._keep_figures(entry, batch, examples, unit(pixels), None)
        return [
            self._basics(entry, example, label) | {"clean": guess, "prediction": guess}
            for example, label, guess in zip(examples, labels.tolist(), guesses, strict=True)
        ]

    def _measure(self, entry: Entry, examples: list[int], pixels, labels) -> list[dict]:
        values = entry.attack.measure(self.case, pixels, labels).tolist()  # type: ignore[union-attr]
        return [
            self._basics(entry, example, label) | {"measure": value}
            for example, label, value in zip(examples, labels.tolist(), values, strict=True)
        ]

    def _attack_the_right(self, entry: Entry, batch: Batch, examples: list[int], natural, labels, lost) -> list[dict]:
        """Rows for all; an example that is misclassified with no attack at all is not attacked."""
        rows = [self._basics(entry, e, label) for e, label in zip(examples, labels.tolist(), strict=True)]
        right = [i for i, row in enumerate(rows) if self.clean.get(row["example"], row["label"]) == row["label"]]
        if not right:
            return rows
        index = torch.tensor(right, device=labels.device)
        found = self._attack(entry, batch, [examples[i] for i in right], natural[index], labels[index], lost)
        for i, row in zip(right, found, strict=True):
            rows[i] = row
        return rows if found[0].get("applicable", True) else [row | {"applicable": False} for row in rows]

    def _attack(self, entry: Entry, batch: Batch, examples: list[int], natural, labels, lost: Lost) -> list[dict]:
        attack, threat = cast(Attack, entry.attack), cast(ThreatModel, entry.threat)
        rows = [self._basics(entry, e, label) for e, label in zip(examples, labels.tolist(), strict=True)]
        dice = Dice(torch.tensor([row["seed"] for row in rows], dtype=torch.int64, device=natural.device))
        starts = self._starts(entry, batch, examples, lost).to(natural.device) if entry.starts else None
        try:
            result, prediction = self._search(attack, natural, labels, threat, dice, starts)
        except NotApplicable:
            return [row | {"applicable": False} for row in rows]
        self._require_inside(entry, result, natural)
        if entry.column == "worst":
            result, prediction = self._in_whole_levels_too(result, prediction, natural, labels, threat)
        candidates = (prediction != labels).nonzero().squeeze(1)
        found = self._columns(entry, result, natural, labels, candidates)
        for row, *values in zip(rows, *found.values(), strict=True):
            row.update(zip(found, values, strict=True))
        self._keep(entry, batch, rows, result, candidates.tolist(), lost)
        self._keep_figures(entry, batch, examples, result.images, result.trace)
        return rows

    def _search(
        self, attack: Attack, natural, labels, threat: ThreatModel, dice: Dice, starts
    ) -> tuple[Result, torch.Tensor]:
        """What the attack finds on the searcher, and the model's predictions for it.

        Where the model does not believe a find, the attack runs again on the model itself: a quicker copy may see an
        example as broken at its first step and so never really attack it.
        """
        result = _run(attack, self.case.searcher, natural, labels, threat, dice, starts)
        prediction = predict(self.case.model, result.images)
        rows = (result.broken & (prediction == labels)).nonzero().squeeze(1)
        if self.case.searcher is self.case.model or len(rows) == 0:
            return result, prediction
        some = None if starts is None else starts[rows]
        true = getattr(self.case.searcher, "true", self.case.model)  # the model, its passes recorded where that helps
        again = _run(attack, true, natural[rows], labels[rows], threat, dice.select(rows), some)
        result = Result(
            *(
                None if old is None or new is None else old.index_copy(0, rows, new)
                for old, new in zip(result, again, strict=True)
            )  # type: ignore[arg-type]
        )
        return result, prediction.index_copy(0, rows, predict(self.case.model, again.images))

    def _in_whole_levels_too(
        self, result: Result, prediction: torch.Tensor, natural, labels, threat: ThreatModel
    ) -> tuple[Result, torch.Tensor]:
        """The same, but where an image stands and falls once it is rounded to whole grey levels, the rounded one.

        A defence may be strong between the levels, where attacks walk, and weak on them, where pictures lie.
        """
        standing = (prediction == labels).nonzero().squeeze(1)
        if len(standing) == 0:
            return result, prediction
        levels = in_whole_levels(result.images[standing], natural[standing], threat)
        guess = predict(self.case.model, levels)
        fell = (guess != labels[standing]) & holds(threat, levels, natural[standing])
        rows = standing[fell]
        images = result.images.index_copy(0, rows, levels[fell])
        return result._replace(images=images), prediction.index_copy(0, rows, guess[fell])

    def _require_inside(self, entry: Entry, result: Result, natural: torch.Tensor) -> None:
        assert entry.threat is not None
        if not bool(holds(entry.threat, result.images, natural).all()):
            gone = float(entry.threat.distance(result.images.double(), natural.double()).max())
            raise InputError(
                f"{entry.name} returned images outside its ball: distance {gone:.8g}, eps {entry.threat.eps:.8g}, "
                f"values up to {float(result.images.abs().max()):.4g}; an attack must project what it returns"
            )

    def _columns(self, entry: Entry, result: Result, natural, labels, candidates: torch.Tensor) -> dict[str, list]:
        """What an attack's rows say. The model decides what is broken, whatever the attack says.

        It looks twice, the second time at the broken ones alone, which is the batch that is kept and replayed:
        a point on the very edge, where batch mates sway the last bits, must be wrong both times.
        """
        assert entry.threat is not None
        prediction, quantised = labels.clone(), torch.full_like(labels, -1)
        if len(candidates):
            found = result.images[candidates]
            prediction[candidates] = predict(self.case.model, found)
            quantised[candidates] = predict_rounded(
                self.case.model, found, natural[candidates], labels[candidates], entry.threat
            )
        broken = prediction != labels
        return {
            "prediction": prediction.tolist(),
            "quantised": [q if b else None for q, b in zip(quantised.tolist(), broken.tolist(), strict=True)],
            "broken": broken.tolist(),
            "silent": ((result.silent | result.broken) & ~broken).tolist(),
            "loss_start": result.loss_start.double().tolist(),
            "loss_best": result.loss_best.double().tolist(),
            "loss_end": result.loss_end.double().tolist(),
            "distance": entry.threat.distance(result.images, natural).double().tolist(),
            "steps": result.steps.tolist(),
            "queries": result.queries.tolist(),
        }

    def _keep(
        self, entry: Entry, batch: Batch, rows: list[dict], result: Result, candidates: list[int], lost: Lost
    ) -> None:
        """Keeps the images of broken rows that count, but a probe's only where nothing broke the example before.

        One that breaks a fragile example in whole levels is kept too: nothing did that before.
        """
        in_levels = entry.starts == "fragile"
        if not (in_levels or counts(entry, self.radii)):
            return
        assert entry.threat is not None
        before = lost[entry.threat.norm]
        claimed = {
            i
            for i in candidates
            if rows[i]["broken"] and (in_levels or entry.column != "probe" or rows[i]["example"] not in before)
        }
        if not claimed:
            return
        images = result.images[torch.tensor(candidates, device=result.images.device)].detach().cpu()
        for i, image in zip(candidates, images, strict=True):
            if i in claimed:
                rows[i]["image"] = shards.digest(image)
        shard = {"example": torch.tensor([rows[i]["example"] for i in candidates]), "image": images}
        shards.write(shards.path_of(self.folder, "images", entry.name, batch.number), shard)

    def _keep_figures(self, entry: Entry, batch: Batch, examples: list[int], images, trace) -> None:
        shown = [i for i, example in enumerate(examples) if self.sample.position[example] < figures.SHOWN]
        if shown:
            index = torch.tensor(shown, device=images.device)
            shard = figures.of(self.case.model, images[index], None if trace is None else trace[index])
            shard["example"] = torch.tensor([examples[i] for i in shown])
            shards.write(shards.path_of(self.folder, "figures", entry.name, batch.number), shard)

    def _starts(self, entry: Entry, batch: Batch, examples: list[int], lost: Lost) -> torch.Tensor:
        """The adversarial images that broke these examples, in L-inf or in the entry's own norm."""
        assert entry.threat is not None
        norm = "linf" if entry.starts == "linf" else entry.threat.norm
        by_entry: dict[str, dict[int, torch.Tensor]] = {}
        found = []
        for example in examples:
            name = lost[norm][example]
            assert name is not None
            if name not in by_entry:
                by_entry[name] = shards.images_of(self.folder, name, batch.number)
            found.append(by_entry[name][example])
        return torch.stack(found)


def _run(
    attack: Attack, model: Model, natural: torch.Tensor, labels: torch.Tensor, threat: ThreatModel, dice: Dice, starts
) -> Result:
    """What the attack returns, of copies, so that one that works in place moves neither images nor labels."""
    result = attack.run(model, natural.clone(), labels.clone(), threat, dice, starts)
    if not isinstance(result, Result):
        raise InputError(
            f"{attack.name} returned a {type(result).__name__}: return a linocut.attacks.attack.Result of the batch"
        )
    got = tuple(result.images.shape), result.images.dtype
    if got != (tuple(natural.shape), natural.dtype):
        raise InputError(
            f"{attack.name} returned images {got[0]} of {got[1]}, wanted {tuple(natural.shape)} of {natural.dtype}: "
            "one for each image, in the same format"
        )
    if not bool(result.images.isfinite().all()):
        raise InputError(f"{attack.name} returned images that hold NaN or infinite values")
    return result
