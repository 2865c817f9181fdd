"""How large a reproduction is: the paper's own, three for a single GPU, one that a CPU does in minutes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from linocut.errors import InputError
from linocut.recipes.reproduce.shelf import Shelf
from linocut.recipes.reproduce.tables import PICTURES
from linocut.recipes.reproduce.work import Judgement, Precision, Work
from linocut.recipes.training import recipe
from linocut.recipes.training.rows import row_named, transform_for
from linocut.training.config import TrainingConfig

SIDES = {"small": 64, "slow": 64, "smoke": 32}  # of pictures, where a scale does not take the paper's
SMOKE: dict[str, Any] = {
    "architecture": "small-net",
    "epochs": 2,
    "batch_size": 32,
    "learning_rate": 0.1,
    "weight_decay": 5e-4,
    "schedule": "one-cycle",
    "milestones": (),
    "reset_every": 0,
}


@dataclass(frozen=True, kw_only=True)
class Numerics:
    """How numbers are held, chosen when a folder is begun and kept for it, whatever machine goes on."""

    precision: Precision
    search: Precision
    compile: bool

    @classmethod
    def on(cls, device: torch.device) -> "Numerics":
        """What suits the device: a GPU searches in bfloat16 and compiles."""
        fast = device.type == "cuda"
        low: Precision = "bfloat16" if fast else "float32"
        return cls(precision=low, search=low, compile=fast)


def paper(data_set: str, row: str, seed: int, shelf: Shelf, numerics: Numerics) -> Work:
    """The paper's recipe as it stands; suites `paper` and `strong` on every test image."""
    _require_the_papers(data_set)
    batch = 100 if data_set in PICTURES else 250
    config = replace(recipe(f"{data_set}/{row}"), seed=seed)
    return Work(
        data_set=data_set,
        row=row,
        config=config,
        judgements=(
            Judgement(suite="paper", n=None, batch_size=batch),
            Judgement(suite="strong", n=None, batch_size=batch, precision=numerics.search, compile=numerics.compile),
        ),
    )


def large(data_set: str, row: str, seed: int, shelf: Shelf, numerics: Numerics) -> Work:
    """Our fast-* recipe with the paper's network and picture size; judged as `small` is."""
    _require_the_papers(data_set)
    return _quick(data_set, row, seed, numerics)


def small(data_set: str, row: str, seed: int, shelf: Shelf, numerics: Numerics) -> Work:
    """Our fast-* recipe: WRN-16-4 for colour (pictures at 64 pixels), the MNIST network for grey; 20 epochs.

    `paper` on every test image, `strong` on 2,000 (500 of the pictures, 100 of the digits).
    """
    if data_set == "digits":
        return _digits(data_set, row, seed, judged=(None, 100))
    work = _quick(data_set, row, seed, numerics)
    if work.config.architecture != "madry-net":
        work = work.with_config(architecture="wrn-16-4")
    return work


def slow(data_set: str, row: str, seed: int, shelf: Shelf, numerics: Numerics) -> Work:
    """The network, images and suites of `small`, trained by the paper's recipe in the device's own formats."""
    work = small(data_set, row, seed, shelf, numerics)
    if data_set == "digits":
        return work
    quick, published = work.config, recipe(f"{data_set}/{row}")
    config = replace(
        published,
        architecture=quick.architecture,
        image_size=quick.image_size,
        transform=quick.transform,
        seed=seed,
        precision=quick.precision,
        compile=quick.compile,
        channels_last=quick.channels_last,
        half_weights=quick.half_weights,
    )
    return replace(work, config=config)


