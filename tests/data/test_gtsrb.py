"""GTSRB's files and the paper's preparation of them."""

import numpy as np
import pytest
import torch

from linocut.data import load
from linocut.data.gtsrb import CLASSES
from linocut.errors import InputError

HEADER = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\n"


@pytest.fixture
def signs(tmp_path, random, write_picture):
    """Two images a class for training, one for testing, of which class 7's is too dark."""
    base = tmp_path / "GTSRB"
    test_rows = []
    for label in range(len(CLASSES)):
        folder = base / "Final_Training" / "Images" / f"{label:05d}"
        rows = []
        for i in range(2):
            write_picture(folder / f"00000_0000{i}.ppm", random.integers(100, 200, (40, 50, 3), np.uint8))
            rows.append(f"00000_0000{i}.ppm;50;40;5;6;44;33;{label}\n")
        (folder / f"GT-{label:05d}.csv").write_text(HEADER + "".join(rows))
        level = 20 if label == 7 else 120
        write_picture(base / "Final_Test" / "Images" / f"{label:05d}.ppm", np.full((30, 30, 3), level, np.uint8))
        test_rows.append(f"{label:05d}.ppm;30;30;0;0;29;29;{label}\n")
    (tmp_path / "GT-final_test.csv").write_text(HEADER + "".join(test_rows))
    return tmp_path


def test_both_splits_and_how_many_were_dropped(signs):
    train, test = load("gtsrb", signs, cache=False), load("gtsrb", signs, "test", cache=False)
    assert train.pixels.shape == (86, 3, 32, 32)
    assert train.labels.tolist() == sorted([*range(43)] * 2)
    assert test.labels.tolist() == [i for i in range(43) if i != 7]
    assert "1 of 43 images dropped, their mean intensity being below 50" in test.notes
    assert not any("dropped" in note for note in train.notes)


@pytest.mark.parametrize(("level", "kept"), [(49, 0), (50, 1)])
def test_an_image_of_mean_50_stays_and_one_of_49_goes(signs, write_picture, level, kept):
    write_picture(signs / "GTSRB/Final_Test/Images/00000.ppm", np.full((30, 30, 3), level, np.uint8))
    test = load("gtsrb", signs, "test", cache=False)
    assert (test.labels == 0).sum() == kept


def test_the_region_is_cropped_with_both_corners_and_padded_evenly_to_a_square(signs, write_picture):
    outside, inside = 200, 90
    pixels = np.full((40, 50, 3), outside, np.uint8)
    pixels[3:35, 4:20] = inside  # 32 rows of 16 columns
    write_picture(signs / "GTSRB/Final_Test/Images/00000.ppm", pixels)
    path = signs / "GT-final_test.csv"
    path.write_text(path.read_text().replace("00000.ppm;30;30;0;0;29;29;0", "00000.ppm;50;40;4;3;19;34;0"))
    bright = load("gtsrb", signs, "test", cache=False)
    assert (bright.labels == 0).sum() == 0, "the black padding counts: its mean is 45"
    pixels[3:35, 4:20] = 150
    write_picture(signs / "GTSRB/Final_Test/Images/00000.ppm", pixels)
    sign = load("gtsrb", signs, "test", cache=False).pixels[0]
    expected = torch.zeros(3, 32, 32, dtype=torch.uint8)
    expected[:, :, 8:24] = 150
    assert torch.equal(sign, expected)


@pytest.mark.parametrize("place", [".", "GTSRB", "GTSRB/Final_Test/Images"])
def test_the_test_annotations_are_found_where_people_put_them(signs, place):
    (signs / "GT-final_test.csv").rename(signs / place / "GT-final_test.csv")
    assert len(load("gtsrb", signs, "test", cache=False)) == 42


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("00000.ppm;30;30;0;0;30;29;0", "leaves"),
        ("00000.ppm;30;30;9;0;8;29;0", "leaves"),
        ("00000.ppm;30;30;-1;0;8;29;0", "leaves"),
        ("00000.ppm;30;30;0;0;29;29;43", "class 43"),
        ("00000.ppm;30;30;0;0;29;29", "line 2"),
        ("00000.ppm;thirty;30;0;0;29;29;0", "line 2"),
        ("../../../GT-final_test.csv;30;30;0;0;29;29;0", "elsewhere"),
        ("00000.ppm;31;30;0;0;29;29;0", "annotation"),
        ("gone.ppm;30;30;0;0;29;29;0", "gone"),
        ("x" * 200_000 + ";30;30;0;0;29;29;0", "field"),
    ],
)
def test_a_wrong_annotation_is_named(signs, wrong, reason):
    path = signs / "GT-final_test.csv"
    path.write_text(path.read_text().replace("00000.ppm;30;30;0;0;29;29;0", wrong))
    with pytest.raises(InputError, match=reason):
        load("gtsrb", signs, "test", cache=False)


@pytest.mark.parametrize("cache", [True, False])
def test_a_missing_picture_is_named_with_and_without_a_cache(signs, cache):
    (signs / "GTSRB/Final_Test/Images/00003.ppm").unlink()
    with pytest.raises(InputError, match=r"00003\.ppm"):
        load("gtsrb", signs, "test", cache=cache)


@pytest.mark.parametrize(
    "gone", ["GTSRB/Final_Training/Images/00013/GT-00013.csv", "GT-final_test.csv", "GTSRB/Final_Test/Images"]
)
def test_what_is_missing_is_named(signs, gone):
    (signs / gone).rename(signs / "hidden")
    with pytest.raises(InputError, match="linocut data download gtsrb"):
        load("gtsrb", signs, "train" if "Training" in gone else "test", cache=False)


def test_another_annotation_makes_another_cache(signs):
    first = load("gtsrb", signs)
    path = signs / "GTSRB/Final_Training/Images/00001/GT-00001.csv"
    path.write_text(path.read_text().replace(";5;6;44;33;", ";6;6;44;33;"))
    assert load("gtsrb", signs).sha256 != first.sha256
