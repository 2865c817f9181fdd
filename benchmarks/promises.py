"""Whether gradients keep their promise: what a short step along one changes, by what it says that it changes.

    python benchmarks/promises.py docs/results/cifar-10/baseline/seed-0 [...] --root DATA --write

On the first images of each row's ledger, at the natural image, along the sign of the margin's gradient through the
model (BPDA where there is a transform): real change over promised change for steps of a quarter of the L-infinity
radius and of the whole of it. 1 is a gradient that tells the truth, 0 one that says nothing, below 0 one that points
down. Ten seconds a row of 500 images on a core.
"""

import argparse
from itertools import islice
from pathlib import Path

import torch

from linocut.attacks.gradients import look, read
from linocut.attacks.losses import margin
from linocut.data import load as load_data
from linocut.evaluation.case import at_rest, unit
from linocut.evaluation.record import Record
from linocut.models import load
from results import write_result

STEPS = (0.25, 1.0)


def kept(folder: Path, root: Path, count: int) -> dict:
    """Median and quartiles of real over promised change, and how often a step goes down, for each length."""
    record, model = Record.read(folder / "ledger-strong"), load(folder / "model")
    test = load_data(str(record.settings["data"]), root, "test")
    chosen = torch.tensor(list(islice(record.of["clean"], count)))
    images, labels = unit(test.pixels[chosen]), test.labels[chosen]
    found: dict = {"row": "/".join(folder.parts[-4:]), "n": len(chosen), "steps": {}}
    with at_rest(model):
        here = read(model, images, labels, margin)
        along = here.gradient.sign()
        for share in STEPS:
            moved = (images + share * record.norms["linf"] * along).clamp(0, 1)
            promised = ((moved - images) * here.gradient).flatten(1).sum(dim=1)
            ratio = (look(model, moved, labels, margin)[0] - here.loss)[promised > 0] / promised[promised > 0]
            low, middle, high = ratio.quantile(torch.tensor([0.25, 0.5, 0.75])).tolist()
            found["steps"][f"{share:g}"] = {
                "median": round(middle, 3),
                "quartiles": [round(low, 3), round(high, 3)],
                "down": round(float((ratio < 0).float().mean()), 3),
            }
    print(found, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--write", action="store_true")
    told = parser.parse_args()
    found = [kept(folder, told.root, told.count) for folder in told.folders]
    if told.write:
        print(write_result(f"promises-{told.folders[0].parts[-3]}", {"found": found}))


if __name__ == "__main__":
    main()
