"""Whether the images that stand in published results stand under longer attacks too.

    python benchmarks/standing.py docs/results/gtsrb/ROW/seed-0 [...] --root DATA --norm l2

For each row's folder (model, ledger-paper and ledger-strong): the test images that nothing in its ledgers broke in this
norm, then one attack after the other on those that are left: past the transform and from there through it, through it
from a random start, and two restarts. A process for each row; some 20 seconds an image of 32x32 on a core.
"""

import argparse
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

import torch

from linocut.attacks import APGD, PGD, Attack, Continued, Dice, NotApplicable, ThreatModel, TransferPGD
from linocut.attacks.dice import example_seed
from linocut.data import load as load_data
from linocut.evaluation.case import at_rest, unit
from linocut.evaluation.record import Record
from linocut.models import load
from linocut.recipes.reproduce.overview import worst
from results import write_result

LONG = {"num_steps": 300, "path_ratio": 15.0, "any_iterate": True}
ATTACKS: list[Attack] = [
    Continued(
        first=TransferPGD(name="undefended-300", loss="margin", **LONG),  # type: ignore[arg-type]
        second=PGD(name="pgd-margin-100", num_steps=100, loss="margin", any_iterate=True),
    ),
    PGD(name="pgd-margin-300", loss="margin", random_start=True, **LONG),  # type: ignore[arg-type]
    APGD(name="apgd-dlr-restart", loss="dlr"),
    APGD(name="apgd-ce-restart"),
]


def standing(folder: Path, norm: str, root: Path) -> dict:
    """How many of the standing images fall to each attack in turn, and which are left."""
    torch.set_num_threads(1)
    records = [Record.read(folder / f"ledger-{suite}") for suite in ("paper", "strong")]
    examples, left = worst(records, norm)
    model, images = load(folder / "model"), load_data(str(records[-1].settings["data"]), root, "test")
    threat, began, fell = ThreatModel(norm, records[-1].norms[norm]), time.monotonic(), {}
    rows = sorted(left)
    for attack in ATTACKS:
        chosen = torch.tensor(rows, dtype=torch.int64)
        dice = Dice(torch.tensor([example_seed(1, example, attack.name) for example in rows], dtype=torch.int64))
        with at_rest(model), suppress(NotApplicable):  # a network without a transform has none to go past
            result = attack.run(model, unit(images.pixels[chosen]), images.labels[chosen], threat, dice)
            fell[attack.name] = int(result.broken.sum())
            rows = chosen[~result.broken].tolist()
            print(folder, norm, attack.name, f"{fell[attack.name]} of {len(chosen)}", flush=True)
    seconds = round(time.monotonic() - began)
    return {"row": str(folder), "norm": norm, "n": len(examples), "stood": len(left), "fell": fell} | {
        "left": rows,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--norm", default="l2")
    told = parser.parse_args()
    name = f"standing-{told.folders[0].absolute().parents[1].name}-{told.norm}"
    found: dict[Path, dict] = {}
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        under_way = {pool.submit(standing, folder, told.norm, told.root): folder for folder in told.folders}
        for done in as_completed(under_way):  # written after each row: a run that is stopped keeps those that are done
            found[under_way[done]] = done.result()
            content = {
                "attacks": [repr(attack) for attack in ATTACKS],
                "found": [found[folder] for folder in told.folders if folder in found],
                "missing": [str(folder) for folder in told.folders if folder not in found],
            }
            print(write_result(name, content))


if __name__ == "__main__":
    main()
