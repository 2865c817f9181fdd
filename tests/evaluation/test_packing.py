"""A ledger packed without a reproduction around it: which images are kept, how they are rounded, what is refused."""

import json

import pytest
import torch
from evaluation_cases import CLEAN, LINF, SMALL_PLAN, Linear, direction, line, pictures

from linocut.attacks.pgd import PGD
from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError
from linocut.evaluation import columns, shards, xz
from linocut.evaluation import header as headers
from linocut.evaluation.balls import holds
from linocut.evaluation.case import predict, unit
from linocut.evaluation.levels import all_bits, in_levels
from linocut.evaluation.packing import Parcel, pack
from linocut.evaluation.pictures import Pictures, changes, unpacked
from linocut.evaluation.record import Record
from linocut.evaluation.verify import verify
from linocut.report.sidecar import Sidecar

CPU, MODEL = torch.device("cpu"), Linear(direction())


@pytest.fixture
def packed(judged, tmp_path):
    """packed(images): a packed ledger of the linear model, its natural images beside it, and the whole one."""

    def run(images, plan=SMALL_PLAN, **more):
        record = judged(MODEL, plan, **more)
        whole, target = tmp_path / "ledger", tmp_path / f"packed-{images}"
        parcel = Parcel.of(whole, record, images)
        shards.write(tmp_path / "natural.safetensors.xz", parcel.natural())
        pack(parcel, target, MODEL, CPU, header=headers.read(whole), natural="../natural.safetensors.xz")
        return target, whole

    return run


@pytest.mark.parametrize("images", [1, 20, 60, 1000])  # within a batch, across batches, all, more than all
def test_every_claim_of_a_kept_example_is_confirmed(packed, images):
    target, whole = packed(images)
    outcome, all_of_it = verify(target, MODEL, CPU), verify(whole, MODEL, CPU)
    assert outcome.failures == all_of_it.failures == []
    assert outcome.claims + outcome.left_out == all_of_it.claims
    assert outcome.confirmed == outcome.claims
    assert (outcome.left_out == 0) == (images >= 60)
    assert all_of_it.left_out == 0
    record, kept = Record.read(target), min(images, 60)
    assert (record.packed["images"], record.packed["of"]) == (kept, 60)
    broken = [row for row in record.rows if row.image]
    assert len(broken) == record.packed["rounded"] + record.packed["exact"] == outcome.claims - kept


def test_a_packed_image_is_found_by_the_digest_in_its_row(packed):
    target, _ = packed(20)
    record, pictures = Record.read(target), Pictures.of(target)
    seen = 0
    for name in record.entries:
        for number in pictures.batches(name):
            shard = pictures.adversarial(name, number)
            for example, image in zip(shard["example"].tolist(), shard["image"], strict=True):
                assert record.of[name][example].image == shards.digest(image)
                seen += 1
    assert seen == sum(row.image is not None for row in record.rows) > 0


def test_what_cannot_be_rounded_stays_as_it_is(packed):
    """Within less than a level nothing but the natural image is whole."""
    threat = ThreatModel("linf", 0.9 / 255)
    plan = [CLEAN, line(PGD(name="pgd", num_steps=5, any_iterate=True), threat)]
    target, whole = packed(60, plan, radii={"linf": threat.eps})
    told = Record.read(target).packed
    assert told["rounded"] == 0
    assert told["exact"] > 0
    assert verify(target, MODEL, CPU).failures == []
    assert Record.read(target).rows == Record.read(whole).rows, "the very images"


