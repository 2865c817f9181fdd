"""The decisions behind the transform, one changed at a time, in networks that were trained through each change.

    linocut train --recipe fast-fashion-mnist/acab-retrained@order=bins --set precision=bfloat16 --set compile=false \\
        --set half_weights=true --device cpu --root DATA --out OUT/order=bins
    python benchmarks/decisions_in_training.py OUT --root DATA --ledgers LEDGERS

Every folder of OUT, and any other that is named, is a training; `as-specified` is the one that the others are compared
with. Each is judged in L-infinity on the same first images: the published PGD, then what climbs of the margin loss
(through the transform and past it), APGD on the DLR loss and Square leave besides. A process for each core; some eight
minutes a network of MNIST's kind for 1,000 images.
"""

import argparse
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import torch

import linocut
from linocut.attacks import APGD, PGD, Attack, Square, TransferPGD
from linocut.cli.memory import keep_freed_memory
from linocut.data import load as load_data
from linocut.models import load
from linocut.recipes.reproduce.overview import worst
from results import write_result

USUAL = "as-specified"
ATTACKS: list[Attack] = [
    PGD(name="pgd-margin", num_steps=100, path_ratio=5.0, loss="margin", any_iterate=True),
    TransferPGD(name="pgd-undefended", num_steps=100, any_iterate=True),
    APGD(name="apgd-dlr", loss="dlr"),
    Square(name="square", num_queries=2000),
]


def judged(folder: Path, data: str, root: Path, count: int, out: Path) -> dict:
    """The network's numbers, which of its checks fail, and which examples hold in the worst case."""
    torch.set_num_threads(1)
    keep_freed_memory()
    test, model = load_data(data, root, "test"), load(folder / "model").to(memory_format=torch.channels_last)
    name = folder.parent.name if folder.name.startswith("seed-") else folder.name
    verdict = linocut.evaluate(
        model,
        test.pixels[:count],
        test.labels[:count],
        norm="linf",
        data=data,
        suite=ATTACKS,
        batch_size=250,
        name=name,
        out=out / name,
        progress=False,
    )
    examples, left = worst([verdict.record], "linf")
    rows = {entry: list(of.values()) for entry, of in verdict.record.of.items()}
    found = {
        "network": name,
        "n": len(examples),
        "clean": sum(row.prediction == row.label for row in rows["clean"]),
        "as published": sum(row.prediction == row.label for row in rows["linf/pgd-published"]),
        "broken by": {attack.name: sum(row.broken for row in rows[f"linf/{attack.name}"]) for attack in ATTACKS},
        "worst": len(left),
        "failing checks": sorted({finding.code for finding in verdict.findings if finding.status == "fail"}),
    }
    print(found, flush=True)
    return found | {"standing": sorted(left)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trained", type=Path, help="the folder of the trainings")
    parser.add_argument("others", type=Path, nargs="*", help="folders of single trainings")
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--ledgers", type=Path, required=True, help="where the ledgers go")
    told = parser.parse_args()
    folders = [*sorted(path.parent for path in told.trained.glob("*/model")), *told.others]
    judge = partial(judged, data=told.data, root=told.root, count=told.count, out=told.ledgers)
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(judge, folders))
    usual = set(next(one["standing"] for one in found if one["network"] == USUAL))
    for one in found:
        standing = set(one.pop("standing"))
        one |= {"only with it": len(standing - usual), "only as specified": len(usual - standing)}
    print(write_result(f"decisions-in-training-{told.data}", {"found": found}))


if __name__ == "__main__":
    main()
