"""A sheet of a data set's samples: as they were prepared, and as its preset's transform paints them."""

from pathlib import Path

from PIL import Image

from linocut.data import Images
from linocut.data.contact_sheet import choose_samples, contact_sheet
from linocut.data.images import save_png
from linocut.recipes.transform_files import prepare_folder
from linocut.transform.apply import as_levels
from linocut.transform.modules import EssentialFeatures
from linocut.transform.presets import preset_settings

STAND_INS = {"digits": "mnist", "folder": "imagenette"}  # presets for sets that the paper does not have


def write_sheet(path: Path, images: Images, seed: int) -> None:
    """Write the sheet as a PNG file."""
    prepare_folder(path.parent)
    save_png(path, sample_sheet(images, seed))


def sample_sheet(images: Images, seed: int) -> Image.Image:
    """Random samples of every class with its name; an .npz file may hold anything, so no preset is tried on it."""
    chosen = choose_samples(images, seed)
    rows = [(f"{images.name} {images.split}, prepared", images.pixels[chosen])]
    if images.name != "npz":
        preset = STAND_INS.get(images.name, images.name)
        # Sixty pictures are not worth the wait while a faster backend is compiled; the bits are the same.
        transform = EssentialFeatures(**preset_settings(preset, images.pixels.shape[-1]), backend="torch")
        rows.append((f"transformed with the {preset} preset", as_levels(transform(images.unit(chosen)))))
    return contact_sheet(rows, [images.classes[int(images.labels[i])] for i in chosen])
