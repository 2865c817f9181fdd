"""Painting with a fixed codebook: the same bits on every backend, the stated gradients, and a file that is trusted."""

import copy
import json
import os

import numpy as np
import pytest
import torch

from linocut.errors import InputError
from linocut.transform import codebook_file, ops, reference
from linocut.transform.kernels import dispatch, numpy_loop, torch_nearest, torch_ops
from linocut.transform.modules import FixedCodebook
from linocut.transform.settings import NO_BLUR

CPU = torch.device("cpu")


def draw_codes(seed, channels, k, step=1):
    rng = np.random.default_rng(seed)
    drawn = np.unique(rng.integers(0, 256 // step, (4 * k, channels)) * step, axis=0)
    return rng.permutation(drawn)[:k].tolist()


def brute_force(x, colors):
    """Each pixel by itself, in Python integers."""
    eighths = reference.enter(x)
    out = np.empty_like(eighths)
    for i, j in np.ndindex(eighths.shape[1:]):
        gaps = [max(abs(int(p) - 8 * v) for p, v in zip(eighths[:, i, j], c, strict=True)) for c in colors]
        out[:, i, j] = [8 * v for v in colors[gaps.index(min(gaps))]]
    return reference.leave(out)


@pytest.mark.parametrize("channels", [1, 3])
def test_reference_is_the_spec(channels, draw):
    x = draw(1, 6, channels, 5, 7)
    for step in (1, 32):  # on a grid of 32 many pixels lie as near to two codes or more
        colors = draw_codes(2, channels, 30 if step == 1 else 8, step)
        module = FixedCodebook(colors=colors, backend="reference")
        for image, out in zip(x, module(x), strict=True):
            assert np.array_equal(out.numpy(), brute_force(image.numpy(), colors))


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 1, 1), (1, 1, 9), (3, 41, 13), (3, 150, 150)])
def test_backends_equal_the_reference(backend, shape, draw, count):
    kernels = dispatch.backend(backend, CPU)
    for case, (k, step) in enumerate([(1, 1), (2, 1), (300, 1), (512, 16)] * count(1, 8)):
        y, _ = numpy_loop.blur(draw(case, 3, *shape), NO_BLUR)
        codes = 8 * torch.tensor(draw_codes(case, shape[0], k, step), dtype=torch.int16)
        out = kernels.paint_linf(y, codes)
        assert out.dtype == torch.float32
        assert out.is_contiguous()
        assert torch.equal(out, numpy_loop.paint_linf(y, codes)), (shape, k, step)


def test_cifar_and_iterates_between_levels(backend, cifar, count):
    colors = FixedCodebook.fit(cifar[:200], 300, 16).settings()["colors"]
    x = cifar[: count(16, 400)].float() / 255
    near = (x + 0.03 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))).clamp(0, 1)
    for images in (x, near):
        wanted = FixedCodebook(colors=colors, backend="reference")(images)
        assert torch.equal(FixedCodebook(colors=colors, backend=backend)(images), wanted)


def test_strips_threads_and_batch_mates_do_not_matter(backend, draw, monkeypatch, one_thread):
    x = draw(3, 20, 3, 30, 30)
    module = FixedCodebook(colors=draw_codes(3, 3, 40), backend=backend)
    whole = module(x)
    torch.set_num_threads(3)
    assert torch.equal(module(x), whole)
    assert torch.equal(torch.cat([module(x[i : i + 1]) for i in range(len(x))]), whole)
    for place in (torch_nearest, torch_ops):
        monkeypatch.setattr(place, "strip_elements", lambda device: 601)
    assert torch.equal(module(x), whole)


def test_codes_stay_and_empty_batches_stay_empty(backend, draw):
    module = FixedCodebook(colors=draw_codes(4, 3, 60), backend=backend)
    once = module(draw(4, 5))
    assert torch.equal(module(once), once)
    empty = torch.empty(0, 3, 4, 4, requires_grad=True)
    module(empty).sum().backward()
    assert empty.grad.shape == empty.shape
    assert module.explain(empty) == []


def soft_mean(x, colors, softness):
    """The softmax-weighted codes of float64 images, as autograd sees them."""
    c = torch.tensor(colors, dtype=torch.float64) / 255
    far = (x[:, None] - c[None, :, :, None, None]).abs().amax(2)  # (B,K,H,W)
    weight = (-255 * softness * far).softmax(1)
    return torch.einsum("bkhw,kc->bchw", weight, c)


