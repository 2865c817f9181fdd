"""GTSRB: PPM files and their CSV annotations, prepared as the paper says.

Paper: additional experimental details. The region of interest is cropped, padded to a square, resized to
32x32, and images of mean intensity below 50 are removed. Decided here, where the paper is silent: both
corners of the region belong to it (as in the benchmark's own sample code), the padding is black and
even on both sides, resampling is bilinear with antialiasing, and the mean is that of the prepared image.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from linocut.data.decoding import decoder, read_rgb
from linocut.data.places import damaged, find_folder, missing
from linocut.data.plan import Plan
from linocut.errors import InputError

SIZE = 32
DARKEST = 50
COLUMNS = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"
CLASSES = (
    "limit 20", "limit 30", "limit 50", "limit 60", "limit 70", "limit 80", "end of limit 80", "limit 100",
    "limit 120", "no overtaking", "no overtaking by lorries", "priority at next crossing", "priority road",
    "give way", "stop", "no vehicles", "no lorries", "no entry", "danger", "bend left", "bend right",
    "double bend", "uneven road", "slippery road", "road narrows right", "road works", "traffic signals",
    "pedestrians", "children", "cyclists", "ice or snow", "wild animals", "end of all limits", "turn right",
    "turn left", "straight ahead", "straight or right", "straight or left", "keep right", "keep left",
    "roundabout", "end of no overtaking", "end of no overtaking by lorries",
)  # fmt: skip


@dataclass(frozen=True)
class Sign:
    """One line of an annotation file: an image, its size, and the corners of the sign, both inside it."""

    path: Path
    size: tuple[int, int]
    region: tuple[int, int, int, int]
    label: int


def plan_gtsrb(root: Path, split: str, image_size: int | None) -> Plan:
    """The plan for one official split."""
    folder = find_folder(root, "gtsrb", ("GTSRB",))
    signs = _training_signs(folder, root) if split == "train" else _test_signs(folder, root)
    size = image_size or SIZE

    def decode(index: int) -> np.ndarray | None:
        prepared = prepare_sign(signs[index], size)
        return prepared if prepared.mean() >= DARKEST else None

    return Plan(
        name="gtsrb",
        split=split,
        classes=CLASSES,
        folder=folder,
        files=tuple(sign.path for sign in signs),
        labels=tuple(sign.label for sign in signs),
        shape=(3, size, size),
        decode=decode,
        settings={"preparation": "gtsrb 1", "regions": [sign.region for sign in signs], **decoder()},
        drops=f"dropped, their mean intensity being below {DARKEST}",
        notes=(f"region of interest, padded to a square with black, resized to {size}x{size}",),
    )


def prepare_sign(sign: Sign, size: int) -> np.ndarray:
    """The sign as uint8 (3, size, size)."""
    picture = read_rgb(sign.path)
    if picture.size != sign.size:
        raise damaged(sign.path, f"{picture.size} pixels", f"the {sign.size} of its annotation")
    left, top, right, bottom = sign.region
    width, height = right - left + 1, bottom - top + 1
    side = max(width, height)
    padded = Image.new("RGB", (side, side))
    padded.paste(picture.crop((left, top, right + 1, bottom + 1)), ((side - width) // 2, (side - height) // 2))
    resized = padded.resize((size, size), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))


def _training_signs(folder: Path, root: Path) -> list[Sign]:
    images = folder / "Final_Training" / "Images"
    if not images.is_dir():
        raise missing("gtsrb", images, root)
    signs: list[Sign] = []
    for label in range(len(CLASSES)):
        annotations = images / f"{label:05d}" / f"GT-{label:05d}.csv"
        if not annotations.is_file():
            raise missing("gtsrb", annotations, root)
        signs += _read_annotations(annotations, annotations.parent)
    return signs


def _test_signs(folder: Path, root: Path) -> list[Sign]:
    images = folder / "Final_Test" / "Images"
    if not images.is_dir():
        raise missing("gtsrb", images, root)
    # The archive of test annotations unpacks beside the folder GTSRB; people move it in different ways.
    for place in (folder, folder.parent, images):
        if (place / "GT-final_test.csv").is_file():
            return _read_annotations(place / "GT-final_test.csv", images)
    raise missing("gtsrb", folder.parent / "GT-final_test.csv", root)


def _read_annotations(path: Path, images: Path) -> list[Sign]:
    signs = []
    with path.open(newline="", encoding="ascii", errors="replace") as stream:
        rows = csv.DictReader(stream, delimiter=";")
        try:
            for row in rows:
                signs.append(_sign(row, images))
        except (KeyError, TypeError, ValueError, csv.Error) as error:
            raise InputError(f"{path} line {rows.line_num}: {error}; wanted {COLUMNS}") from error
    return signs


def _sign(row: dict[str, str], images: Path) -> Sign:
    name = row["Filename"]
    if Path(name).name != name:
        raise ValueError(f"the file name {name!r} leads elsewhere")
    width, height = int(row["Width"]), int(row["Height"])
    left, top, right, bottom = (int(row[f"Roi.{corner}"]) for corner in ("X1", "Y1", "X2", "Y2"))
    label = int(row["ClassId"])
    if not (0 <= left <= right < width and 0 <= top <= bottom < height):
        raise ValueError(f"the region {(left, top, right, bottom)} leaves the {width}x{height} image")
    if not 0 <= label < len(CLASSES):
        raise ValueError(f"class {label} of {len(CLASSES)}")
    return Sign(images / name, (width, height), (left, top, right, bottom), label)
