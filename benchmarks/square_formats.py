"""Whether Square loses strength in sixteen bits: python benchmarks/square_formats.py MODEL --root DATA

The same Square, with the same dice, searches on the network, and on copies of it in float16 and bfloat16 with the last
layer rounded too or in float32, as `linocut evaluate` has it; the network decides what is broken. Prints and writes how
far a copy's margins are off, the share that stands, the mean margin that was reached, and seconds.
"""

import argparse
import time
from pathlib import Path

import torch

from linocut.attacks import Dice, Square
from linocut.attacks.losses import margin
from linocut.data import load
from linocut.evaluation.balls import balls
from linocut.evaluation.finer import made_finer
from linocut.evaluation.levels import all_bits
from linocut.evaluation.quick import Quick
from linocut.evaluation.replayed import Replayed
from linocut.evaluation.request import open_model
from linocut.models import read_card
from results import write_result


def copies(model, images) -> dict:
    """What Square searches on, by name."""
    recorded = Replayed if next(model.parameters()).is_cuda else lambda network: network
    judge, rounded, fine = recorded(model), recorded(model), recorded(made_finer(model, images, compiled=False))
    return {"float32": judge} | {
        f"{str(dtype).removeprefix('torch.')}{told}": Quick(network, judge, dtype=dtype, fine=dtype)
        for network, told in ((rounded, ", last layer too"), (fine, ""))
        for dtype in (torch.float16, torch.bfloat16)
    }


@torch.no_grad()
def margins(model, images, labels) -> torch.Tensor:
    """By how much another class leads, (B,)."""
    return margin(torch.cat([model(part) for part in images.split(500)]).float(), labels)


def searched(copy, model, images, labels, threat, seed, queries) -> dict:
    """What Square reaches on this copy, by the network's own word, and the seconds it takes."""
    dice = Dice.of(seed, len(images), images.device)
    if images.is_cuda:
        torch.cuda.synchronize()
    began = time.perf_counter()
    found = Square(num_queries=queries).run(copy, images, labels, threat, dice).images
    reached = margins(model, found, labels)
    stand, mean = 100 * float((reached < 0).float().mean()), float(reached.mean())
    return {"standing": stand, "mean_margin": mean, "seconds": time.perf_counter() - began}


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
    with all_bits():
        exact = margins(model, pixels, labels)
    formats = copies(model, pixels[:8])
    off = {name: float((margins(copy, pixels, labels) - exact).abs().mean()) for name, copy in formats.items()}
    for name, error in off.items():
        print(f"{name:24} margins are off by {error:.2e} on the average")
    runs = []
    for norm, ball in balls(card.data_set, pixels[0].numel(), ("linf", "l2"), None).items():
        for seed in range(options.seeds):
            for name, copy in formats.items():
                row = searched(copy, model, pixels, labels, ball.threat, seed, options.queries)
                runs.append({"norm": norm, "seed": seed, "format": name, **row})
                told = f"{row['standing']:6.2f} % stand, mean margin {row['mean_margin']:.4f}, {row['seconds']:6.1f} s"
                print(f"{norm:5} seed {seed} {name:24} {told}", flush=True)
    shown = {"recipe": card.recipe.get("recipe"), "architecture": card.architecture.name}
    record = {**shown, "n": len(labels), "queries": options.queries, "mean_error_of_margins": off, "runs": runs}
    print(write_result("square-formats", record, **({"folder": options.out} if options.out else {})))


if __name__ == "__main__":
    main()