@pytest.mark.parametrize("threat", [LINF, ThreatModel("linf", 0.031), ThreatModel("l2", 0.06)], ids=str)
def test_levels_are_in_the_ball_and_wrong_or_not_offered(threat):
    images = pictures(200)
    natural, labels = unit(images.pixels), images.labels
    dice = torch.Generator().manual_seed(3)
    towards = -torch.sign(direction()) * (2 * labels.float() - 1)[:, None, None, None]
    step = towards * torch.rand(natural.shape, generator=dice)
    size = threat.eps if threat.norm == "linf" else threat.eps / step.flatten(1).norm(dim=1)[:, None, None, None]
    moved = natural + step / (step.abs().max() if threat.norm == "linf" else 1) * size
    assert bool(holds(threat, moved, natural).all())
    levels, stands = in_levels(MODEL, moved, images.pixels, labels, threat)
    assert levels.dtype == torch.uint8
    assert bool(holds(threat, unit(levels), natural)[stands].all())
    mixed = torch.where(stands[:, None, None, None], unit(levels), moved)
    assert bool((predict(MODEL, mixed) != labels)[stands].all())
    assert 0 < int(stands.sum()) < 200
    wrong = predict(MODEL, moved) != labels
    assert int((wrong & stands).sum()) > int(wrong.sum()) / 2


def test_a_batch_that_sways_the_model_takes_a_rounding_back():
    """A model that looks at its batch: right about a rounded image unless all are rounded."""

    class Swayed(torch.nn.Module):
        def forward(self, images):
            whole = ((images * 255 - (images * 255).round()).abs() < 1e-4).flatten(1).all(dim=1)
            wrong = (whole.all() | ~whole).float()[:, None]
            return torch.cat([1 - wrong, wrong], dim=1)

    pixels = torch.full((3, 1, 2, 2), 100, dtype=torch.uint8)
    images = unit(pixels) + 0.3 / 255
    images[0] += 200 / 255  # far outside the ball: it stays as it is
    labels = torch.zeros(3, dtype=torch.int64)
    assert not bool(in_levels(Swayed(), images, pixels, labels, ThreatModel("l2", 0.2))[1].any())
    assert bool(in_levels(Swayed(), images[1:], pixels[1:], labels[1:], ThreatModel("l2", 0.2))[1].all())


def test_all_bits_are_asked_for_and_the_setting_comes_back():
    before = torch.backends.cudnn.allow_tf32
    with all_bits():
        assert torch.backends.cudnn.allow_tf32 is False
    assert torch.backends.cudnn.allow_tf32 is before


def test_changes_wrap_around():
    natural = torch.tensor([[[[0, 255]]], [[[10, 250]]]], dtype=torch.uint8)
    levels = torch.tensor([[[[255, 0]]], [[[7, 251]]]], dtype=torch.uint8)
    exact = torch.tensor([[[[0.123, 0.7]]]])
    shard = {
        "example": torch.tensor([7, 3, 5]),
        "rounded": torch.tensor([1, 0, 1], dtype=torch.uint8),
        "change": changes(levels, natural),
        "image": exact,
    }
    start = {"example": torch.tensor([5, 7, 3]), "pixels": torch.stack([natural[1], natural[0], natural[0]])}
    images = unpacked(shard, start, "a shard")["image"]
    assert torch.equal(images, torch.cat([unit(levels[:1]), exact, unit(levels[1:])]))
    with pytest.raises(InputError, match="does not fit"):
        unpacked(shard, {**start, "example": torch.tensor([5, 7, 4])}, "a shard")
    with pytest.raises(InputError, match="does not fit"):
        unpacked({**shard, "rounded": torch.tensor([1, 1, 1])}, start, "a shard")


def test_a_probe_that_lost_its_image_is_missed(packed):
    target, _ = packed(20)
    header = json.loads((target / headers.NAME).read_text())
    header["packed"]["claims"] += 1
    (target / headers.NAME).write_text(json.dumps(header))
    assert len(verify(target, MODEL, CPU).failures) == 1


def test_natural_images_that_are_too_few_or_damaged_are_refused(packed, tmp_path):
    target, _ = packed(20)
    path = tmp_path / "natural.safetensors.xz"
    natural = shards.read(path)
    shards.write(path, {name: tensor[:19] for name, tensor in natural.items()})
    with pytest.raises(InputError, match="holds 19 images"):
        verify(target, MODEL, CPU)
    path.write_bytes(b"xz")
    with pytest.raises(InputError, match="damaged"):
        verify(target, MODEL, CPU)


