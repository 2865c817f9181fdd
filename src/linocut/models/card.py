"""The card beside a network's weights: what it is, how it was made, and the hash its weights must have."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from linocut.errors import InputError
from linocut.models.architecture import Architecture
from linocut.models.seal import sealed, unsealed

FORMAT = "linocut-model-1"
MOST_BYTES = 1 << 20
LARGEST = 1e30  # of a mean or std: whatever is larger, infinity among it, is no number of a picture
FIELDS: dict[str, tuple[type, ...]] = {
    "format": (str,),
    "architecture": (dict,),
    "transform": (dict, type(None)),
    "mean": (list, type(None)),
    "std": (list, type(None)),
    "data_set": (str, type(None)),
    "classes": (list,),
    "recipe": (dict,),
    "metrics": (dict,),
    "weights": (dict,),
}


@dataclass(frozen=True, kw_only=True)
class Card:
    """What the maker of a network says of it. Recipe and metrics are free, as long as JSON can hold them."""

    architecture: Architecture
    data_set: str | None = None
    classes: tuple[str, ...] = ()
    recipe: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def image_size(self) -> int | None:
        """The side of the images it was trained on, where its recipe says so."""
        side = self.recipe.get("image_size")
        return side if isinstance(side, int) else None


@dataclass(frozen=True, kw_only=True)
class SavedCard:
    """A card as it lies on disk: with the front of the network and the name, size and hash of its weights."""

    card: Card
    transform: tuple[str, dict[str, Any]] | None
    mean: list[float] | None
    std: list[float] | None
    weights_file: str
    weights_bytes: int
    weights_sha256: str

    def to_json(self) -> bytes:
        card = self.card
        front = self.transform and {"class": self.transform[0], "settings": self.transform[1]}
        weights = {"file": self.weights_file, "bytes": self.weights_bytes, "sha256": self.weights_sha256}
        content = {
            "format": FORMAT,
            "architecture": asdict(card.architecture),
            "transform": front,
            "mean": self.mean,
            "std": self.std,
            "data_set": card.data_set,
            "classes": list(card.classes),
            "recipe": dict(card.recipe),
            "metrics": dict(card.metrics),
            "weights": weights,
        }
        return sealed(content)

    @classmethod
    def from_json(cls, text: bytes, source: str) -> "SavedCard":
        """The card in `text`, every field checked; `source` names the file in complaints."""
        content = unsealed(text, source)
        _check_fields(source, "the card", content, FIELDS)
        if content["format"] != FORMAT:
            raise InputError(f"{source} has format {content['format']!r}, this version reads {FORMAT!r}")
        named = content["architecture"]
        _check_fields(source, "architecture", named, {"name": (str,), "num_classes": (int,), "in_channels": (int,)})
        front, weights = content["transform"], content["weights"]
        if front is not None:
            _check_fields(source, "transform", front, {"class": (str,), "settings": (dict,)})
        _check_fields(source, "weights", weights, {"file": (str,), "bytes": (int,), "sha256": (str,)})
        if weights["file"] in ("", ".", "..") or set(weights["file"]) & set("/\\\0"):
            raise InputError(f"{source} names {weights['file']!r} as weights: wanted a plain file name beside the card")
        for name in ("mean", "std"):
            values, channels = content[name], named["in_channels"]
            if values is not None and not (_all_numbers(values) and len(values) == channels):
                raise InputError(f"{source}: {name} must be {channels} numbers, one a channel, got {values!r:.80}")
        if not all(isinstance(name, str) for name in content["classes"]):
            raise InputError(f"{source}: classes must be a list of names")
        card = Card(
            architecture=Architecture(**named),
            data_set=content["data_set"],
            classes=tuple(content["classes"]),
            recipe=content["recipe"],
            metrics=content["metrics"],
        )
        return cls(
            card=card,
            transform=front and (front["class"], front["settings"]),
            mean=content["mean"],
            std=content["std"],
            weights_file=weights["file"],
            weights_bytes=weights["bytes"],
            weights_sha256=weights["sha256"],
        )


def _check_fields(source: str, part: str, got: Any, wanted: Mapping[str, tuple[type, ...]]) -> None:
    if not isinstance(got, dict) or set(got) != set(wanted):
        found = sorted(map(str, got)) if isinstance(got, dict) else type(got).__name__
        raise InputError(f"{source}: {part} must have exactly the fields {sorted(wanted)}, got {found}")
    for name, kinds in wanted.items():
        if not isinstance(got[name], kinds) or isinstance(got[name], bool):
            kind = " or ".join("null" if k is type(None) else k.__name__ for k in kinds)
            raise InputError(f"{source}: {part}.{name} must be {kind}, got {got[name]!r:.80}")


def _all_numbers(values: list) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) <= LARGEST for v in values)
