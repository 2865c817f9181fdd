"""Images beside the rows, in safetensors files that are whole or absent; one file a batch and entry.

    images/natural/00003.safetensors              batch 3: example (B), label (B), pixels uint8 (B,C,H,W)
    images/linf.pgd-ce-1/00003.safetensors        the kept adversarial images: example (K), image float32 (K,C,H,W)
    figures/linf.pgd-ce-1/00003.safetensors       of the first examples only, what figures need:
        example (G), trace float32 (G,S) the loss at each step, image (G,C,H,W),
        transformed (G,C,H,W) what the network saw, palette (G,K,C) and num_colors (G) where the transform has them

The figures of the entry "clean" hold the natural images. A row's `image` is the digest of its kept image,
so that a flipped bit is seen.
"""

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from linocut.errors import InputError
from linocut.evaluation import xz
from linocut.files import write_whole

Tensors = dict[str, torch.Tensor]


def path_of(folder: Path, kind: str, entry: str, batch: int) -> Path:
    """Where a batch's shard lies; kind is "images" or "figures"."""
    return folder / kind / entry.replace("/", ".") / f"{batch:05d}.safetensors"


def all_of(folder: Path, kind: str, entry: str) -> list[Path]:
    """The shards of an entry, packed or not, by batch; not what a killed process left unfinished."""
    found = path_of(folder, kind, entry, 0).parent.glob("[0-9]*.safetensors*")
    return sorted(path for path in found if path.suffix in (".safetensors", xz.SUFFIX))


def write(path: Path, tensors: Tensors) -> None:
    """Writes a shard so that a crash leaves the old one or the new one; a name that ends in .xz is compressed."""
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    write_whole(path, xz.compressed(content) if path.suffix == xz.SUFFIX else content)


def read(path: Path) -> Tensors:
    """The tensors of a shard, on the CPU."""
    try:
        content = path.read_bytes()
        return load(xz.decompressed(content, path) if path.suffix == xz.SUFFIX else content)
    except FileNotFoundError:
        raise InputError(f"{path} is missing: its rows claim images that were not kept") from None
    except (SafetensorError, OSError) as reason:
        raise InputError(f"{path} cannot be read ({reason}): it is damaged") from None


def digest(image: torch.Tensor) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of an image's bytes."""
    return hashlib.sha256(image.detach().cpu().contiguous().numpy().tobytes()).hexdigest()[:16]


def images_of(folder: Path, entry: str, batch: int) -> dict[int, torch.Tensor]:
    """The kept adversarial images of a batch and entry, by example."""
    shard = read(path_of(folder, "images", entry, batch))
    return dict(zip(shard["example"].tolist(), shard["image"], strict=True))
