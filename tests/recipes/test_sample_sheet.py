"""The sheet shows what was prepared and, below, what the transform makes of it."""

import numpy as np
import pytest

from linocut.data.contact_sheet import choose_samples, contact_sheet
from linocut.data.dataset import from_arrays
from linocut.errors import InputError
from linocut.recipes.sample_sheet import sample_sheet, write_sheet
from linocut.transform.apply import apply


def noise(name):
    pixels = np.random.default_rng(0).integers(0, 256, (30, 3, 16, 16), np.uint8)
    labels = np.arange(30) % 3
    return from_arrays(pixels=pixels, labels=labels, classes=("cat", "dog", "owl"), name=name, split="train")


@pytest.mark.parametrize(
    ("name", "preset"), [("folder", "imagenette"), ("digits", "mnist"), ("cifar-10", "cifar-10"), ("npz", None)]
)
def test_samples_stand_above_what_the_preset_makes_of_them(name, preset):
    images = noise(name)
    chosen = choose_samples(images, seed=3)
    pixels = images.pixels[chosen]
    rows = [(f"{name} train, prepared", pixels)]
    if preset is not None:
        painted = [apply(each.permute(1, 2, 0).numpy(), preset=preset, image_size=16) for each in pixels]
        planes = pixels.new_tensor(np.stack(painted)).permute(0, 3, 1, 2)
        rows.append((f"transformed with the {preset} preset", planes))
    wanted = contact_sheet(rows, [images.classes[images.labels[i]] for i in chosen])
    assert np.array_equal(np.asarray(sample_sheet(images, seed=3)), np.asarray(wanted))


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match="cannot be made"):
        write_sheet(tmp_path / "file" / "sheet.png", noise("npz"), seed=0)
