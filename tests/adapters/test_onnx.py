"""The ONNX graph against the reference, and the file against PyTorch."""

import threading

import numpy as np
import pytest
import torch

from linocut.adapters import onnx_graph as graph
from linocut.errors import InputError
from linocut.models import Architecture, Card, Defended, build, save
from linocut.transform import fixed, reference
from linocut.transform.modules import AdaptiveBlur, AdaptiveCodebook, EssentialFeatures, FixedCodebook
from linocut.transform.settings import BlurRule, PaletteRule

pytest.importorskip("onnxruntime", reason="pip install linocut[onnx]")
pytest.importorskip("onnxscript", reason="pip install linocut[onnx]")
from linocut.adapters.onnx import _answers, _session, compare, made_up_images, write


def python_loop(go_on, body, carried):
    """What while_loop means, without compiling anything."""
    while bool(go_on(*carried)):
        carried = body(*carried)
    return carried


@pytest.fixture
def plain_loops(monkeypatch):
    monkeypatch.setattr(graph, "while_loop", python_loop)


def images(shape, seed, grain=0.05):
    dice = torch.Generator().manual_seed(seed)
    soft = torch.rand((3, shape[0], 3, 3), generator=dice)
    x = torch.nn.functional.interpolate(soft, size=shape[1:], mode="bilinear", align_corners=True)
    return (x + grain * torch.randn(x.shape, generator=dice)).clamp(0, 1)


@pytest.mark.parametrize(
    ("shape", "grain", "rule"),
    [
        ((3, 32, 32), 0.05, PaletteRule(separation=192)),
        ((3, 32, 32), 0.5, PaletteRule(separation=192)),  # noise: more than 256 clusters
        ((3, 20, 40), 0.1, PaletteRule(separation=96, by_population=False)),
        ((3, 9, 70), 0.1, PaletteRule(separation=0, bin_levels=64, thumbnail_size=8, lloyd_steps=0)),
        ((1, 28, 28), 0.2, PaletteRule(separation=1836, at_least_two=True)),
        ((1, 28, 28), 0.02, PaletteRule(separation=2041, at_least_two=True)),  # no two so far apart
        ((3, 1, 1), 0.0, PaletteRule(separation=192, at_least_two=True)),
        ((3, 12, 5), 0.3, PaletteRule(separation=192, at_least_two=True, lloyd_steps=3)),
    ],
)
def test_graph_equals_the_reference(plain_loops, shape, grain, rule):
    blur = BlurRule.of((5, 3, 1), (20, 40))
    x = images(shape, seed=hash(shape) % 1000, grain=grain)
    y = graph.blur(graph.enter(x), blur)
    colors, population, num_colors = graph.find_palette(y, rule)
    label = graph.assign(y, colors, num_colors)
    painted = graph.paint(colors, label)
    for i, image in enumerate(x.numpy()):
        expected_y, _ = reference.adaptive_blur(reference.enter(image), blur)
        assert np.array_equal(y[i].numpy(), expected_y)
        palette = reference.find_palette(expected_y, rule)
        n = int(num_colors[i])
        assert np.array_equal(colors[i, :n].numpy(), palette.colors)
        assert np.array_equal(population[i, :n].numpy(), palette.population)
        expected, labels = reference.paint(expected_y, palette.colors)
        assert np.array_equal(label[i].numpy(), labels)
        assert np.array_equal(painted[i].numpy(), reference.leave(expected))


@pytest.mark.parametrize("sizes", [(1,), (13, 7, 3), (9, 1)])
def test_blurs_equal_the_reference(sizes):
    rule = BlurRule.of(sizes, (10, 30)[: len(sizes) - 1])
    x = images((3, 6, 31), seed=5)
    x[0, 0, 0, 0] = float("nan")
    y = graph.blur(graph.enter(x), rule)
    for i, image in enumerate(x.numpy()):
        assert np.array_equal(y[i].numpy(), reference.adaptive_blur(reference.enter(image), rule)[0])


