"""The command line as a user meets it: what is printed where, and the exit status."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import linocut
from linocut.cli import app


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    dice = np.random.default_rng(0)
    for name in ("a.png", "b.bmp"):
        Image.fromarray(dice.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(tmp_path / "in" / name)
    return tmp_path / "in"


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def transform(*arguments):
    return call("transform", *arguments, "--backend", "torch", "--device", "cpu")


def test_version():
    result = call("--version")
    assert result.exit_code == 0
    assert result.stdout.strip() == f"linocut {linocut.__version__}"


def test_python_m_linocut():
    done = subprocess.run([sys.executable, "-m", "linocut", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"linocut {linocut.__version__}"


def test_files_that_are_no_images_by_their_ending_are_told(folder, tmp_path):
    for name in ("IMG_1.HEIC", "README", ".hidden"):
        (folder / name).write_bytes(b"x")
    result = transform(folder, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert "2 other files were passed over (endings: .HEIC, none)" in result.stderr
    assert json.loads(transform(folder, "--out", tmp_path / "out", "--json").stdout)["passed_over"] == 2


def test_links_to_folders_that_are_not_followed_are_told(folder, tmp_path):
    (tmp_path / "more").mkdir()
    (folder / "link").symlink_to(tmp_path / "more")
    result = transform(folder, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert f"links to folders are not followed: {folder / 'link'}" in result.stderr
    result = transform(folder, "--out", tmp_path / "out", "--json")
    assert json.loads(result.stdout)["passed_over"] == 1
    assert "not followed" in result.stderr
    assert "not followed" in call("codebook", "compare", folder).stderr


def test_a_folder_is_transformed_and_summed_up(folder, tmp_path):
    result = transform(folder, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"a.png", "b.png"}
    assert "images/s" in result.stdout
    assert str(tmp_path / "out") in result.stdout.replace("\n", "")


def test_a_backend_that_does_not_work_here_is_refused_before_any_file(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    result = call("transform", folder, "--out", tmp_path / "out", "--backend", "triton", "--device", "cpu")
    assert result.exit_code == 2
    assert "backend 'triton'" in result.output
    assert not (tmp_path / "out").exists()


def test_json_is_all_there_is_on_standard_output(folder, tmp_path):
    result = transform(folder, "--out", tmp_path / "out", "--json", "--eps", "8/255", "--preset", "imagenette")
    report = json.loads(result.stdout)
    assert report["images"] == 2
    assert report["settings"]["eps"] == 8 / 255
    assert report["settings"]["kernel_sizes"] == [11, 5, 3]
    assert [file["output"] for file in report["files"]] == [str(tmp_path / "out" / n) for n in ("a.png", "b.png")]


def test_every_setting_arrives(folder, tmp_path):
    options = {
        "--kernel-sizes": "7,1",
        "--edge-thresholds": "12.5",
        "--bin-levels": "32",
        "--thumbnail-size": "16",
        "--lloyd-steps": "3",
        "--separation": "2.5",
        "--order": "bins",
    }
    flat = [word for pair in options.items() for word in pair]
    result = transform(folder, "--out", tmp_path / "out", "--json", "--at-least-two", *flat)
    settings = json.loads(result.stdout)["settings"]
    assert settings["kernel_sizes"] == [7, 1]
    assert settings["edge_thresholds"] == [12.5]
    assert (settings["bin_levels"], settings["thumbnail_size"], settings["lloyd_steps"]) == (32, 16, 3)
    assert (settings["separation"], settings["order"], settings["at_least_two"]) == (2.5, "bins", True)


def test_a_preset_is_rescaled_when_asked(folder, tmp_path):
    given = ("--out", tmp_path / "out", "--json", "--preset", "imagenette", "--image-size", "112")
    assert json.loads(transform(folder, *given).stdout)["settings"]["kernel_sizes"] == [5, 3, 1]
    assert transform(folder, "--out", tmp_path / "out", "--image-size", "112").exit_code == 2


def test_a_bad_file_is_listed_and_makes_the_status_one(folder, tmp_path):
    (folder / "bad [red].png").write_bytes(b"no picture")
    result = transform(folder, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "bad [red].png: not an image" in result.stdout.replace("\n", " ")
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"a.png", "b.png"}
    assert transform(folder, "--out", tmp_path / "out", "--skip-bad").exit_code == 0
    report = json.loads(transform(folder, "--out", tmp_path / "out", "--json").stdout)
    assert report["skipped"] == 1


def test_a_name_that_is_no_text_is_listed(tmp_path):
    (tmp_path / "in").mkdir()
    try:
        (tmp_path / "in" / "caf\udce9\n\x1b[31m.png").write_bytes(b"no picture")
    except (OSError, UnicodeError):
        pytest.skip("this disk takes only text for names")
    command = [sys.executable, "-m", "linocut", "transform", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    utf8 = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}  # as in most terminals
    done = subprocess.run(command, env=utf8, capture_output=True, text=True)
    assert done.returncode == 1
    assert "caf???[31m.png: not an image" in done.stdout


def test_only_bad_files(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "bad.png").touch()
    assert transform(tmp_path / "in", "--out", tmp_path / "out").exit_code == 1


def test_notes_are_told(folder, tmp_path):
    (folder / "a.png").rename(folder / "a.jpg")
    result = transform(folder, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert "named .jpg but holds PNG" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--eps", "eight"],
        ["--eps", "1/0"],
        ["--eps", "2"],
        ["--kernel-sizes", "4,2"],
        ["--kernel-sizes", "5;3"],
        ["--edge-thresholds", "a,b"],
        ["--preset", "imagenet"],
        ["--device", "toaster"],
        ["--device", "cuda:99"],
        ["--order", "random"],
    ],
)
def test_wrong_settings_exit_with_two_and_write_nothing(folder, tmp_path, arguments):
    result = call("transform", folder, "--out", tmp_path / "out", "--backend", "torch", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr
    assert not (tmp_path / "out").exists()


def test_wrong_places_exit_with_two(folder, tmp_path):
    assert transform(folder, "--out", folder / "out").exit_code == 2
    assert transform(tmp_path / "nowhere", "--out", tmp_path / "out").exit_code == 2
    assert transform(folder / "a.png", "--out", folder / "a.png" / "out").exit_code == 2
    assert call("transform", folder).exit_code == 2


def test_a_full_disk_exits_with_one_and_says_so(folder, tmp_path, monkeypatch):
    def full(self, handle, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", full)
    result = transform(folder, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr


def test_panels_are_drawn_when_asked(folder, tmp_path):
    result = transform(folder, "--out", tmp_path / "out", "--explain", "--json")
    for file in json.loads(result.stdout)["files"]:
        with Image.open(file["panel"]) as drawn:
            assert drawn.width == 1300
            assert 500 < drawn.height < 1300


@pytest.mark.parametrize(("healthy", "status"), [(True, 0), (False, 1)])
def test_the_doctors_status(monkeypatch, healthy, status):
    from linocut.recipes import doctor

    real = doctor.examine
    monkeypatch.setattr(doctor, "check_backends", list)
    monkeypatch.setattr(doctor, "examine", lambda: {**real(), "healthy": healthy, "warnings": ["look here"]})
    result = call("doctor")
    assert result.exit_code == status
    assert "look here" in result.stdout
    assert json.loads(call("doctor", "--json").stdout)["healthy"] is healthy


def test_a_figure_of_the_steps_is_drawn_beside_the_files(folder, tmp_path):
    pytest.importorskip("matplotlib")
    result = transform(folder, "--out", tmp_path / "out", "--figure", tmp_path / "steps.svg")
    assert result.exit_code == 0
    text = (tmp_path / "steps.svg").read_text()
    assert "palette" in text


def test_a_figure_that_cannot_be_drawn_is_refused_before_any_file(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for name, reason in (("steps.gif", ".png, .svg, .pdf"), ("steps.png", "figures need matplotlib")):
        refused = transform(folder, "--out", tmp_path / "out", "--figure", tmp_path / name)
        assert refused.exit_code == 2
        assert reason in refused.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("taken", ["in/a.png", "in/link.png", "other/../in/a.png", "out/a.png", "out/explained/b.png"])
def test_a_figure_never_takes_the_place_of_another_file(folder, tmp_path, taken):
    pytest.importorskip("matplotlib")
    (tmp_path / "other").mkdir()
    (tmp_path / "in" / "link.png").symlink_to("a.png")
    before = (folder / "a.png").read_bytes()
    inputs = (folder / "a.png", folder / "b.bmp")
    result = transform(*inputs, "--out", tmp_path / "out", "--explain", "--figure", tmp_path / taken)
    assert result.exit_code == 2
    assert "give the figure a name of its own" in result.stderr
    assert (folder / "a.png").read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_a_figure_that_cannot_be_written_exits_with_one_since_the_files_are(folder, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "steps.png").mkdir()
    result = transform(folder, "--out", tmp_path / "out", "--figure", tmp_path / "steps.png")
    assert result.exit_code == 1
    assert "stopped after 2 of 2 files" in result.stderr
    assert len(list((tmp_path / "out").iterdir())) == 2
