"""The examples run as they stand."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

EXAMPLE = Path(__file__).parents[1] / "examples" / "dataloader.py"


def run(*arguments):
    return subprocess.run([sys.executable, EXAMPLE, *arguments], capture_output=True, text=True)


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
