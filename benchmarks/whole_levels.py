"""Whether adversarial images that rounding undoes exist in whole grey levels after all.

    python benchmarks/whole_levels.py docs/results/cifar-10/acab-retrained/seed-0 [...]

For each row's folder (model and ledger-strong): the examples whose images are kept, that were broken, and of whose
adversarial images none breaks the network in whole levels; then `pgd-whole-levels` from the image that broke each, and
`square-whole-levels` where that fails.
In L-infinity twice: in the ball itself, which may end between two levels, and in one rounded to whole levels as images
are (0.031 becomes 8).
"""

import argparse
from pathlib import Path

import torch

from linocut.attacks import Dice, ThreatModel, WholeLevelPGD, WholeLevelSquare
from linocut.evaluation.case import at_rest, unit
from linocut.evaluation.pictures import Pictures
from linocut.evaluation.record import Record
from linocut.models import load
from results import write_result

ATTACKS = WholeLevelPGD(), WholeLevelSquare()


def fragile_of(record: Record, pictures: Pictures, norm: str) -> tuple[list[int], list[str], int]:
    """The fragile examples, what broke each first, and how many broken ones there are, among those with images."""
    kept = {example for _, shard in pictures.natural() for example in shard["example"].tolist()}
    first: dict[int, str] = {}
    in_levels = set()
    for name in record.counting(norm):
        for row in record.of[name].values():
            if row.broken and row.example in kept:
                if row.image:
                    first.setdefault(row.example, name)
                if row.quantised != row.label:
                    in_levels.add(row.example)
    fragile = sorted(set(first) - in_levels)
    return fragile, [first[example] for example in fragile], len(first)


def search(folder: Path, norm: str, *, rounded: bool = False) -> dict:
    """How many of the fragile examples fall to a search in whole levels."""
    record, pictures = Record.read(folder / "ledger-strong"), Pictures.of(folder / "ledger-strong")
    model = load(folder / "model")
    fragile, names, broken = fragile_of(record, pictures, norm)
    natural, labels, starts = {}, {}, {}
    for number, shard in pictures.natural():
        for example, label, pixels in zip(
            shard["example"].tolist(), shard["label"].tolist(), shard["pixels"], strict=True
        ):
            natural[example], labels[example] = pixels, label
        for name in set(names):
            found = pictures.adversarial(name, number)
            if found is not None:
                for example, image in zip(found["example"].tolist(), found["image"], strict=True):
                    starts[name, example] = image
    eps = round(255 * record.norms[norm]) / 255 if rounded else record.norms[norm]
    fell = {}
    standing = list(zip(fragile, names, strict=True))
    for attack in ATTACKS:
        if not standing:
            break
        with at_rest(model):
            result = attack.run(
                model,
                unit(torch.stack([natural[e] for e, _ in standing])),
                torch.tensor([labels[e] for e, _ in standing]),
                ThreatModel(norm, eps),
                Dice(torch.tensor([e for e, _ in standing])),
                torch.stack([starts[name, e] for e, name in standing]),
            )
        fell[attack.name] = int(result.broken.sum())
        standing = [one for one, broke in zip(standing, result.broken.tolist(), strict=True) if not broke]
    return {"row": str(folder), "norm": norm, "eps": eps, "broken": broken, "fragile": len(fragile), "fell": fell}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    found = []
    for folder in parser.parse_args().folders:
        for norm, rounded in (("linf", False), ("linf", True), ("l2", False)):
            found.append(search(folder, norm, rounded=rounded))
            print(found[-1], flush=True)
    print(write_result("whole-levels", {"attacks": [repr(attack) for attack in ATTACKS], "found": found}))


if __name__ == "__main__":
    main()
