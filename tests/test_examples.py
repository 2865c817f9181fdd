"""The examples run as they stand."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from linocut.data import load

EXAMPLES = Path(__file__).parents[1] / "examples"
PUBLISHED = Path(__file__).parents[1] / "docs" / "results" / "published.json"


def run(*arguments, example="dataloader.py"):
    return subprocess.run([sys.executable, EXAMPLES / example, *arguments], capture_output=True, text=True)


@pytest.mark.full
def test_the_places_are_compared():
    pytest.importorskip("sklearn")
    done = run("--count", "256", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "images a second" in done.stdout
    places = [line.split("  ")[0] for line in done.stdout.splitlines()[:-1]]
    assert len(places) >= 2
    assert done.stdout.splitlines()[-1].removeprefix("take: ") in places


@pytest.mark.full
def test_a_folder_is_painted_by_several_processes(tmp_path):
    dice = np.random.default_rng(0)
    for name in ("a/0.png", "a/1.png", "b/0.png", "c.png"):
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(dice.integers(0, 256, (9, 9, 3), dtype=np.uint8)).save(path)
    done = run("--folder", tmp_path / "pictures", "--out", tmp_path / "out", "--processes", "2")
    assert done.returncode == 0, done.stderr
    painted = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.png")}
    assert painted == {"a/0.png", "a/1.png", "b/0.png", "c.png"}


def write_signs(folder, annotations, names):
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"]
    for number, name in enumerate(names):
        Image.new("RGB", (32, 32), (60 + number,) * 3).save(folder / name)
        rows.append(f"{name};32;32;0;0;31;31;{int(folder.name) if folder.name.isdigit() else 0}")
    annotations.write_text("\n".join(rows) + "\n")


def test_gtsrb_is_thinned_to_every_tenth_frame_and_twelfth_test_image(tmp_path):
    full, thinned = tmp_path / "full", tmp_path / "thinned"
    for label in range(43):
        folder = full / "GTSRB" / "Final_Training" / "Images" / f"{label:05d}"
        write_signs(
            folder, folder / f"GT-{label:05d}.csv", [f"0000{t}_000{f:02d}.ppm" for t in (0, 1) for f in (0, 9, 20)]
        )
    tests = full / "GTSRB" / "Final_Test" / "Images"
    write_signs(tests, full / "GT-final_test.csv", [f"{number:05d}.ppm" for number in range(25)])
    for _ in range(2):  # again over what lies there
        done = run(full, thinned, example="thin_gtsrb.py")
        assert done.stdout.startswith("172 training and 3 test images"), done.stderr
    train, test = (load("gtsrb", thinned, split, cache=False) for split in ("train", "test"))
    assert train.pixels[:4, 0, 0, 0].tolist() == [60, 62, 63, 65]
    assert test.pixels[:, 0, 0, 0].tolist() == [60, 72, 84]
    wrong = run(tmp_path / "nothing", thinned, example="thin_gtsrb.py")
    assert "holds no GTSRB" in wrong.stderr


def test_the_published_part_of_gtsrb_is_the_thinned_one(data_root, tmp_path):
    if not (data_root / "GTSRB").is_dir():
        pytest.skip(f"GTSRB is not in {data_root}")
    done = run(data_root, tmp_path / "thinned", example="thin_gtsrb.py")
    assert "3921 training and 1053 test images" in done.stdout
    [judged] = {json.loads(PUBLISHED.read_text())["data"]["gtsrb"]["hash"]}
    assert load("gtsrb", tmp_path / "thinned", "test").sha256 == judged
