"""The product's own defence through the whole way: saved, judged with every hook, drawn, verified."""

import json
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

pytest.importorskip("sklearn", reason="digits come with scikit-learn")

from linocut.cli import app
from linocut.evaluation import shards
from linocut.evaluation.case import model_hash
from linocut.evaluation.request import Request, carry_out
from linocut.models import Architecture, Card, Defended, build, save
from linocut.transform.modules import EssentialFeatures

HOOKED = "pgd-undefended,pgd-frozen,pgd-identity,pgd-soft,pgd-few-colors"


@pytest.fixture
def saved(tmp_path):
    """A saved network behind the transform, and its twin without it."""
    architecture = Architecture(name="small-net", num_classes=10, in_channels=1)
    network = build("small-net", 10, 1)
    # The torch backend: nothing to compile for two images.
    transform = EssentialFeatures(eps=0.1, kernel_sizes=(3, 1, 1), at_least_two=True, backend="torch")
    for name, front in (("defended", transform), ("twin", None)):
        save(tmp_path / name, Defended(front, network).eval(), Card(architecture=architecture, data_set="digits"))
    return tmp_path


def test_every_hook_is_used_and_the_figures_have_palettes(saved):
    def linocut(*arguments):
        return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)

    out = saved / "ledger"
    done = linocut(
        *("evaluate", saved / "defended", "--twin", saved / "twin", "--data", "digits", "--norm", "linf"),
        *("--eps", 0.02, "-n", 2, "--suite", HOOKED, "--out", out, "--device", "cpu", "--json"),
    )
    assert done.exit_code == 0
    told = json.loads(done.output)
    assert told["norms"]["linf"]["not_applicable"] == []
    header = json.loads((out / "header.json").read_text())
    assert header["settings"]["twin_hash"] != header["settings"]["model_hash"]
    card = header["made_with"]["card"]
    assert (card["data_set"], card["transform"]["class"]) == ("digits", "EssentialFeatures")
    drawn = shards.read(out / "figures" / "clean" / "00000.safetensors")
    assert drawn["transformed"].shape == drawn["image"].shape == (2, 1, 28, 28)
    for image, palette, number in zip(drawn["transformed"], drawn["palette"], drawn["num_colors"], strict=True):
        assert set(image.unique().tolist()) <= set(palette[:number].flatten().tolist())
    assert linocut("verify", out, "--device", "cpu").exit_code == 0


def test_a_model_is_judged_at_the_size_it_was_trained_at(saved):
    card = Card(architecture=Architecture(name="small-net", in_channels=1), data_set="digits", recipe={"image_size": 8})
    save(saved / "small", Defended(None, build("small-net", 10, 1)), card)
    request = Request(
        model=str(saved / "small"), data="digits", out=saved / "ledger", suite="random-noise", norm="linf"
    )
    assert dimensions(request) == 64
    assert dimensions(replace(request, image_size=12)) == 144
    assert dimensions(replace(request, model=str(saved / "twin"))) == 784, "its card names no size"


def dimensions(request):
    ledger = request.out / str(request.image_size) / request.model.rsplit("/")[-1]
    return carry_out(replace(request, n=1, out=ledger, device="cpu"), lambda *_: None).settings["dimensions"]


def test_the_hash_of_a_model_of_ours_does_not_hang_on_how_layers_are_printed(monkeypatch):
    """Versions of torch print layers differently; what counts is weights, layers and transform."""
    torch.manual_seed(0)
    network = build("small-net", 10, 1)
    models = [Defended(front, network) for front in (None, EssentialFeatures(), EssentialFeatures(eps=0.1))]
    before = [model_hash(model) for model in models]
    assert len(set(before)) == 3
    monkeypatch.setattr(torch.nn.Conv2d, "extra_repr", lambda self: "printed otherwise")
    assert [model_hash(model) for model in models] == before
    with torch.no_grad():
        next(network.parameters()).add_(1e-3)
    assert model_hash(models[0]) != before[0]