@pytest.mark.parametrize(("channels", "k"), [(3, 300), (3, 512), (1, 2), (1, 1)])
def test_fixed_codes_equal_the_reference(plain_loops, channels, k):
    dice = np.random.default_rng(k)
    levels = dice.choice(256 if channels == 1 else 4096, (k,), replace=False)[:, None]
    codes = fixed.in_eighths((levels if channels == 1 else levels // 16 ** np.arange(3) % 16 * 17).astype(np.uint8))
    y = dice.integers(0, 2041, (2, channels, 16, 16), dtype=np.int32)
    y[:, :, :, ::2] = 68 * (y[:, :, :, ::2] // 68)  # half-way between codes, where many are equally near
    label = graph.assign_linf(torch.from_numpy(y), torch.from_numpy(codes).float())
    for i in range(2):
        assert np.array_equal(label[i].numpy(), fixed.nearest(y[i].astype(np.int16), codes))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A defended network, its file, and what the check said."""
    model = Defended(EssentialFeatures.preset("mnist", image_size=8), build("small-net", 10, 1), [0.1], [0.3]).eval()
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    return model, path, write(model, path, (1, 8, 8))


def test_the_file_agrees_at_any_batch_size(exported):
    _, path, agreement = exported
    assert agreement.images == 16
    assert agreement.colors >= 2
    assert agreement.largest_logit_difference < 1e-4
    session = _session(path)
    x = made_up_images(7, (1, 8, 8))
    whole = _answers(session, x)
    assert whole["palette"].shape[0] == 7
    for i in range(7):
        alone = _answers(session, x[i : i + 1])
        for name in ("palette", "num_colors", "pixel_labels"):
            assert np.array_equal(alone[name][0], whole[name][i])
    assert list(path.parent.iterdir()) == [path]


def test_a_part_that_was_frozen_in_eval_mode_comes_back_so(tmp_path):
    network = torch.nn.Sequential(torch.nn.BatchNorm2d(1), torch.nn.Flatten())
    defended = Defended(None, network).train()
    network[0].eval()
    write(defended, tmp_path / "model.onnx", (1, 4, 4))
    assert [module.training for module in (defended, network, *network)] == [True, True, False, True]


def test_a_network_without_weights_is_written(tmp_path):
    assert write(Defended(None, torch.nn.Flatten()), tmp_path / "model.onnx", (1, 4, 4)).images == 16


def test_an_empty_batch_comes_back_empty(exported):
    import onnxruntime

    once = onnxruntime.RunOptions()
    alarm = threading.Timer(20, setattr, (once, "terminate", True))  # a loop without an end fails, and does not hang
    alarm.start()
    try:
        found = _session(exported[1]).run(None, {"images": np.zeros((0, 1, 8, 8), np.float32)}, once)
    finally:
        alarm.cancel()
    assert [len(output) for output in found] == [0, 0, 0, 0]


def test_a_file_of_other_settings_is_not_believed(exported):
    model, path, _ = exported
    other = Defended(EssentialFeatures(eps=0.02), model.model, [0.1], [0.3]).eval()
    with pytest.raises(InputError, match=r"other classes|otherwise"):
        compare(other, path, made_up_images(4, (1, 8, 8)))


def test_nothing_is_left_of_a_file_that_fails(exported, tmp_path, monkeypatch):
    model, _, _ = exported
    from linocut.adapters import onnx as adapter

    def fail(*_):
        raise InputError("no")

    monkeypatch.setattr(adapter, "_export", lambda *_: None)
    monkeypatch.setattr(adapter, "compare", fail)
    with pytest.raises(InputError):
        write(model, tmp_path / "model.onnx", (1, 8, 8))
    assert list(tmp_path.iterdir()) == []


def test_what_has_no_graph_is_refused(exported, tmp_path):
    model, _, _ = exported
    with pytest.raises(InputError, match="no ONNX graph"):
        write(Defended(torch.nn.Identity(), model.model), tmp_path / "m.onnx", (1, 8, 8))
    with pytest.raises(InputError, match="wanted Defended"):
        write(torch.nn.Sequential(model.transform, model.model), tmp_path / "m.onnx", (1, 8, 8))
    with pytest.raises(InputError, match="sample"):
        write(model, tmp_path / "m.onnx", (1, 8, 8), sample=torch.rand(2, 1, 9, 9))


@pytest.mark.parametrize(
    ("shape", "sample", "told"),
    [
        ((8, 8), None, r"\(C,H,W\)"),
        (8, None, r"\(C,H,W\)"),
        ((1, 8, 0), None, r"\(C,H,W\)"),
        ((2, 8, 8), None, "1 or 3 channels"),
        ((3, 8, 8), None, "takes no images of image_shape"),
        ((1, 8, 8), np.zeros((2, 1, 8, 8), np.float32), "torch.as_tensor"),
        ((1, 8, 8), torch.zeros((2, 1, 8, 8), dtype=torch.uint8), r"sample.float\(\) / 255"),
        ((1, 8, 8), torch.zeros((0, 1, 8, 8)), "the sample has shape"),
    ],
)
def test_images_that_do_not_fit_are_told(tmp_path, shape, sample, told):
    model = Defended(EssentialFeatures(), build("small-net", 10, 1)).eval()
    with pytest.raises(InputError, match=told):
        write(model, tmp_path / "m.onnx", shape, sample)
    assert list(tmp_path.iterdir()) == []


def test_codes_of_colours_want_colour_images(tmp_path):
    model = Defended(FixedCodebook(colors=[[0, 0, 0], [9, 9, 9]]), build("small-net", 10, 1)).eval()
    with pytest.raises(InputError, match="3 channels"):
        write(model, tmp_path / "m.onnx", (1, 8, 8))


def test_logits_that_are_no_numbers_are_not_believed(exported):
    model, path, _ = exported
    broken = Defended(model.transform, build("small-net", 10, 1), [0.1], [0.3]).eval()
    with torch.no_grad():
        broken.model.fc.bias.fill_(float("nan"))
    with pytest.raises(InputError, match="PyTorch gives logits that are no finite numbers"):
        compare(broken, path, made_up_images(4, (1, 8, 8)))


PALETTE = ("palette", "num_colors", "pixel_labels")


@pytest.mark.parametrize(
    ("transform", "outputs", "colors"),
    [
        (FixedCodebook(colors=[[0, 0, 0], [255, 255, 255], [200, 40, 40]]), PALETTE, 3),
        (FixedCodebook.depth(4), ("painted",), 0),
        pytest.param(None, (), 0, marks=pytest.mark.full),
        pytest.param(AdaptiveBlur(), ("painted",), 0, marks=pytest.mark.full),
        pytest.param(AdaptiveCodebook(), PALETTE, None, marks=pytest.mark.full),
    ],
    ids=["fixed", "depth", "none", "blur", "codebook"],
)
def test_other_fronts(transform, outputs, colors, tmp_path):
    model = Defended(transform, build("small-net", 10, 3)).eval()
    agreement = write(model, tmp_path / "m.onnx", (3, 16, 16))
    assert agreement.images == 16
    assert agreement.equal_outputs == outputs
    assert colors is None or agreement.colors == colors
    if isinstance(transform, FixedCodebook):
        other = Defended(FixedCodebook.depth(7), model.model).eval()
        with pytest.raises(InputError, match=r"other classes|otherwise"):
            compare(other, tmp_path / "m.onnx", made_up_images(4, (3, 16, 16)))


@pytest.mark.full
@pytest.mark.parametrize("front", ["preset", "blur", "codebook", "fixed"])
@pytest.mark.parametrize("name", ["cifar-10", "mnist"])
def test_a_thousand_real_images(front, name, data_root, tmp_path):
    from linocut.data import load
    from linocut.transform.presets import FIXED

    sample = load(name, root=data_root, split="test").unit(slice(0, 1000))
    transform = {
        "preset": lambda: EssentialFeatures.preset(name),
        "blur": AdaptiveBlur,
        "codebook": AdaptiveCodebook,
        "fixed": lambda: FixedCodebook.fit(load(name, root=data_root, split="train"), **FIXED[name]),
    }[front]()
    model = Defended(transform, build("small-net", 10, sample.shape[1])).eval()
    assert write(model, tmp_path / "m.onnx", tuple(sample.shape[1:]), sample).images == 1000


@pytest.fixture
def export(tmp_path, monkeypatch):
    """A function that saves a model of one data set, runs the verb, and returns what was asked and what was said."""
    from typer.testing import CliRunner

    from linocut.adapters import onnx as adapter
    from linocut.cli import app
    from linocut.recipes import export as recipe

    monkeypatch.delenv("LINOCUT_DATA", raising=False)
    asked = []

    def note(defended, path, shape, sample):
        asked.append((shape, None if sample is None else tuple(sample.shape)))
        return adapter.Agreement(
            images=16,
            equal_outputs=PALETTE,
            colors=2,
            largest_logit_difference=1e-6,
            onnx_milliseconds=2.0,
            torch_milliseconds=1.0,
        )

    monkeypatch.setattr(recipe, "write", note)

    def run(data_set, *options, **origin):
        model = Defended(EssentialFeatures.preset("mnist"), build("small-net", 10, 1))
        card = Card(architecture=Architecture(name="small-net", in_channels=1), data_set=data_set, recipe=origin)
        save(tmp_path / "model", model, card)
        done = CliRunner().invoke(app, ["export", str(tmp_path / "model"), str(tmp_path / "m.onnx"), *options])
        return asked, done

    return run


def test_the_verb_without_data_says_so(export):
    asked, done = export("mnist")
    assert done.exit_code == 0, done.output
    assert "16 made-up images" in done.output
    assert "bit for bit" in done.output
    assert asked == [((1, 28, 28), None)]


def test_the_verb_checks_on_the_models_own_data_at_its_own_size(export):
    pytest.importorskip("sklearn", reason="digits")
    asked, done = export("digits", "-n", "5", image_size=8)
    assert done.exit_code == 0, done.output
    assert "test images of digits" in done.output
    assert asked == [((1, 8, 8), (5, 1, 8, 8))]


@pytest.mark.parametrize("size", ["-5", "0", "5000"])
def test_a_size_that_no_image_has_is_refused(export, size):
    asked, done = export("mnist", "--image-size", size)
    assert (done.exit_code, asked) == (2, [])
    assert "from 1 to 4096" in done.output


def test_data_of_other_channels_is_refused(export, tmp_path, monkeypatch):
    from linocut.data import Images
    from linocut.recipes import export as recipe

    def colour(name, **_):
        labels = torch.zeros(2, dtype=torch.int64)
        pixels = torch.zeros((2, 3, 28, 28), dtype=torch.uint8)
        return Images(pixels=pixels, labels=labels, classes=("a",), name=name, split="test", sha256="0" * 64)

    monkeypatch.setattr(recipe, "load_data", colour)
    asked, done = export("mnist", "--data", "cifar-10")
    assert (done.exit_code, asked) == (2, [])
    assert "cifar-10 have 3 channels, the model takes 1" in done.output


def test_data_that_was_asked_for_must_be_there(export, tmp_path):
    asked, done = export("mnist", "--data", "mnist", "--root", str(tmp_path))
    assert done.exit_code != 0
    assert asked == []
