"""What a user asks for, turned into a case, a plan and a sample."""

import json
import logging
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from linocut.data import Images
from linocut.data import load as load_data
from linocut.data.loading import root_of
from linocut.errors import InputError
from linocut.evaluation.balls import Norm, balls
from linocut.evaluation.case import Model, unit
from linocut.evaluation.hearing import batch_size_for, dressed, hear
from linocut.evaluation.judge import Watch
from linocut.evaluation.measures import pixel_digests
from linocut.evaluation.record import Record
from linocut.evaluation.run import ALONE
from linocut.evaluation.sample import Sample
from linocut.evaluation.stranger import imported, returned_by
from linocut.evaluation.workers import Workers
from linocut.models import load as load_model
from linocut.models import read_card
from linocut.models.devices import device_named

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Request:
    """One evaluation. `model` and `twin` are saved models or module:function; `preprocess` is module:function.

    `attack` names what comes after the suite, on what it left standing (see suites.plan).
    """

    model: str
    data: str
    out: Path
    suite: str = "strong"
    attack: str | None = None
    norm: Literal["linf", "l2", "both"] = "both"
    n: int | None = None
    eps: float | None = None
    preprocess: str | None = None
    twin: str | None = None
    root: Path | None = None
    split: str = "test"
    image_size: int | None = None
    batch_size: int | None = None
    seed: int = 0
    device: str | None = None
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False

    def __post_init__(self) -> None:
        if self.norm not in ("linf", "l2", "both"):
            raise InputError(f"norm must be linf, l2 or both, got {self.norm!r}")
        if self.precision not in ("float32", "bfloat16"):
            raise InputError(f"precision must be float32 or bfloat16, got {self.precision!r}")

    @property
    def norms(self) -> tuple[Norm, ...]:
        return ("linf", "l2") if self.norm == "both" else (self.norm,)

    def arguments(self) -> list[str]:
        """What asks for the same after `linocut`, from any folder; --out is left to the reader."""
        told = ["evaluate", _anywhere(self.model)]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("model", "out", "root") or value == field.default:
                continue
            option = "--" + field.name.replace("_", "-")
            told += [option] if value is True else [option, _anywhere(value) if field.name == "twin" else str(value)]
        root = _root(self)
        return told if root is None else [*told, "--root", _anywhere(root)]


def carry_out(request: Request, watch: Watch, workers: Workers = ALONE) -> Record:
    """The record of the evaluation that was asked for."""
    device = device_of(request.device, workers)
    images = _data(request, request.split)
    radii = balls(request.data, images.pixels[0].numel(), request.norms, request.eps)
    if request.preprocess is None:  # it may give the model what it takes
        for place in filter(None, (request.model, request.twin)):
            _require_channels(place, images)
    return hear(
        open_model(request.model, device, images.pixels[:2], request.preprocess),
        images,
        Sample(
            size=len(images),
            n=request.n if request.n is not None else len(images),
            batch_size=batch_size_for(device) if request.batch_size is None else request.batch_size,
            seed=request.seed,
        ),
        request.out,
        names={name: getattr(request, name) for name in ("model", "preprocess", "twin", "data", "split")},
        radii=radii,
        device=device,
        suite=request.suite,
        also=request.attack,
        twin=open_model(request.twin, device, images.pixels[:2]) if request.twin else None,
        seen=_training_images(request),
        half=request.precision == "bfloat16",
        compiled=request.compile,
        card=card_of(request.model),
        repeat=request.arguments(),
        watch=watch,
        workers=workers,
    )


def card_of(place: str) -> dict[str, Any] | None:
    """What the card of a saved model says; None for a model that a function returned."""
    return None if is_function(place) else json.loads(read_card(place).to_json())


def device_of(name: str | None, workers: Workers = ALONE) -> torch.device:
    """The device asked for, tried; left out or "auto", this worker's GPU where there is one."""
    device = device_named(name, workers.local_rank)
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, NotImplementedError, AssertionError) as reason:
        raise InputError(f"{name} cannot be used here ({str(reason).split('. ')[0]}): use --device cpu") from None
    return device


def open_model(place: str, device: torch.device, probe: torch.Tensor, preprocess: str | None = None) -> Model:
    """A model by folder or module:function, behind a stranger's preprocessing where one is named.

    `probe` is a few uint8 images, at which the preprocessing is asked whether it has a gradient.
    """
    made = returned_by(place) if is_function(place) else load_model(place)
    if isinstance(made, nn.Module):
        made = made.to(device).eval()
    few = unit(probe.to(device))
    made = dressed(made, None if preprocess is None else imported(preprocess), few)
    if isinstance(made, nn.Module) and device.type == "cuda":
        take_quick_layout(made, few)
    return made


def take_quick_layout(model: nn.Module, images: torch.Tensor) -> None:
    """Lays kernels out as GPUs convolve quickest, where the module then still takes images; their values stay."""
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    try:
        with torch.no_grad():
            model(images)
    except RuntimeError:  # a view of what a convolution gives, as many networks take before their last layer
        model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]


def _anywhere(place: str | Path) -> str:
    """A path that exists as one from the root of the file system; module:function as it is."""
    return str(Path(place).resolve()) if Path(place).exists() else str(place)


def is_function(place: str) -> bool:
    """Whether a model is named by module:function and not by its folder."""
    return ":" in place and not Path(place).exists()


def _data(request: Request, split: str) -> Images:
    return load_data(request.data, root=_root(request), split=split, image_size=_image_size(request))


def _root(request: Request) -> str | Path | None:
    """The folder of data sets that was named, or else that of the environment."""
    return root_of(request.data, request.root)


def _image_size(request: Request) -> int | None:
    """The side asked for, or else the one at which a saved model was trained on this data set."""
    if request.image_size is not None or not Path(request.model).is_dir():
        return request.image_size
    card = read_card(request.model).card
    return card.image_size if card.data_set == request.data else None


def _require_channels(place: str, images: Images) -> None:
    """Nothing, or an error where a saved model was made for grey images and these have colours, or the reverse."""
    if is_function(place):
        return
    wanted, found = read_card(place).card.architecture.in_channels, images.pixels.shape[1]
    if wanted != found:
        raise InputError(f"{place} takes images of {wanted} channels, these have {found}: name a model of these data")


def _training_images(request: Request) -> frozenset[bytes] | None:
    """Digests of the data set's training images, where test images are judged and the training ones are there."""
    if request.split != "test":
        return None
    try:
        return frozenset(pixel_digests(_data(request, "train").pixels))
    except InputError as reason:  # not there, or damaged: the reader is told which
        LOG.warning("whether judged images were trained on is not asked: %s", reason)
        return None
