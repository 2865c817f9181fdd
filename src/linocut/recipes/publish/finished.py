"""What of a reproduction's folder is done, by its stamps, and what is not."""

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.models.store import read_card
from linocut.recipes.publish.catalogue import data_set_of
from linocut.recipes.reproduce import plan_file, stamps
from linocut.recipes.reproduce.step import digest
from linocut.recipes.reproduce.work import Work
from linocut.training.config import TrainingConfig

LEDGER = "ledger-"


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A work whose every judgement is done.

    ledgers: the names of their folders, in the order of judgements; networks: its own place and its twin's;
    hashes: of what each of its steps made.
    """

    work: Work
    ledgers: tuple[str, ...]
    networks: tuple[str, ...]
    hashes: dict[str, str]


class Stock:
    """A reproduction's folder, read through its plan and its stamps; files are hashed, nothing is run."""

    def __init__(self, out: Path):
        self.out = out
        try:
            plan = json.loads((out / plan_file.NAME).read_bytes())
            self.steps = {step["name"]: step for step in plan["steps"]}
            self.notes: list[str] = plan["notes"]
        except (OSError, ValueError, LookupError, TypeError) as reason:
            raise InputError(
                f"{out} holds no reproduction ({plan_file.NAME}: {reason}): run `linocut reproduce`"
            ) from None
        self.works = _by_place(self.steps)
        self._hashes: dict[str, str | None] = {}

    def finished(self) -> list[Finished]:
        """The works that are done."""
        return [self._finished(place, names) for place, names in self.works.items() if not self._left(place, names)]

    def open(self) -> dict[str, dict[str, Any]]:
        """The works that are not, each with the steps that are left and the seconds the plan gives them, if it does."""
        found = {}
        for place, names in self.works.items():
            left = self._left(place, names)
            if left:
                seconds = [self.steps.get(name, {}).get("seconds") for name in left]
                known = [each for each in seconds if each is not None]
                found[place] = {"steps": left, "seconds": round(sum(known), 1) if known else None}
        return found

    def hash_of(self, name: str) -> str | None:
        """One hash over all files that a step made; None unless it is done and they are as its stamp says."""
        if name not in self._hashes:
            made = stamps.read_at(self.out / f"{name}.stamp.json").get("outputs")
            piece = self.out / (f"{name}.json" if name.endswith("/codebook") else name)
            intact = made is not None and made == stamps.hashes([piece], self.out)
            self._hashes[name] = digest(made) if intact else None
        return self._hashes[name]

    def _left(self, place: str, names: list[str]) -> list[str]:
        """The steps of a work that are not done; a ledger of another network than the one that lies there is not."""
        networks = [f"{network}/model" for network in self._networks(place, names)]
        left = [step for step in (*networks, *names) if self.hash_of(step) is None]
        if networks[0] in left:
            return [*left, *(name for name in names if name not in left)]
        card = json.loads(read_card(self.out / place / "model").to_json())
        others = (name for name in names if name not in left and self._header(name)["made_with"]["card"] != card)
        return [*left, *others]

    def _networks(self, place: str, names: list[str]) -> list[str]:
        """The places of the networks that a work stands on: its own, and its twin's."""
        done = [name for name in names if self.hash_of(name) is not None]
        twins = sorted({self._header(name)["settings"]["twin"] for name in done} - {None})
        return list(dict.fromkeys([place, *("/".join(Path(twin).parts[-4:-1]) for twin in twins)]))

    def _header(self, name: str) -> dict[str, Any]:
        return headers.read(self.out / name)

    def _finished(self, place: str, names: list[str]) -> Finished:
        data_set, networks = data_set_of(place), self._networks(place, names)
        note = next((note for note in self.notes if note.startswith(f"{data_set}: ")), "")
        steps = [*(f"{network}/model" for network in networks), *names]
        return Finished(
            work=work_at(self.out, place, note.removeprefix(f"{data_set}: ")),
            ledgers=tuple(name.rpartition("/")[2] for name in names),
            networks=tuple(networks),
            hashes={step: str(self.hash_of(step)) for step in steps},
        )


def work_at(folder: Path, place: str, note: str) -> Work:
    """The work of a place below a folder, its config from the card of its network."""
    data_set, row, _ = place.split("/")
    recipe = read_card(folder / place / "model").card.recipe
    known = {field.name for field in dataclasses.fields(TrainingConfig)}
    config = TrainingConfig.from_json({name: value for name, value in recipe.items() if name in known})
    return Work(data_set=data_set, row=row, config=config, judgements=(), note=note)


def _by_place(names: Iterable[str]) -> dict[str, list[str]]:
    """The names of ledgers, by the place of their work, in their order."""
    found: dict[str, list[str]] = {}
    for name in names:
        place, _, last = name.rpartition("/")
        if last.startswith(LEDGER):
            found.setdefault(place, []).append(name)
    return found
