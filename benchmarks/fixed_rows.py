"""The rows with a fixed codebook under attack: python benchmarks/fixed_rows.py --root DATA --device cuda

For each data set (--data) and row of the paper (--rows): trains by the recipe with --epochs in place of its own (or
takes the model that an earlier run left in --work), then attacks --n test images in L-infinity and L2 with the paper's
PGD, the loop of Chen et al., PGD past the codes, and Square with 1,000 queries: the `paper` suite without the probes of
its findings, each attack on every image. Says whether Square is stronger than their loop. The record is written after
each model; one that would begin after --minutes is left.
"""

import argparse
import logging
import math
import os
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from linocut.data import load
from linocut.errors import InputError
from linocut.evaluation.balls import balls
from linocut.evaluation.case import Case
from linocut.evaluation.hearing import fixed_codebook
from linocut.evaluation.request import open_model
from linocut.evaluation.run import evaluate
from linocut.evaluation.sample import Sample
from linocut.evaluation.suites import plan
from linocut.recipes.training import recipe
from linocut.training import train
from results import write_result

LOG = logging.getLogger("fixed_rows")
ROWS = ("baseline", "fixed-pretrained", "fixed-retrained", "natural-fixed-retrained")


def config_for(name: str, row: str, options: argparse.Namespace):
    """The recipe with fewer epochs; uncompiled, since compiling would take longer than these small networks train."""
    known = f"smoke/{row}" if name == "digits" else f"{options.recipe}{name}/{row}"
    found = recipe(known)
    milestones = tuple(round(m * options.epochs / found.epochs) for m in found.milestones)
    found = replace(found, epochs=options.epochs, milestones=milestones, compile=False)
    return found.with_settings(options.assign)