@pytest.mark.parametrize("channels", [1, 3])
def test_soft_is_their_jacobian(channels):
    dice = torch.Generator().manual_seed(5)
    odd = 2 * torch.randint(0, 1020, (2, channels, 4, 5), generator=dice) + 1  # on a code the distance has a kink
    x = (odd / 2040).requires_grad_()
    weight = torch.randn(x.shape, generator=dice)
    colors = draw_codes(5, channels, 20)
    (got,) = torch.autograd.grad((FixedCodebook(colors=colors, softness=0.05)(x) * weight).sum(), x)
    exact = x.detach().double().requires_grad_()
    (wanted,) = torch.autograd.grad((soft_mean(exact, colors, 0.05) * weight).sum(), exact)
    torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-5)
    assert got.norm() > 0


def test_other_surrogates(draw):
    x = draw(6, 3).requires_grad_()
    module = FixedCodebook(colors=draw_codes(6, 3, 9))
    for name, wanted in (("identity", 1.0), ("bpda", 1.0), ("none", 0.0)):
        other = module.with_surrogate(name)
        assert torch.equal(other(x), module(x))
        (grad,) = torch.autograd.grad(other(x).sum(), x)
        assert torch.equal(grad, torch.full_like(x, wanted))
    with pytest.raises(InputError, match="surrogate"):
        module.with_surrogate("hard")


def test_grey_codes_paint_channels_one_by_one(draw):
    x = draw(7, 3, 3, 6, 8).requires_grad_()
    module = FixedCodebook.depth(5)
    planes = [module(x[:, c : c + 1]) for c in range(3)]
    assert torch.equal(module(x), torch.cat(planes, dim=1))
    (grad,) = torch.autograd.grad(module(x).sum(), x)
    one_by_one = torch.autograd.grad(torch.cat(planes, dim=1).sum(), x)[0]
    torch.testing.assert_close(grad, one_by_one, atol=1e-5, rtol=1e-5)  # strips are cut elsewhere: other last bits
    assert module.explain(x)[0].palette is None
    with pytest.raises(InputError, match="grey images"):
        FixedCodebook(colors=[[0, 0, 0]])(x[:, :1])


def test_settings_make_the_module_again_and_show_in_its_name(draw):
    module = FixedCodebook(colors=draw_codes(8, 3, 12), origin={"builder": "density"}, softness=0.2)
    again = FixedCodebook(**json.loads(json.dumps(module.settings())))
    assert again.settings() == module.settings()
    assert repr(again) == repr(module)
    other = FixedCodebook(colors=module.settings()["colors"][::-1], softness=0.2)
    assert repr(other) != repr(module)
    assert "12 colors" in repr(module)
    assert not module.state_dict()
    x = draw(8, 2)
    assert torch.equal(copy.deepcopy(module)(x), module(x))
    torch.library.opcheck(
        ops.paint_fixed_op, (x, module.codes, "soft", 0.1, "torch", True), test_utils=("test_schema", "test_faketensor")
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while it compiles
@pytest.mark.parametrize("colors", [[[0, 0, 0], [255, 128, 9]], [[0], [200]]], ids=["colour", "grey"])
def test_compiles_to_one_graph_for_all_sizes(draw, colors):
    module = FixedCodebook(colors=colors, backend="torch")
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend="aot_eager")
    for shape in ((2, 3, 16, 20), (5, 3, 24, 8)):
        x = draw(1, *shape)
        assert torch.equal(compiled(x), module(x))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while it compiles
def test_compiles_to_one_graph(draw):
    module = FixedCodebook(colors=draw_codes(9, 3, 12), backend="torch")
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    x = draw(9, 3).requires_grad_()
    assert torch.equal(compiled(x), module(x))
    grads = [torch.autograd.grad(f(x).square().sum(), x)[0] for f in (compiled, module)]
    assert torch.equal(*grads)


def test_explanation(draw):
    x = draw(10, 3, 3, 9, 6)
    module = FixedCodebook(colors=draw_codes(10, 3, 12))
    for e, image, out in zip(module.explain(x), x, module(x), strict=True):
        assert torch.equal(e.input, image)
        assert torch.equal(e.output, out)
        assert torch.equal(e.palette[e.labels].permute(2, 0, 1), out)
        assert e.population.sum() == 54
        assert f"{int((e.population > 0).sum())} of 12 codes" in e.note


