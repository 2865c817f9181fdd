"""Networks in folders as Hugging Face's tools lay them out: config.json, model.safetensors, README.md."""

import json
from pathlib import Path
from typing import Any

from linocut.errors import InputError
from linocut.files import write_whole
from linocut.models.card import Card, SavedCard
from linocut.models.defended import Defended
from linocut.models.store import CARD_FILE, CONFIG_FILE, load, pack

WEIGHTS_FILE, README_FILE = "model.safetensors", "README.md"
LONGEST_SETTING = 100  # characters


def save_pretrained(folder: str | Path, defended: Defended, card: Card) -> None:
    """Write the three files. config.json comes last: weights that it does not name by hash are refused on loading."""
    place = Path(folder)
    if (place / CARD_FILE).exists():
        raise InputError(f"{place} holds a network of another layout ({CARD_FILE}): choose another folder")
    saved, weights = pack(defended, card, WEIGHTS_FILE)
    config = saved.to_json()
    write_whole(place / WEIGHTS_FILE, weights)
    write_whole(place / README_FILE, readme(saved).encode())
    write_whole(place / CONFIG_FILE, config)


def from_pretrained(folder: str | Path) -> Defended:
    """The network in a local folder, in eval mode on the CPU."""
    if not Path(folder).is_dir():
        raise InputError(f"{folder} is no folder here; nothing is downloaded: fetch it first, then give its path")
    return load(folder)


def readme(saved: SavedCard) -> str:
    """The model card for people, all of it from the card for machines."""
    card, named = saved.card, saved.card.architecture
    front, sides = "none", f"{card.image_size},{card.image_size}" if card.image_size else "H,W"
    if saved.transform is not None:
        settings = ", ".join(f"{key}={_shown(value)}" for key, value in saved.transform[1].items())
        front = f"{saved.transform[0]}({settings})"
    lines = [
        "---",
        "library_name: linocut",
        "pipeline_tag: image-classification",
        "tags: [adversarial-robustness, pytorch]",
        "---",
        f"# {named.name}" + (f" on {card.data_set}" if card.data_set else ""),
        "",
        f"- network: {named.name}, {named.in_channels} channels, {named.num_classes} classes",
        f"- transform: {front}",
        f"- input: float32 (B,{named.in_channels},{sides}) in [0,1]; output: logits",
        f"- weights: SHA-256 {saved.weights_sha256}",
        *(f"- {key}: {json.dumps(value)}" for key, value in card.metrics.items()),
        "",
        "```python",
        "from linocut.models import Defended",
        "",
        'model = Defended.from_pretrained("path/to/this/folder")',
        "```",
        "",
        "The transform is an empirical defence: judge it with `linocut evaluate`, which says what its numbers rest on.",
        "",
    ]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    """A setting as people read it; a whole codebook is not for them."""
    text = json.dumps(value)
    return text if len(text) <= LONGEST_SETTING else f"<{len(value)} entries, see {CONFIG_FILE}>"
