"""Content-adaptive pixel discretisation, exact to the bit, and an honest test of image defences."""

from linocut.errors import InputError
from linocut.models import Defended, load, save
from linocut.transform.explain import Explanation
from linocut.transform.modules import AdaptiveBlur, AdaptiveCodebook, EssentialFeatures

__version__ = "0.1.0"

__all__ = [
    "AdaptiveBlur",
    "AdaptiveCodebook",
    "Defended",
    "EssentialFeatures",
    "Explanation",
    "InputError",
    "load",
    "save",
]
