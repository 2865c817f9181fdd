"""Attacks, one a file. Each moves images inside a ThreatModel and says, per example, how far it came."""

from linocut.attacks.apgd import APGD, TargetedAPGD
from linocut.attacks.attack import Attack, Result
from linocut.attacks.chen import ChenLoop
from linocut.attacks.dice import Dice, example_seed
from linocut.attacks.edges import EdgePGD
from linocut.attacks.frozen import FrozenPalettePGD
from linocut.attacks.hooks import NotApplicable
from linocut.attacks.noise_averaged import NoiseAveragedPGD
from linocut.attacks.pgd import PGD
from linocut.attacks.printability import PrintablePGD
from linocut.attacks.random_noise import RandomNoise
from linocut.attacks.square import Square
from linocut.attacks.surrogate import SurrogatePGD
from linocut.attacks.threat import ThreatModel
from linocut.attacks.transfer import Continued, TransferPGD
from linocut.attacks.whole_levels import WholeLevelPGD, WholeLevelSquare

__all__ = [
    "APGD",
    "PGD",
    "Attack",
    "ChenLoop",
    "Continued",
    "Dice",
    "EdgePGD",
    "FrozenPalettePGD",
    "NoiseAveragedPGD",
    "NotApplicable",
    "PrintablePGD",
    "RandomNoise",
    "Result",
    "Square",
    "SurrogatePGD",
    "TargetedAPGD",
    "ThreatModel",
    "TransferPGD",
    "WholeLevelPGD",
    "WholeLevelSquare",
    "example_seed",
]
