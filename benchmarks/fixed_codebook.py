"""Fixed codebooks, measured: python benchmarks/fixed_codebook.py --root DATA [--attack --n 200 --epochs 1]

How long fitting and painting take on CIFAR-10; with --attack also a naturally trained network behind the two codes of
MNIST and of Fashion-MNIST, under the paper suite and under PGD with every backward rule by itself.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from linocut.data import load
from linocut.transform.modules import FixedCodebook
from linocut.transform.presets import FIXED
from results import write_result

SETS = ("mnist", "fashion-mnist")


def seconds(call, times: int = 3, clock=time.process_time) -> float:
    """The best of a few calls; processor time of one thread, which other work on the machine sways little."""
    best = float("inf")
    for _ in range(times):
        start = clock()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        best = min(best, clock() - start)
    return best


def speed(root: Path) -> dict:
    """Fitting on all of CIFAR-10, painting its images with 300 codes, one thread; on a GPU by the clock on the wall."""
    torch.set_num_threads(1)
    images = load("cifar-10", root, "train")
    FixedCodebook.fit(images.pixels[:2], 2)  # compiles
    book = FixedCodebook.fit(images, **FIXED["cifar-10"])
    found: dict = {"fit_seconds": seconds(lambda: FixedCodebook.fit(images, **FIXED["cifar-10"]))}
    x = images.unit(slice(0, 512))
    between = (x + 0.03 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))).clamp(0, 1)
    for name, batch in (("levels", x), ("iterates", between)):
        found[f"numba_{name}_per_second"] = 512 / seconds(lambda batch=batch: book(batch), 10)
    plain = FixedCodebook(**{**book.settings(), "backend": "torch"})
    found["torch_per_second"] = 64 / seconds(lambda: plain(x[:64]))
    moving = x[:16].clone().requires_grad_()
    found["soft_gradients_per_second"] = 16 / seconds(lambda: torch.autograd.grad(book(moving).sum(), moving))
    if torch.cuda.is_available():
        many = x.repeat(16, 1, 1, 1).cuda()
        for backend in ("triton", "torch"):
            there = FixedCodebook(**{**book.settings(), "backend": backend}).cuda()
            there(many)
            took = seconds(lambda there=there: there(many), 8, time.perf_counter)
            found[f"cuda_{backend}_per_second"] = len(many) / took
        moving = many[:500].clone().requires_grad_()
        there = book.cuda()
        took = seconds(lambda: torch.autograd.grad(there(moving).sum(), moving), 5, time.perf_counter)
        found["cuda_soft_gradients_per_second"] = 500 / took
    return found


def attacked(name: str, root: Path, n: int, epochs: int, folder: Path) -> dict:
    """A network trained behind the codes, under the paper suite, and under PGD with each backward rule alone."""
    from linocut.evaluation.findings import find
    from linocut.evaluation.request import Request, carry_out
    from linocut.evaluation.summary import as_json
    from linocut.recipes.training import recipe
    from linocut.training import train

    images, test = (load(name, root, split) for split in ("train", "test"))
    book = FixedCodebook.fit(images, **FIXED[name])
    front = {"class": "FixedCodebook", "settings": book.settings()}
    fields = recipe(f"{name}/natural").to_json() | {"epochs": epochs, "transform": front, "transform_at": "train"}
    config = recipe(f"{name}/natural").from_json(fields)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train(config, images, folder / name, test_images=test, device=device)
    model = str(folder / name / "model")
    request = Request(model=model, data=name, out=folder / f"{name}-ledger", suite="paper", n=n, root=root)
    record = carry_out(request, lambda *_: None)
    told = as_json(record, find(record), folder)
    return {
        "codes": book.settings()["colors"],
        "epochs": epochs,
        "n": n,
        "clean": told["clean"],
        "norms": told["norms"],
        "failed": told["failed"],
        "rules": rules(name, record, model, test, n, device),
    }


def rules(name: str, record, model: str, test, n: int, device: torch.device) -> dict:
    """Accuracy in percent under PGD-100 with each backward rule, any misclassified iterate counting."""
    from linocut.attacks.dice import Dice, example_seed
    from linocut.attacks.surrogate import SurrogatePGD
    from linocut.evaluation.balls import balls
    from linocut.models import load as load_model

    defended = load_model(model).to(device).eval().requires_grad_(False)
    chosen = sorted(record.of["clean"])[:n]
    x, labels = test.unit(chosen).to(device), test.labels[chosen].to(device)
    found = {}
    for norm, ball in balls(name, x[0].numel(), ("linf", "l2")).items():
        for rule in ("soft", "identity", "none"):
            attack = SurrogatePGD(surrogate=rule, num_steps=ball.num_steps, step_size=ball.step_size, any_iterate=True)
            dice = Dice(torch.tensor([example_seed(0, i, rule, 0) for i in chosen], device=device))
            result = attack.run(defended, x, labels, ball.threat, dice)
            found[f"{norm}/{rule}"] = round(100 * float((~result.broken).float().mean()), 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--attack", action="store_true")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    found: dict = {"speed": speed(arguments.root)}
    print(found, flush=True)
    if arguments.attack:
        with tempfile.TemporaryDirectory() as folder:
            for name in SETS:
                found[name] = attacked(name, arguments.root, arguments.n, arguments.epochs, Path(folder))
                print(name, found[name], flush=True)
    print("written to", write_result("fixed-codebook", found))


if __name__ == "__main__":
    main()
