"""Content-adaptive pixel discretisation, exact to the bit, and an honest test of image defences.

`load` and `save` are for networks; `linocut.data.load` is for data sets. `evaluate` judges any model.
"""

from typing import TYPE_CHECKING, Any

from linocut.errors import InputError
from linocut.models import Architecture, Card, Defended, build, load, save
from linocut.transform.apply import apply
from linocut.transform.explain import Explanation
from linocut.transform.modules import AdaptiveBlur, AdaptiveCodebook, EssentialFeatures, FixedCodebook

if TYPE_CHECKING:
    from linocut.evaluation.verdict import evaluate

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
    "evaluate",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    """`evaluate` when it is first asked for: whoever wants the transform alone need not import any attack."""
    if name == "evaluate":
        from linocut.evaluation.verdict import evaluate

        return evaluate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
