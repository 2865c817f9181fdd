import json
import os

import numpy as np
import pytest

from linocut.errors import InputError
from linocut.theory.figures import draw, drawn_zero, read_results

pytest.importorskip("matplotlib")


def row(eps, proven):
    return {"eps_levels": eps, "proven": proven, "attacked": proven + 1}


RESULTS = {
    "gpu": None,
    "cpu": "a processor",
    "date": "2026-01-01T00:00:00+00:00",
    "size": "small",
    "best_fixed_on_varied": {"ceiling_percent": 60},
    "studies": [
        {"study": {"contrast": contrast, "codebook": codebook}, "curve": [row(0, 90), row(10, 80)]}
        for contrast in (None, 64)
        for codebook in ("adaptive", [0, 255])
    ],
}


def test_pictures_are_written(tmp_path):
    paths = draw(tmp_path / "new", drawn_zero(), RESULTS)
    assert [path.name for path in paths] == ["mnist_g.png", "proof.png", "certified.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    assert len(draw(tmp_path, None, None)) == 2


def test_a_picture_that_cannot_be_written_keeps_the_old_one(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    draw(tmp_path, None, None)
    before = (tmp_path / "proof.png").read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        draw(tmp_path, None, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mnist_g.png", "proof.png"]
    assert (tmp_path / "proof.png").read_bytes() == before


def test_the_drawn_digit_has_black_white_and_grey():
    digit = drawn_zero()
    assert digit.min() == 0
    assert digit.max() == 255
    assert len(np.unique(digit)) > 10


def test_results_are_read(tmp_path):
    (tmp_path / "certified.json").write_text(json.dumps(RESULTS))
    assert read_results(tmp_path / "certified.json") == RESULTS


@pytest.mark.parametrize(
    "wrong",
    [
        "no JSON",
        "[]",
        "{}",
        json.dumps({**RESULTS, "studies": []}),
        json.dumps({**RESULTS, "studies": [{**RESULTS["studies"][0], "curve": []}]}),
        json.dumps({**RESULTS, "studies": [{**RESULTS["studies"][0], "curve": [{"eps_levels": 0, "proven": 1}]}]}),
        json.dumps({**RESULTS, "studies": [{**RESULTS["studies"][0], "study": None}]}),
        *(json.dumps({key: value for key, value in RESULTS.items() if key != missing}) for missing in RESULTS),
    ],
)
def test_other_files_are_refused(tmp_path, wrong):
    (tmp_path / "other.json").write_text(wrong)
    with pytest.raises(InputError, match=r"other\.json.*wanted the JSON file that benchmarks/certified\.py wrote"):
        read_results(tmp_path / "other.json")
