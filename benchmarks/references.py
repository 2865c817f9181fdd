"""Attacks of Foolbox, ART and AutoAttack (pyautoattack), called alike: model, images, labels, threat, batch -> images.

Each library is imported when it is asked for.
"""

import importlib
import importlib.metadata

import numpy as np
import torch
from torch import nn

PGD_STEPS, APGD_STEPS = 40, 50


def version(package):
    """Its version, or None where it is not installed."""
    names = {"art": "adversarial-robustness-toolbox"}
    try:
        return importlib.metadata.version(names.get(package, package))
    except importlib.metadata.PackageNotFoundError:
        return None


def foolbox_pgd(model, images, labels, threat, batch):
    """Foolbox's PGD; as ours, with a random start for L-inf alone."""
    foolbox = importlib.import_module("foolbox")
    kind = foolbox.attacks.LinfPGD if threat.norm == "linf" else foolbox.attacks.L2PGD
    attack = kind(steps=PGD_STEPS, abs_stepsize=2.5 * threat.eps / PGD_STEPS, random_start=threat.norm == "linf")
    wrapped = foolbox.PyTorchModel(model, bounds=(0, 1), device=images.device)
    parts = zip(images.split(batch), labels.split(batch), strict=True)
    return torch.cat([attack(wrapped, x, y, epsilons=threat.eps)[1] for x, y in parts])


def art_classifier(model, images):
    """The network as ART wants it."""
    estimators = importlib.import_module("art.estimators.classification")
    return estimators.PyTorchClassifier(
        model,
        nn.CrossEntropyLoss(),
        images.shape[1:],
        10,
        clip_values=(0, 1),
        device_type="gpu" if images.is_cuda else "cpu",
    )


def art_pgd(model, images, labels, threat, batch):
    """ART's PGD for PyTorch."""
    evasion = importlib.import_module("art.attacks.evasion")
    attack = evasion.ProjectedGradientDescentPyTorch(
        art_classifier(model, images),
        norm=np.inf if threat.norm == "linf" else 2,
        eps=threat.eps,
        eps_step=2.5 * threat.eps / PGD_STEPS,
        max_iter=PGD_STEPS,
        num_random_init=int(threat.norm == "linf"),
        batch_size=batch,
        verbose=False,
    )
    found = attack.generate(images.cpu().numpy(), labels.cpu().numpy())
    return torch.from_numpy(found).to(images.device)


def art_square(model, images, labels, threat, batch, queries):
    """ART's Square Attack."""
    evasion = importlib.import_module("art.attacks.evasion")
    attack = evasion.SquareAttack(
        art_classifier(model, images),
        norm=np.inf if threat.norm == "linf" else 2,
        eps=threat.eps,
        max_iter=queries,
        batch_size=batch,
        verbose=False,
    )
    found = attack.generate(images.cpu().numpy(), labels.cpu().numpy())
    return torch.from_numpy(found).to(images.device)


def auto_square(model, images, labels, threat, batch, queries):
    """AutoAttack's Square Attack; its start is not in its budget, in ours it is."""
    kind = importlib.import_module("pyautoattack.square").SquareAttack
    norm = {"linf": "Linf", "l2": "L2"}[threat.norm]
    attack = kind(
        model, norm=norm, eps=threat.eps, n_queries=queries - 1, device=images.device, seed=torch.initial_seed()
    )
    parts = zip(images.split(batch), labels.split(batch), strict=True)
    return torch.cat([attack.perturb(x, y) for x, y in parts])


def auto_apgd(model, images, labels, threat, batch):
    """AutoAttack's APGD with cross entropy."""
    kind = importlib.import_module("pyautoattack.autopgd_base").APGDAttack
    norm = {"linf": "Linf", "l2": "L2"}[threat.norm]
    attack = kind(model, norm=norm, eps=threat.eps, n_iter=APGD_STEPS, loss="ce", device=images.device)
    parts = zip(images.split(batch), labels.split(batch), strict=True)
    return torch.cat([attack.perturb(x, y) for x, y in parts])