def test_rows_of_left_out_examples_are_missed_too(packed, tmp_path):
    target, _ = packed(20)
    kept = set(shards.read(tmp_path / "natural.safetensors.xz")["example"].tolist())
    rows = [row for row in Record.read(target).rows if row.entry != "l2/pgd-margin" or row.example in kept]
    columns.write(target, rows, headers.read(target)["settings"]["seed"])
    lacking, failure = verify(target, MODEL, CPU).failures
    assert lacking.startswith("l2/pgd-margin")
    assert lacking.endswith("rows were removed")
    assert "were packed" in failure


def test_only_a_finished_ledger_is_packed_and_only_once(packed, judged):
    target, whole = packed(20)
    with pytest.raises(InputError, match="packed already"):
        Parcel.of(target, Record.read(target), 5)
    record = Record.read(whole)
    del record.of["clean"][next(iter(record.of["clean"]))]
    with pytest.raises(InputError, match="not finished"):
        Parcel.of(whole, record, 5)
    with pytest.raises(InputError, match="cannot be gone on with"):
        judged(MODEL, folder=target.name)
    assert not (target / "lock").exists()


def test_a_header_names_its_date_and_its_code(packed):
    made = headers.read(packed(5)[1])["made_with"]
    assert made["source"] == headers.source()
    assert len(made["source"]) == 64
    assert made["date"].endswith("+00:00")
    assert "." not in made["date"]


def test_long_content_is_cut_for_threads_and_whole_again(monkeypatch):
    monkeypatch.setattr(xz, "PIECE", 1000)
    content = bytes(range(256)) * 17
    assert xz.decompressed(xz.compressed(content), "it") == content
    assert xz.decompressed(xz.compressed(b""), "it") == b""
    assert xz.compressed(content) == xz.compressed(content)


@pytest.mark.parametrize("place", [0, 3, 7, -1])
def test_a_flipped_bit_in_any_stream_is_told(monkeypatch, place):
    """In the second stream's first bytes it was once taken for rubbish behind the first, and rows were lost."""
    monkeypatch.setattr(xz, "PIECE", 1000)
    second = len(xz.compressed(bytes(1000)))
    content = bytearray(xz.compressed(bytes(2500)))
    content[second + place if place >= 0 else place] ^= 4
    with pytest.raises(InputError, match="damaged"):
        xz.decompressed(bytes(content), "it")


@pytest.mark.parametrize("ending", [b"more", b"\0\0"])
def test_what_follows_the_streams_is_told(ending):
    with pytest.raises(InputError, match="damaged"):
        xz.decompressed(xz.compressed(b"rows") + ending, "it")
    with pytest.raises(InputError, match="damaged"):
        xz.decompressed(b"", "it")


def test_a_file_that_would_fill_the_memory_is_told(monkeypatch):
    monkeypatch.setattr(xz, "PIECE", 1000)
    monkeypatch.setattr(xz, "MOST", 2500)
    assert len(xz.decompressed(xz.compressed(bytes(2500)), "it")) == 2500
    with pytest.raises(InputError, match="more than 2,500 bytes"):
        xz.decompressed(xz.compressed(bytes(2501)), "it")


def test_a_packed_ledger_keeps_what_a_report_shows(packed):
    target, whole = packed(20)
    record, mine, all_of_it = Record.read(target), Sidecar(target), Sidecar(whole)
    assert mine.natural.keys() == all_of_it.natural.keys() != set()
    kept = 0
    for name in record.entries:
        for example, tensors in mine.of(name).items():
            same = all_of_it.of(name)[example]
            assert tensors.keys() == same.keys()
            assert torch.allclose(tensors["image"], same["image"], atol=5e-4)
            if "trace" in same:
                assert torch.equal(tensors["trace"].nan_to_num(-1), same["trace"].nan_to_num(-1))
            kept += 1
        shown = all_of_it.of(name).keys()
        if name == "clean" or record.entries[name]["column"] == "published":
            assert mine.of(name).keys() == shown
        elif any(name in record.counting(norm) for norm in record.norms):
            assert mine.of(name).keys() == {e for e in shown if record.of[name][e].broken}
    assert kept