def smoke(data_set: str, row: str, seed: int, shelf: Shelf, numerics: Numerics) -> Work:
    """The same code on the smallest thing: 256 images of the set, or digits where its files are missing."""
    few = (20, 4)
    if data_set == "digits" or not shelf.holds(data_set):
        work = _digits(data_set, row, seed, judged=few).with_config(epochs=2)
        stand_in = "" if data_set == "digits" else f"; digits stand in for {data_set}, whose files are not there"
        return replace(work, train_images=256, note=f"a test of the code, its figures mean nothing{stand_in}")
    config = replace(recipe(f"{data_set}/{row}"), seed=seed)
    config = replace(config, **SMOKE, num_steps=min(2, config.num_steps))
    return Work(
        data_set=data_set,
        row=row,
        config=config,
        judgements=tuple(
            Judgement(suite=suite, n=n, batch_size=20) for suite, n in zip(("paper", "strong"), few, strict=True)
        ),
        train_images=256,
        note="a test of the code, its figures mean nothing",
    )


def demo(data_set: str, row: str, seed: int, shelf: Shelf, numerics: Numerics) -> Work:
    """Digits in three minutes: the suites `paper` and `fast` on the same 100 test images."""
    work = _digits(data_set, row, seed, judged=(100, 100))
    return replace(work, judgements=(work.judgements[0], replace(work.judgements[1], suite="fast")))


def at_size(config: TrainingConfig, row: str, side: int) -> TrainingConfig:
    """The config for images of another size, its transform rescaled with them."""
    transform = transform_for(row_named(row), config.data_set, side)
    return replace(config, image_size=side, transform=transform)


def _require_the_papers(data_set: str) -> None:
    if data_set == "digits":
        raise InputError("digits are not in the paper: take --scale small or smoke")


def _quick(data_set: str, row: str, seed: int, numerics: Numerics) -> Work:
    """Our fast-* recipe as it stands."""
    config = replace(recipe(f"fast-{data_set}/{row}"), seed=seed)
    many, batch = (500, 250) if data_set in PICTURES else (2000, 2000)
    # Sixteen bits send the MNIST network's gradients another way where its pooling layers find equals, behind some
    # transforms and not behind others; a row and its twin are to be searched alike.
    plain = config.architecture == "madry-net"
    search: Precision = "float32" if plain else numerics.search
    judged = partial(Judgement, batch_size=batch, precision=search, compile=numerics.compile and not plain)
    return Work(
        data_set=data_set,
        row=row,
        config=replace(config, precision=numerics.precision, compile=numerics.compile),
        judgements=(judged(suite="paper", n=None), judged(suite="strong", n=many)),
    )


def _digits(data_set: str, row: str, seed: int, judged: tuple[int | None, int | None]) -> Work:
    """The smoke recipe, judged at the radius it is trained for."""
    config = replace(recipe(f"smoke/{row}"), seed=seed)
    first, second = judged
    return Work(
        data_set=data_set,
        row=row,
        config=config,
        judgements=(
            Judgement(suite="paper", n=first, batch_size=100, eps=config.eps),
            Judgement(suite="strong", n=second, batch_size=100, eps=config.eps),
        ),
    )


def sized(scale: "Scale", side: int) -> "Scale":
    """The scale with RESISC45 and Imagenette at this size, a side in pixels; the files of other sets fix theirs."""

    def smaller(data_set: str, row: str, seed: int, shelf: Shelf, numerics: Numerics) -> Work:
        work = scale(data_set, row, seed, shelf, numerics)
        if work.config.data_set not in PICTURES:
            return work
        return replace(work, config=at_size(work.config, row, side))

    return smaller


Scale = Callable[[str, str, int, Shelf, Numerics], Work]
SCALES: dict[str, Scale] = {"smoke": smoke, "small": small, "slow": slow, "large": large, "paper": paper}


def scale_named(name: str, image_size: int | None = None) -> Scale:
    """The function of this scale; image_size: of RESISC45 and Imagenette, if not the scale's own."""
    if name not in SCALES:
        raise InputError(f"no scale is called {name!r}; there are {', '.join(SCALES)}")
    side = image_size or SIDES.get(name)
    return SCALES[name] if side is None else sized(SCALES[name], side)
