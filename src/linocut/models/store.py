"""Networks on disk: a folder of one card and one weights file, never a pickle."""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from linocut.errors import InputError
from linocut.files import write_whole
from linocut.models.card import MOST_BYTES, Card, SavedCard
from linocut.models.defended import Defended
from linocut.models.tensors import read_tensors, shapes_of, without_loss

if TYPE_CHECKING:
    from linocut.transform.modules import FixedCodebook

CARD_FILE = "card.json"
CONFIG_FILE = "config.json"  # its name in the folders of pretrained.py
TRANSFORMS = ("AdaptiveBlur", "AdaptiveCodebook", "EssentialFeatures", "FixedCodebook")


def save(path: str | Path, defended: Defended, card: Card) -> None:
    """Write the network and its card into the folder `path`, replacing the one that stood there in one step.

    The weights' file is named by its hash and the card by `card.json`: renaming the card into place is the
    moment of change, and before it the old pair is whole.
    """
    folder = Path(path)
    saved, content = pack(defended, card)
    text = saved.to_json()
    write_whole(folder / saved.weights_file, content)
    write_whole(folder / CARD_FILE, text)
    for old in folder.glob("weights-*.safetensors"):
        if old.name != saved.weights_file:
            old.unlink(missing_ok=True)


def pack(defended: Defended, card: Card, weights_file: str | None = None) -> tuple[SavedCard, bytes]:
    """The card as it is to lie on disk and the bytes of the weights, whose file is named by its hash if by nothing.

    A tensor whose values are all halves is stored in half precision; load gives back the same bits.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in defended.model.state_dict().items()}
    fits(tensors, card.architecture.outline(), "the network to be saved")
    import safetensors.torch  # only where weights are written: `import linocut` needs torch and NumPy alone

    content = safetensors.torch.save({name: without_loss(tensor) for name, tensor in tensors.items()})
    digest = hashlib.sha256(content).hexdigest()
    saved = SavedCard(
        card=card,
        transform=describe_transform(defended.transform),
        mean=None if defended.mean is None else defended.mean.flatten().tolist(),
        std=None if defended.std is None else defended.std.flatten().tolist(),
        weights_file=weights_file or f"weights-{digest[:16]}.safetensors",
        weights_bytes=len(content),
        weights_sha256=digest,
    )
    text = saved.to_json()
    SavedCard.from_json(text, "the card to be saved")  # what could not be loaded is not written
    if len(text) > MOST_BYTES:
        raise InputError(
            f"the card has {len(text)} bytes, the most is {MOST_BYTES}: keep long logs in files of their own"
        )
    return saved, content


def read_card(path: str | Path) -> SavedCard:
    """The checked card of a saved network, without its weights."""
    file = Path(path) / CARD_FILE
    if not file.exists() and (Path(path) / "model" / CARD_FILE).exists():
        raise InputError(f"{path} is the folder of a training: its network is {Path(path) / 'model'}")
    if not file.exists() and (Path(path) / CONFIG_FILE).exists():
        file = Path(path) / CONFIG_FILE
    try:
        with open(file, "rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}; wanted a folder that linocut saved") from error
    if len(content) > MOST_BYTES:
        raise InputError(f"{file} is longer than {MOST_BYTES} bytes: not a card")
    return SavedCard.from_json(content, str(file))


def load(path: str | Path) -> Defended:
    """The network saved in the folder `path`, in eval mode on the CPU; what does not fit is an InputError."""
    saved = read_card(path)
    transform = None if saved.transform is None else rebuild_transform(*saved.transform, source=str(path))
    network = saved.card.architecture.outline()
    tensors = read_tensors(
        Path(path) / saved.weights_file,
        shapes_of(network.state_dict()),
        saved.weights_bytes,
        saved.weights_sha256,
    )
    network.load_state_dict(tensors, assign=True)
    for parameter in network.parameters():
        parameter.requires_grad_()
    return Defended(transform, network, saved.mean, saved.std).eval()


def fits(tensors: dict[str, torch.Tensor], network: nn.Module, what: str) -> None:
    """Raise InputError unless `tensors` has exactly the names, dtypes and shapes of the network's state."""
    wanted, got = shapes_of(network.state_dict()), shapes_of(tensors)
    for name in sorted(wanted.keys() | got.keys()):
        if wanted.get(name) != got.get(name):
            raise InputError(
                f"{what} does not fit its architecture at {name!r}: "
                f"got {got.get(name, 'nothing')}, wanted {wanted.get(name, 'nothing')}"
            )


def describe_transform(transform: nn.Module | None) -> tuple[str, dict[str, Any]] | None:
    """The class and the settings of a transform, from which it can be rebuilt."""
    if transform is None:
        return None
    name = type(transform).__name__
    if not is_ours(transform):
        raise InputError(f"a {name} cannot be saved with a network, only {', '.join(TRANSFORMS)}")
    return name, transform.settings()  # type: ignore[operator]


def is_ours(transform: object) -> bool:
    """Whether it is one of TRANSFORMS, and no stranger's class of such a name."""
    kind = type(transform)
    return kind.__name__ in TRANSFORMS and kind.__module__.startswith("linocut.")


def rebuild_transform(name: str, settings: dict[str, Any], source: str) -> nn.Module:
    """The transform of this class, one of TRANSFORMS, with these settings; `source` names their origin."""
    with _told(name, source):
        return _transform_class(name, source)(**settings)


def fit_transform(
    name: str, images: Any, fit: Mapping[str, Any], settings: Mapping[str, Any], source: str
) -> "FixedCodebook":
    """The transform of this class made of training images; `settings` are those that no image decides."""
    if not hasattr(_transform_class(name, source), "fit"):
        raise InputError(f"{source}: only a FixedCodebook is fitted to images, not {name}")
    if not settings.keys().isdisjoint({"colors", "origin"}):
        raise InputError(f"{source}: colors and origin come from the images: leave out either them or fit")
    with _told(name, source):
        found = _transform_class(name, source).fit(images, **fit)
        return type(found)(**{**found.settings(), **settings})


def _transform_class(name: str, source: str) -> Any:
    if name not in TRANSFORMS:
        raise InputError(f"{source} names the transform {name!r}, known are {', '.join(TRANSFORMS)}")
    from linocut.transform import modules

    return getattr(modules, name)


@contextlib.contextmanager
def _told(name: str, source: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (TypeError, AttributeError, ValueError, OverflowError) as error:
        raise InputError(f"{source}: {name} cannot be made of these settings: {error}") from error
