"""Content-adaptive pixel discretisation, exact to the bit, and an honest test of image defences.

`load` and `save` are for networks; `linocut.data.load` is for data sets.
"""

from linocut.errors import InputError
from linocut.models import Architecture, Card, Defended, build, load, save
from linocut.transform.apply import apply
from linocut.transform.explain import Explanation
from linocut.transform.modules import AdaptiveBlur, AdaptiveCodebook, EssentialFeatures, FixedCodebook

__version__ = "0.1.0"

__all__ = [
    "AdaptiveBlur",
    "AdaptiveCodebook",
    "Architecture",
    "Card",
    "Defended",
    "EssentialFeatures",
    "Explanation",
    "FixedCodebook",
    "InputError",
    "apply",
    "build",
    "load",
    "save",
]
