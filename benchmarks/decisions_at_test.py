"""The decisions behind the transform, one changed at a time, before a network that was trained without it.

    python benchmarks/decisions_at_test.py docs/results/cifar-10/baseline/seed-0 --root DATA --count 250

On the first images of the row's ledger, in L-infinity: clean, the published PGD, and what 100 steps of the margin loss
and APGD on the DLR loss leave besides. A process for each core; some four minutes a setting of 250 images.
"""

import argparse
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import torch

from linocut.attacks import APGD, PGD, Attack, Dice
from linocut.attacks.dice import example_seed
from linocut.data import load as load_data
from linocut.evaluation.balls import balls
from linocut.evaluation.case import at_rest, predict, unit
from linocut.evaluation.record import Record
from linocut.models import Defended, load
from linocut.recipes.reproduce.tables import rows_of
from linocut.recipes.training.rows import row_named, transform_for
from linocut.transform import modules
from results import write_result


def judged(row: str, folder: Path, root: Path, count: int) -> dict:
    """The row's numbers, and which examples hold in the worst case."""
    torch.set_num_threads(1)
    settings = Record.read(folder / "ledger-strong").settings
    examples = list(islice(Record.read(folder / "ledger-strong").of["clean"], count))
    data, network = str(settings["data"]), load(folder / "model").model
    front = transform_for(row_named(row), data)
    transform = None if front is None else getattr(modules, front["class"])(**front["settings"])
    model = Defended(transform, network).eval()
    test, chosen = load_data(data, root, "test"), torch.tensor(examples)
    images, labels = unit(test.pixels[chosen]), test.labels[chosen]
    ball = balls(data, images[0].numel(), ("linf",))["linf"]
    attacks: list[Attack] = [
        PGD(num_steps=ball.num_steps, step_size=ball.step_size),
        PGD(name="pgd-margin-2", num_steps=100, path_ratio=5.0, loss="margin", any_iterate=True),
        APGD(name="apgd-dlr", loss="dlr"),
    ]
    with at_rest(model):
        held = torch.cat([predict(model, part) for part in images.split(100)]) == labels
        left = [int(held.sum())]
        for attack in attacks:
            rows = held.nonzero().squeeze(1)
            dice = Dice(
                torch.tensor([example_seed(0, examples[i], attack.name) for i in rows.tolist()], dtype=torch.int64)
            )
            held[rows] &= ~attack.run(model, images[rows], labels[rows], ball.threat, dice).broken
            left.append(int(held.sum()))
    print(row, left, flush=True)
    standing = [example for example, holds in zip(examples, held.tolist(), strict=True) if holds]
    return {"row": row, "clean": left[0], "as published": left[1], "worst": left[-1], "standing": standing}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the network that was trained without a transform")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--count", type=int, default=250)
    told = parser.parse_args()
    rows = [row.replace("-retrained", "-pretrained") for row in rows_of("decisions", told.folder.parts[-3])]
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(partial(judged, folder=told.folder, root=told.root, count=told.count), rows))
    usual = set(next(one["standing"] for one in found if one["row"] == "acab-pretrained"))
    for one in found:
        standing = set(one.pop("standing"))
        one |= {"only with it": len(standing - usual), "only as usual": len(usual - standing)}
    print(write_result(f"decisions-at-test-{told.folder.parts[-3]}", {"count": told.count, "found": found}))


if __name__ == "__main__":
    main()
