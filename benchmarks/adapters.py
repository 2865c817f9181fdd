"""One defended model, attacked by Foolbox, ART, AutoAttack and by us: same attack, same budget, same images.

    LINOCUT_DATA=... python benchmarks/adapters.py [--count 500] [--train 20000] [--write]

A small CNN is trained on MNIST behind the transform of the MNIST preset (a minute on one core). Foolbox and
AutoAttack get the `Defended` model as it is, ART gets the network with `EssentialFeaturesART` in front. The
robust accuracy each library finds should agree with ours within a point, or ours should be lower.
"""

import argparse
import importlib.metadata
import os
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn

from linocut import EssentialFeatures
from linocut.attacks import APGD, PGD, Dice, ThreatModel
from linocut.attacks import autoattack as autoattack_parts
from linocut.data import load
from linocut.models import Defended
from results import write_result

# Radii at which a good part is left standing: at 0 or 100 % everyone agrees.
THREATS = {"linf": ThreatModel("linf", 0.2), "l2": ThreatModel("l2", 3.0)}
STEPS, PATH_RATIO = 40, 4.0


def network() -> nn.Module:
    """Two convolutions and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    )


def trained(size: int) -> Defended:
    """The network after two epochs of Adam behind the transform, in eval mode."""
    images = load("mnist", root=os.environ["LINOCUT_DATA"], split="train")
    torch.manual_seed(0)
    model = Defended(EssentialFeatures.preset("mnist"), network())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(2):
        for rows in torch.randperm(size).split(128):
            optimizer.zero_grad()
            F.cross_entropy(model(images.unit(rows)), images.labels[rows]).backward()
            optimizer.step()
    return model.eval().requires_grad_(False)


def foolbox_pgd(model, images, labels, threat):
    """Foolbox's PGD on the Defended model."""
    import foolbox

    make = foolbox.attacks.LinfPGD if threat.norm == "linf" else foolbox.attacks.L2PGD
    attack = make(abs_stepsize=PATH_RATIO * threat.eps / STEPS, steps=STEPS, random_start=True)
    target = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    return attack(target, images, labels, epsilons=threat.eps)[1]


def art_pgd(model, images, labels, threat):
    """ART's PGD on the network behind EssentialFeaturesART."""
    from art.attacks.evasion import ProjectedGradientDescentPyTorch
    from art.estimators.classification import PyTorchClassifier

    from linocut.adapters.art import EssentialFeaturesART

    target = PyTorchClassifier(
        model.model,
        nn.CrossEntropyLoss(),
        tuple(images.shape[1:]),
        10,
        clip_values=(0, 1),
        preprocessing_defences=[EssentialFeaturesART(**model.transform.settings())],
    )
    attack = ProjectedGradientDescentPyTorch(
        target,
        norm="inf" if threat.norm == "linf" else 2,
        eps=threat.eps,
        eps_step=PATH_RATIO * threat.eps / STEPS,
        max_iter=STEPS,
        num_random_init=1,
        batch_size=len(images),
        verbose=False,
    )
    return torch.from_numpy(attack.generate(images.numpy(), labels.numpy()))


def autoattack_apgd(model, images, labels, threat):
    """AutoAttack's APGD-CE on the Defended model."""
    part = autoattack_parts.standard()[0]
    return part.run(model, images, labels, threat, Dice.of(0, len(images))).images


def our_pgd(model, images, labels, threat):
    """Our PGD, as published: the point of highest loss decides."""
    attack = PGD(num_steps=STEPS, path_ratio=PATH_RATIO, random_start=True)
    return attack.run(model, images, labels, threat, Dice.of(0, len(images))).images


def our_apgd(model, images, labels, threat):
    """Our APGD-CE."""
    return APGD(num_steps=100).run(model, images, labels, threat, Dice.of(0, len(images))).images


ROWS = {
    "pgd": {"ours": our_pgd, "foolbox": foolbox_pgd, "art": art_pgd},
    "apgd-ce": {"ours": our_apgd, "autoattack": autoattack_apgd},
}


def measure(count: int, train: int) -> dict:
    """The robust accuracy in percent that each library finds, per attack and norm, and the time it took."""
    model = trained(train)
    test = load("mnist", root=os.environ["LINOCUT_DATA"], split="test")
    images, labels = test.unit(slice(0, count)), test.labels[:count]
    clean = standing(model, images, labels)
    print(f"clean {clean:.1f} %", flush=True)
    found = []
    for norm, threat in THREATS.items():
        for attack, libraries in ROWS.items():
            row: dict = {"attack": attack, "norm": norm, "eps": threat.eps, "robust": {}, "seconds": {}}
            for name, run in libraries.items():
                started = time.perf_counter()
                points = run(model, images, labels, threat).detach()
                row["seconds"][name] = round(time.perf_counter() - started, 1)
                assert threat.contains(points.double(), images.double(), slack=1e-5).all()
                row["robust"][name] = standing(model, points, labels)
            row["agrees"] = all(row["robust"]["ours"] <= value + 1 for value in row["robust"].values())
            print(row, flush=True)
            found.append(row)
    return {
        "model": "small CNN on MNIST behind the MNIST preset",
        "n": count,
        "training_images": train,
        "clean": clean,
        "rows": found,
        "libraries": {
            name: importlib.metadata.version(name)
            for name in ("foolbox", "adversarial-robustness-toolbox", "pyautoattack")
        },
    }


def standing(model, images, labels) -> float:
    """The share of images still classified right, in percent."""
    with torch.no_grad():
        return 100 * (model(images).argmax(1) == labels).double().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--train", type=int, default=20_000)
    parser.add_argument("--write", action="store_true", help="keep the result in benchmarks/results")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the other libraries
        measured = measure(options.count, options.train)
    if options.write:
        print(write_result("adapters", measured))
