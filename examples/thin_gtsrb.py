"""The tenth of GTSRB on which the published networks were trained and judged, from the official files.

    python examples/thin_gtsrb.py DATA THINNED
    linocut evaluate MODEL --data gtsrb --root THINNED --suite paper --out OUT

Of every track the frames 0, 10 and 20 stay, of the test images those whose number 12 divides. Only the annotations are
written anew; images are linked.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

TRAINING, TEST = Path("GTSRB/Final_Training/Images"), Path("GTSRB/Final_Test/Images")
ANNOTATIONS = "GT-final_test.csv"


def in_training(name: str) -> bool:
    """Whether a training image stays: 00007_00010.ppm is frame 10 of track 7."""
    return int(Path(name).stem.rpartition("_")[2]) % 10 == 0


def in_test(name: str) -> bool:
    """Whether a test image stays: 00024.ppm is number 24."""
    return int(Path(name).stem) % 12 == 0


def thin(annotations: Path, images: Path, thinned: Path, kept: Callable[[str], bool]) -> int:
    """Writes the kept lines of the annotations to `thinned`, links their images beside; how many there are."""
    head, *lines = annotations.read_text(encoding="ascii").splitlines(keepends=True)
    names = {line: line.partition(";")[0] for line in lines}
    staying = [line for line in lines if kept(names[line])]
    thinned.parent.mkdir(parents=True, exist_ok=True)
    thinned.write_text(head + "".join(staying), encoding="ascii")
    return len([link(images / names[line], thinned.parent) for line in staying])


def link(image: Path, folder: Path) -> None:
    """Links an image into the folder, unless it is there."""
    if not (folder / image.name).exists():
        os.symlink(image.resolve(), folder / image.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that holds GTSRB/")
    parser.add_argument("thinned", type=Path, help="a new folder, for --root")
    told = parser.parse_args()
    train = 0
    for annotations in sorted((told.data / TRAINING).glob("*/GT-*.csv")):
        folder = told.thinned / TRAINING / annotations.parent.name
        train += thin(annotations, annotations.parent, folder / annotations.name, in_training)
    places = (told.data / "GTSRB", told.data, told.data / TEST)
    found = next((place / ANNOTATIONS for place in places if (place / ANNOTATIONS).is_file()), None)
    if train == 0 or found is None:
        raise SystemExit(f"{told.data} holds no GTSRB: wanted {TRAINING}/*/GT-*.csv and GTSRB/{ANNOTATIONS}")
    test = thin(found, told.data / TEST, told.thinned / TEST / ANNOTATIONS, in_test)
    print(f"{train} training and {test} test images, before dark ones are dropped: --root {told.thinned}")


if __name__ == "__main__":
    main()
