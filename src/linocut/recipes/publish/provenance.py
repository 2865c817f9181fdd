"""A page that says of every number which ledger it came from, how to check it and how to repeat it."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from linocut.evaluation.record import Record
from linocut.models.store import read_card
from linocut.recipes.publish.parcels import VERIFICATION
from linocut.recipes.reproduce import overview
from linocut.recipes.reproduce.work import Work
from linocut.report.words import rounded

NAME = "provenance.md"
HEAD = """# Where each number comes from
Of every network in the [overview](overview.md): its numbers, the ledgers that hold them, the log of their verification,
and commands. They are to be run from this folder; DATA is your folder of data sets, the other names in capitals are
new folders of your choice.

- `verify` replays the packed images with the network, in seconds on a CPU; `report` computes the numbers again from
  the ledgers and shows them.
- `train` makes the network anew, from the config that lies beside it; on a CPU add
  `--set precision=float32 --set compile=false`. `evaluate` repeats the attacks on the published network; put RUN/model
  in its place for the one made anew. Where weights are too large to be here, the commands name RUN/model already, and
  TWIN/model for that of its baseline.
- Without a GPU write `--device cpu` and leave `--precision` and `--compile` out. `--n 20 --batch-size 20` is a look at
  the first 20 images of the ledger in some minutes; a command that was stopped goes on when it is given again. The
  same seeds give the same random numbers; another machine may round otherwise.
"""


def provenance(results: Path, works: Sequence[Work], records: Mapping[str, Mapping[str, Record]]) -> str:
    """The page as Markdown; records: the ledgers of each work by its place, and among them by name."""
    return HEAD + "".join(_section(results, work, records[work.place]) for work in works)


def _section(results: Path, work: Work, ledgers: Mapping[str, Record]) -> str:
    saved = read_card(results / work.place / "model")
    there = (results / work.place / "model" / saved.weights_file).exists()
    absent = "" if there else " Its weights are too large to be here; the logs say what was confirmed beside them."
    card = _link("Card", f"{work.place}/model/card.json")
    places = [f"{work.place}/{name}" for name in ledgers]
    commands = [["verify", place] for place in places if there]
    commands += [["report", *places, "--out", "PAGE"], *_repeating(results, work, ledgers, there=there)]
    lines = [
        f"\n## {work.data_set}, {work.row}, seed {work.config.seed}",
        f"{card}: {work.config.architecture}, {_training(saved.card.recipe)}.{absent}",
        "",
        _numbers(list(ledgers.values())),
        "",
        "| numbers | ledger | images | claims confirmed by its maker | claims packed |",
        "|---|---|---|---|---|",
        *(_ledger(results, f"{work.place}/{name}", ledgers, name) for name in ledgers),
        "",
        "```",
        *(shlex.join(["linocut", *command]) for command in commands),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _numbers(judged: Sequence[Record]) -> str:
    """Each accuracy of one network in per cent."""
    found = overview.shares(judged)
    told = [
        f"{overview.COLUMNS[column]} **{rounded(share.percent, share.decimals)}**" for column, share in found.items()
    ]
    return ", ".join(told)


def _link(text: str, path: str) -> str:
    return f"[{text}]({quote(path, safe='/+=@,')})"


def _training(recipe: Mapping[str, Any]) -> str:
    """By what and on what a network was trained."""
    base = recipe.get("network_of")
    if base is None:
        return f"trained by {recipe.get('recipe')} on {recipe.get('device')}"
    return f"the network of {base}, with the transform put before it (as `linocut reproduce` does)"


def _ledger(results: Path, place: str, ledgers: Mapping[str, Record], name: str) -> str:
    """One line of a work's table: clean and published figures are the first ledger's, the worst case is of all."""
    numbers = "clean, as published, worst case" if name == next(iter(ledgers)) else "worst case"
    try:
        log = json.loads((results / place / VERIFICATION).read_bytes())
        confirmed = _link(f"{log['confirmed']} of {log['claims']}", f"{place}/{VERIFICATION}")
        packed = log["packed"]["claims"]
    except (OSError, ValueError, LookupError, TypeError):
        confirmed = packed = "not recorded"
    images = ledgers[name].settings["n"]
    return f"| {numbers} | {_link(name, f'{place}/header.json')} | {images} | {confirmed} | {packed} |"


def _repeating(results: Path, work: Work, ledgers: Mapping[str, Record], *, there: bool) -> Iterator[list[str]]:
    """The training, from the config that lies beside the network, and each evaluation.

    there: whether the weights are. Without them the network trained anew is judged; one whose transform came later is
    not made by training alone.
    """
    if (results / work.place / "config.json").exists():
        yield ["train", "--recipe", f"{work.place}/config.json", "--root", "DATA", "--out", "RUN"]
    for name, record in ledgers.items():
        words = record.made_with.get("repeat") or []
        if not there:
            words = [] if work.comes_later else _of_network_made_anew(words)
        if words:
            yield [*words, "--out", f"AGAIN/{name}"]


def _of_network_made_anew(words: Sequence[str]) -> list[str]:
    """The command with other networks: the one that was judged, and its twin."""
    networks = iter(("RUN/model", "TWIN/model"))
    return [next(networks) if word.endswith("/model") else word for word in words]