def trained(config, folder: Path, root: Path | None, test, device: torch.device) -> dict:
    """What is known of the model in folder/model, which is trained unless it stands there."""
    if (folder / "model" / "card.json").exists():
        return {"trained_seconds": None}
    images = load(config.data_set, root, "train", config.image_size)
    started = time.perf_counter()
    told = 0

    def watch(now) -> None:
        nonlocal told
        if now.epoch >= told:
            LOG.info(f"  {config.recipe} epoch {now.epoch + 1}/{config.epochs}, loss {now.loss:.3f}")
            told = now.epoch + max(1, config.epochs // 5)

    train(config, images, folder, test_images=test, device=device, resume=True, watch=watch)
    return {"trained_seconds": round(time.perf_counter() - started, 1)}


def attacked(config, folder: Path, test, options: argparse.Namespace, device: torch.device) -> dict:
    """Clean accuracy, and for each norm that under each attack by itself and in the worst case, with intervals."""
    model = open_model(str(folder / "model"), device, test.pixels[:2])
    radii = balls(config.data_set, test.pixels[0].numel(), ("linf", "l2"))
    book = fixed_codebook(model)
    entries = [entry for entry in plan("paper", radii, fixed_codes=book is not None) if entry.column != "probe"]
    # In a suite the cross-check sees what others left; here every attack sees every image.
    entries = [replace(e, column="published") if e.name.endswith("pgd-past-codes") else e for e in entries]
    size = len(test.labels)
    sample = Sample(size=size, n=min(options.n, size), batch_size=500 if device.type == "cuda" else 100)
    eps = {norm: ball.threat.eps for norm, ball in radii.items()}
    case = Case(model=model, images=test, device=device, searcher=model, raw=model)

    def watch(entry, done: int, due: int, before: int) -> None:
        if done == due:
            LOG.info(f"  {config.recipe} {entry.name}: {due} images")

    settings = {"suite": "paper without probes", "model": config.recipe, "data": test.name}
    record = evaluate(case, entries, sample, folder / "ledger", radii=eps, settings=settings, watch=watch)
    norms = {}
    for norm in radii:
        found = {name.split("/")[1]: share.as_json() for name, share in record.published(norm).items()}
        # Square sees fewer images: over all of them the worst case could look better than Square alone.
        met_all = record.of[f"{norm}/square-published"]
        worst = {
            "worst": record.worst(norm).as_json(),
            "worst_of_those_that_met_all": record.worst(norm, met_all).as_json(),
        }
        norms[norm] = {"eps": eps[norm], "attacks": found, **worst}
        if book is not None:
            norms[norm]["square_against_theirs"] = duel(record, norm)
    return {"clean": record.clean.as_json(), "norms": norms, "codes": book and len(book["colors"])}


def duel(record, norm: str) -> dict:
    """Which of Square and the loop of Chen et al. is stronger on the images that both saw, by a two-sided sign test."""
    theirs, square = (record.of[f"{norm}/{name}"] for name in ("chen-published", "square-published"))
    both = theirs.keys() & square.keys()
    only_square = sum(square[i].broken and not theirs[i].broken for i in both)
    only_theirs = sum(theirs[i].broken and not square[i].broken for i in both)
    differing = only_square + only_theirs
    few = min(only_square, only_theirs)
    chance = min(1.0, 2 * sum(math.comb(differing, i) for i in range(few + 1)) / 2**differing)
    stronger = "neither" if chance >= 0.05 else "square" if only_square > only_theirs else "theirs"
    return {
        "n": len(both),
        "only_square_breaks": only_square,
        "only_theirs_breaks": only_theirs,
        "p": chance,
        "stronger": stronger,
    }


def shown(found: dict) -> str:
    """A result in a few lines."""
    if "error" in found:
        return f"{found['recipe']} failed: {found['error']}"
    lines = [f"{found['recipe']}: clean {found['clean']['percent']:.1f} %"]
    for norm, part in found["norms"].items():
        each = ", ".join(f"{name} {share['percent']:.1f}" for name, share in part["attacks"].items())
        worst = part["worst_of_those_that_met_all"]
        lines.append(f"  {norm} {part['eps']:g}: {each}, worst case {worst['percent']:.1f} of {worst['n']}")
        if "square_against_theirs" in part:
            won = part["square_against_theirs"]
            told = f"only Square breaks {won['only_square_breaks']}, only theirs {won['only_theirs_breaks']}"
            lines.append(f"  {norm}: the stronger is {won['stronger']} ({told}, p = {won['p']:.2g})")
    return "\n".join(lines)


def measured(config, options: argparse.Namespace) -> dict:
    """One model, trained and attacked; where that fails, its error, so that the others are not lost."""
    device, folder = torch.device(options.device), options.work / config.recipe.replace("/", "-")
    try:
        test = load(config.data_set, options.root, "test", config.image_size)
        made = trained(config, folder, options.root, test, device)
        started = time.perf_counter()
        found = attacked(config, folder, test, options, device)
    except (InputError, RuntimeError) as error:
        return {"recipe": config.recipe, "error": f"{type(error).__name__}: {error}"[:1000]}
    return {"recipe": config.recipe, **made, "attacked_seconds": round(time.perf_counter() - started, 1), **found}


def main(words: list[str] | None = None) -> dict:
    began = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, help="the folder that holds the data sets")
    parser.add_argument("--data", nargs="+", default=("mnist", "fashion-mnist"))
    parser.add_argument("--rows", nargs="+", default=ROWS)
    parser.add_argument("--recipe", choices=("fast", "paper"), default="fast")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--set", dest="assign", action="append", default=[], help="field=value of the recipe")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=math.inf, help="models that would begin later are left")
    parser.add_argument("--work", type=Path, default=Path("out/fixed-rows"), help="models and ledgers")
    parser.add_argument("--out", type=Path, help="folder of the record; benchmarks/results if left out")
    options = parser.parse_args(words)
    options.recipe = "fast-" if options.recipe == "fast" else ""
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)8d ms  %(message)s")
    record: dict = {"epochs": options.epochs, "set": options.assign, "models": [], "left": []}
    path = None
    for config in [config_for(name, row, options) for name in options.data for row in options.rows]:
        if time.perf_counter() - began > 60 * options.minutes:
            record["left"].append(config.recipe)
            LOG.info(f"{config.recipe} is left: {options.minutes:g} minutes are over")
            continue
        record["models"].append(measured(config, options))
        LOG.info(shown(record["models"][-1]))
        path = write_result("fixed-rows", record, **({"folder": options.out} if options.out else {}))
    LOG.info(f"written to {path}")
    return record


if __name__ == "__main__":
    main()
