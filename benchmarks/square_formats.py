"""Whether Square loses strength in sixteen bits: python benchmarks/square_formats.py MODEL --root DATA

The same Square, with the same dice, searches on the network in float32, float16 and bfloat16; the network in float32
decides what is broken. Prints and writes the share that stands, and seconds, for each format, norm and seed.
"""

import argparse
import time
from pathlib import Path

import torch

from linocut.attacks import Dice, Square
from linocut.data import load
from linocut.evaluation.balls import balls
from linocut.evaluation.quick import Quick
from linocut.evaluation.request import open_model
from linocut.models import read_card
from results import write_result

FORMATS = (torch.float32, torch.float16, torch.bfloat16)


def standing(model, images, labels, threat, dtype, seed, queries) -> tuple[float, float]:
    """Per cent that Square leaves when it searches in this format, and the seconds it takes."""
    copy, dice = Quick(model, model, dtype=dtype, fine=dtype), Dice.of(seed, len(images), images.device)
    if images.is_cuda:
        torch.cuda.synchronize()
    began = time.perf_counter()
    found = Square(num_queries=queries).run(copy, images, labels, threat, dice)
    with torch.no_grad():
        right = torch.cat([model(part).argmax(dim=1) for part in found.images.split(500)]) == labels
    return 100 * float(right.float().mean()), time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a saved model")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--n", type=int, default=500, help="test images that the model gets right")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, help="folder of the record; benchmarks/results if left out")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    card = read_card(options.model).card
    images = load(card.data_set, root=options.root, split="test")
    model = open_model(str(options.model), device, images.pixels[:2])
    pixels, labels = images.unit(slice(0, 2 * options.n)).to(device), images.labels[: 2 * options.n].to(device)
    with torch.no_grad():
        right = (torch.cat([model(part).argmax(dim=1) for part in pixels.split(500)]) == labels).nonzero().squeeze(1)
    pixels, labels = pixels[right[: options.n]], labels[right[: options.n]]
    runs = []
    for norm, ball in balls(card.data_set, pixels[0].numel(), ("linf", "l2"), None).items():
        for seed in range(options.seeds):
            for dtype in FORMATS:
                left, seconds = standing(model, pixels, labels, ball.threat, dtype, seed, options.queries)
                name = str(dtype).removeprefix("torch.")
                runs.append({"norm": norm, "seed": seed, "format": name, "standing": left, "seconds": seconds})
                print(f"{norm:5} seed {seed} {name:9} {left:6.2f} % stand, {seconds:6.1f} s", flush=True)
    shown = {"recipe": card.recipe.get("recipe"), "architecture": card.architecture.name}
    record = {**shown, "n": len(labels), "queries": options.queries, "runs": runs}
    print(write_result("square-formats", record, **({"folder": options.out} if options.out else {})))


if __name__ == "__main__":
    main()