@pytest.mark.parametrize(
    "colors",
    [
        [],
        [[1, 2]],
        [[1], [2, 3]],
        [[256]],
        [[-1]],
        [[0.5]],
        [[3], [3]],
        [3, 4],
        [[i, 0, 0] for i in range(513)],
        "abc",
        [["a"]],
        [[None], [1]],
    ],
)
def test_impossible_colours_are_refused(colors):
    with pytest.raises(InputError, match="colors must be"):
        FixedCodebook(colors=colors)


def test_values_are_checked(draw):
    with pytest.raises(InputError, match="divide by 255"):
        FixedCodebook(colors=[[0], [255]])(255 * draw(11, 1))


def test_files_come_back_and_damage_is_found(tmp_path, draw):
    pixels = (255 * draw(12, 4)).byte()
    book, path = FixedCodebook.fit(pixels, 10, 20), tmp_path / "new" / "book.json"
    book.save(path)
    assert FixedCodebook.load(path).settings() == book.settings()
    assert os.listdir(path.parent) == ["book.json"]
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 60):
        changed = bytearray(content)
        changed[place] ^= 1 << rng.integers(0, 7)
        path.write_bytes(changed)
        try:
            found = FixedCodebook.load(path)
        except InputError:
            continue
        assert found.settings() == book.settings(), "a change of more than white space went unseen"
    for length in (0, 1, 40, len(content) // 2, len(content) - 3):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="not a codebook"):
            FixedCodebook.load(path)
    with pytest.raises(InputError, match=r"missing\.json"):
        FixedCodebook.load(tmp_path / "missing.json")


@pytest.mark.parametrize(
    "change",
    [
        {"colors": [["a"], ["b"]]},
        {"origin": {"population": [1]}},
        {"origin": {"population": ["many", "few"]}},
        {"origin": {"population": [None, 3]}},
        {"origin": {"population": [0, 0]}},
        {"origin": {"population": {"0": 1, "1": 2}}},
    ],
)
def test_a_seal_that_anyone_can_make_does_not_make_nonsense_a_codebook(tmp_path, change):
    codebook_file.write(tmp_path / "book.json", {"colors": [[0], [255]], "origin": None, **change})
    with pytest.raises(InputError, match=r"colors must be|population must be"):
        FixedCodebook.load(tmp_path / "book.json")


@pytest.mark.parametrize("depth", [900, 990, 100_000])
def test_a_file_of_brackets_is_no_codebook(tmp_path, depth):
    (tmp_path / "book.json").write_text("[" * depth + "]" * depth)
    with pytest.raises(InputError, match="not a codebook"):
        FixedCodebook.load(tmp_path / "book.json")


def test_a_saved_codebook_can_be_read_by_whom_the_user_lets(tmp_path):
    (tmp_path / "plain").touch()
    FixedCodebook.depth(3).save(tmp_path / "book.json")
    assert (tmp_path / "book.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_codebook_made_with_numpys_numbers_can_be_saved(tmp_path):
    pixels = torch.arange(48, dtype=torch.uint8).view(1, 3, 4, 4)
    books = (
        FixedCodebook.depth(np.int64(8)),
        FixedCodebook.fit(pixels, np.int64(4), np.float32(2)),
        FixedCodebook.fit(pixels, 4, builder="medoids", sample=np.int64(10), seed=np.int64(1)),
        FixedCodebook(colors=[[1]], origin={"mine": {"n": np.int64(3), "tuple": (np.float32(0.5),)}}),
    )
    for book in books:
        book.save(tmp_path / "book.json")
        assert FixedCodebook.load(tmp_path / "book.json").settings() == book.settings()


@pytest.mark.parametrize("levels", ["x", None, float("nan"), float("inf"), 2.5, True, 1, 257, 10**400])
def test_impossible_depths_are_refused(levels):
    with pytest.raises(InputError, match="levels must be a whole number"):
        FixedCodebook.depth(levels)


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "book.json"
    FixedCodebook.depth(3).save(path)

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match="No space left"):
        FixedCodebook.depth(4).save(path)
    assert len(FixedCodebook.load(path).codes) == 3
    assert os.listdir(tmp_path) == ["book.json"]
