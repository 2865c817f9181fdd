"""Files through the transform: the right pixels, whatever the batches were."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from linocut.data.images import read_image
from linocut.errors import InputError
from linocut.recipes import transform_files
from linocut.recipes.file_plan import plan
from linocut.recipes.transform_summary import as_record, summarize
from linocut.transform import reference
from linocut.transform.modules import EssentialFeatures

CPU = torch.device("cpu")


@pytest.fixture
def features():
    return EssentialFeatures(backend="torch")


@pytest.fixture
def folder(tmp_path):
    """Twelve small pictures of four shapes, and one file that is none."""
    dice = np.random.default_rng(0)
    (tmp_path / "in").mkdir()
    for i in range(12):
        shape = [(9, 12, 3), (12, 9, 3), (9, 12), (1, 30, 3)][i % 4]
        Image.fromarray(dice.integers(0, 256, shape, dtype=np.uint8)).save(tmp_path / "in" / f"{i:02}.png")
    (tmp_path / "in" / "bad.png").write_bytes(b"no picture")
    return tmp_path / "in"


def run(folder, out, features, **options):
    transform_files.prepare_folder(out)
    return list(transform_files.transform_files(plan([str(folder)], out, **options), features, CPU))


def test_each_output_is_the_reference_rounded_to_bytes(folder, tmp_path, features):
    outcomes = run(folder, tmp_path / "out", features)
    assert len(outcomes) == 13
    for outcome in outcomes:
        if outcome.problem:
            continue
        pixels, _ = read_image(outcome.job.source)
        y, _ = reference.adaptive_blur(reference.enter(pixels.numpy() / np.float32(255)), features.blur_rule)
        painted, _ = reference.paint(y, reference.find_palette(y, features.palette_rule).colors)
        wanted = np.rint(painted / 8).astype(np.uint8)
        got, _ = read_image(outcome.job.target)
        assert (got.numpy() == wanted).all()
        assert outcome.num_colors == len(np.unique(wanted.reshape(len(wanted), -1), axis=1).T)


def test_a_bad_file_is_told_and_stops_no_other(folder, tmp_path, features):
    outcomes = run(folder, tmp_path / "out", features)
    [bad] = [outcome for outcome in outcomes if outcome.problem]
    assert bad.job.source.name == "bad.png"
    assert bad.problem.startswith("not an image")
    assert len(list((tmp_path / "out").glob("*.png"))) == 12


def test_batches_change_nothing(folder, tmp_path, features, monkeypatch):
    run(folder, tmp_path / "whole", features)
    monkeypatch.setattr(transform_files, "MOST_IN_A_BATCH", 1)
    run(folder, tmp_path / "single", features)
    monkeypatch.setattr(transform_files, "MOST_IN_A_BATCH", 64)
    monkeypatch.setattr(transform_files, "WAITING_PIXELS", 150)
    run(folder, tmp_path / "crowded", features)
    run(folder, tmp_path / "explained", features, explain=True)
    for file in (tmp_path / "whole").glob("*.png"):
        for other in ("single", "crowded", "explained"):
            assert (tmp_path / other / file.name).read_bytes() == file.read_bytes()


class Pool:
    """Decodes at once, or only when the result is asked for; `running` counts what was taken on and not taken away."""

    def __init__(self, at_once):
        self.at_once, self.running, self.most = at_once, 0, 0

    def submit(self, decode, job):
        self.running += 1
        self.most = max(self.most, self.running)
        picture = transform_files._Picture(job=job, pixels=torch.zeros(1, 10, job), notes=())
        return SimpleNamespace(done=lambda: self.at_once, result=lambda: picture)


@pytest.mark.parametrize(
    ("at_once", "width", "most"),
    [(True, 1, 9), (False, 1, 9), (True, 10, 3), (False, 10, 5), (True, 50, 2), (False, 50, 4)],
)
def test_large_pictures_do_not_pile_up(monkeypatch, at_once, width, most):
    """Of four workers and room for 150 pixels: small pictures are read eight ahead, large ones are not."""
    monkeypatch.setattr(transform_files, "WAITING_PIXELS", 150)
    pool, jobs = Pool(at_once), [width] * 30
    seen = 0
    for decoded in transform_files._in_order(pool, jobs, 4):
        assert decoded.job == width
        pool.running -= 1
        seen += 1
        if seen == 1 and not at_once:
            assert pool.most == 4, "nobody knows yet how large the pictures are"
    assert (seen, pool.most) == (30, most)


def test_halves_round_to_even():
    eighths = torch.arange(2041)
    unit = eighths.float() / 2040
    wanted = torch.from_numpy(np.rint(eighths.numpy() / 8)).to(torch.uint8)
    assert torch.equal(transform_files.as_levels(unit), wanted)


def test_a_full_disk_stops_the_run_and_leaves_no_half_file(folder, tmp_path, features, monkeypatch):
    def full(self, handle, **options):
        handle.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(InputError, match="No space left"):
        run(folder, tmp_path / "out", features)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be made"):
        transform_files.prepare_folder(tmp_path / "file" / "out")


def test_the_summary_counts(folder, tmp_path, features):
    outcomes = run(folder, tmp_path / "out", features)
    summary = summarize(outcomes, 2.0)
    assert (summary["images"], summary["skipped"], summary["images_per_second"]) == (12, 1, 6.0)
    colors = [outcome.num_colors for outcome in outcomes if not outcome.problem]
    assert summary["colors_min"] == min(colors)
    assert summary["colors_max"] == max(colors)
    assert {"input", "problem"} == set(as_record(next(o for o in outcomes if o.problem)))
    nothing = summarize([], 0.0)
    assert nothing["colors_mean"] is None
