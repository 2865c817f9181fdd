"""From a model and its images to a record: what the command line and Python have in common."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from linocut.data import Images
from linocut.errors import InputError
from linocut.evaluation.admission import (
    require_backward,
    require_logits,
    require_one_answer,
    require_own_logits,
)
from linocut.evaluation.balls import Ball
from linocut.evaluation.case import Case, Model, at_rest, model_hash, unit
from linocut.evaluation.judge import Watch
from linocut.evaluation.measures import differing_forwards, pixel_digests
from linocut.evaluation.quick import searcher
from linocut.evaluation.record import Record
from linocut.evaluation.run import ALONE, evaluate
from linocut.evaluation.sample import Sample
from linocut.evaluation.stranger import Preprocessed, WithoutGradient, refuses_gradient
from linocut.evaluation.suites import Suite, named, plan
from linocut.evaluation.workers import Workers
from linocut.evaluation.wrapped import DRAWS, Expectation
from linocut.models.store import is_ours

ON_CPU, ON_GPU = 100, 500  # examples in a batch, where nothing is said


def batch_size_for(device: torch.device) -> int:
    """How many examples a batch has where nothing is said."""
    return ON_GPU if device.type == "cuda" else ON_CPU


def dressed(model: Model, preprocess: Model | None, few: torch.Tensor) -> Model:
    """The model behind a stranger's preprocessing, if there is one; one that takes no gradient is asked without.

    few: some images in [0,1], at which both are tried.
    """
    if refuses_gradient(model, few):
        model = WithoutGradient(model)
    return model if preprocess is None else Preprocessed(preprocess, model, probe=few).eval()


def hear(
    model: Model,
    images: Images,
    sample: Sample,
    folder: Path,
    *,
    names: dict[str, str | None],
    radii: dict[str, Ball],
    device: torch.device,
    suite: Suite,
    also: Suite | None = None,
    twin: Model | None = None,
    seen: frozenset[bytes] | None = None,
    half: bool = False,
    compiled: bool = False,
    card: dict[str, Any] | None = None,
    repeat: Sequence[str] | None = None,
    watch: Watch = lambda *_: None,
    workers: Workers = ALONE,
) -> Record:
    """The record of a suite over a sample, written in the folder.

    names: what the header calls model, preprocess, twin, data and split. also: what comes after the suite.
    seen: digests of training images. The rest is as in `Request` and in `run.evaluate`.
    """
    few = unit(images.pixels[torch.tensor(sample.order[:8])].to(device))
    with at_rest(model, twin):
        for made, name in ((model, names["model"]), (twin, names["twin"])):
            if made is not None:
                require_logits(made, few, len(images.classes), str(name))
                require_backward(made, few, str(name))
    judged, draws = settled(model, few, str(names["model"]))
    codebook = fixed_codebook(model)
    if codebook is not None and (codebook["origin"] or {}).get("sha256") == images.sha256:
        # the codes were taken from these very images
        seen = (seen or frozenset()) | frozenset(pixel_digests(images.pixels))
    entries = plan(
        suite,
        radii,
        twin=None if twin is None else guide(twin, few, half=half, compiled=compiled),
        seen=seen is not None,
        fixed_codes=codebook is not None,
        also=also,
    )
    settings: dict[str, Any] = names | {
        "suite": named(suite),
        "model_hash": model_hash(model, few),
        "twin_hash": model_hash(twin, few) if twin is not None else None,
        "data_hash": images.sha256,
        "draws": draws,
        "precision": "bfloat16" if half else "float32",
    }
    case = Case(
        model=judged,
        images=images,
        device=device,
        searcher=searcher(judged, half=half, compiled=compiled, probe=few),
        raw=model,
        twin=twin,
        seen=seen,
    )
    return evaluate(
        case,
        entries,
        sample,
        folder,
        radii={norm: ball.threat.eps for norm, ball in radii.items()},
        settings=settings | ({"compile": True} if compiled else {}),
        card=card,
        repeat=repeat,
        watch=watch,
        workers=workers,
    )


def settled(model: Model, few: torch.Tensor, name: str) -> tuple[Model, int]:
    """The model, or the expectation of one that does not repeat itself at a few images, with its number of draws."""
    if bool(differing_forwards(model, few).any()):
        expectation = Expectation(model)
        if bool(differing_forwards(expectation, few).any()):
            raise InputError(
                f"{name} draws at random from a generator of its own, or keeps something between calls, so that no "
                "claim about it could be repeated: let it draw from torch's, NumPy's or Python's own (torch.rand, "
                "np.random.rand, random.random), and answer the same image in the same way"
            )
        return expectation, DRAWS
    require_own_logits(model, few, name)
    require_one_answer(model, few, name)
    return model, 1


def guide(twin: Model, few: torch.Tensor, *, half: bool, compiled: bool) -> Model:
    """A quick copy of the twin, which only shows the way; the twin itself where there is no faithful copy."""
    try:
        return searcher(twin, half=half, compiled=compiled and isinstance(twin, nn.Module), probe=few)
    except InputError:
        return twin


def fixed_codebook(model: Model) -> dict[str, Any] | None:
    """The settings of the model's transform, if that is a fixed codebook."""
    transform: Any = getattr(model, "transform", None)
    return transform.settings() if is_ours(transform) and type(transform).__name__ == "FixedCodebook" else None
