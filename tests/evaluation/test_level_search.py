"""What rounding undoes is searched for again among whole grey levels."""

import torch
from evaluation_cases import CLEAN, Linear, direction, line, pictures
from torch import nn

from linocut.attacks.pgd import PGD
from linocut.attacks.threat import ThreatModel
from linocut.attacks.whole_levels import WholeLevelPGD, WholeLevelSquare
from linocut.evaluation import header as headers
from linocut.evaluation import shards
from linocut.evaluation.findings.images import quantised
from linocut.evaluation.packing import Parcel, pack
from linocut.evaluation.record import Record
from linocut.evaluation.verify import verify


class Frail(nn.Module):
    """The linear model, but whatever lies between two grey levels is taken for the other class."""

    def __init__(self):
        super().__init__()
        self.linear = Linear(direction())

    def forward(self, images):
        logits = self.linear(images)
        between = ((images * 255 - (images * 255).round()).abs() > 0.01).flatten(1).any(dim=1)
        return torch.where(between[:, None], logits.flip(1), logits)


def test_what_rounding_undoes_is_searched_for_in_whole_levels(judged, tmp_path):
    model, images = Frail(), pictures()
    tight = PGD(name="pgd", num_steps=1, step_size=0.4 / 255, random_start=False, any_iterate=True)
    wide = ThreatModel("linf", 2.9 / 255)
    # As in a suite, in a ball that was rounded up: it breaks nobody new, and its images are kept and checked.
    levels = line(WholeLevelPGD(num_steps=5), ThreatModel("linf", 3 / 255), "probe", "levels", starts="fragile")
    radii = {"linf": wide.eps}
    record = judged(model, [CLEAN, line(tight, wide)], images=images, radii=radii, folder="rounded")
    standing = record.worst("linf").count
    assert standing < 10
    fragile = {row.example for row in record.of["linf/pgd"].values() if row.quantised == row.label}
    rounded = quantised(record, "linf")
    assert rounded.numbers["rounded"]["count"] == standing + len(fragile) > 40
    assert rounded.sentence.startswith("Rounded to whole levels")

    record = judged(model, [CLEAN, line(tight, wide), levels], images=images, radii=radii)
    again = judged(model, [CLEAN, line(tight, wide), levels], images=images, radii=radii)
    assert again.rows == record.rows  # milliseconds too: nothing was run twice
    tried = record.of["linf/pgd-whole-levels"]
    assert set(tried) == fragile
    score = ((images.unit() - 0.5) * direction()).flatten(1).sum(dim=1).abs()
    falls = {e for e in fragile if score[e] < 3 / 255 * direction().abs().sum()}
    assert {row.example for row in tried.values() if row.broken} == falls
    assert 0 < len(falls) < len(fragile)
    assert all(row.image for row in tried.values() if row.broken)
    found = quantised(record, "linf")
    assert found.numbers["rounded"]["count"] == standing + len(fragile) - len(falls)
    assert found.sentence.startswith("Searched for in whole levels too")
    assert "linf/pgd-whole-levels" not in record.counting("linf")
    del tried[min(fragile)]  # as if an attack that came later had broken it
    assert quantised(record, "linf").sentence.startswith("Rounded to whole levels")
    outcome = verify(tmp_path / "ledger", model, torch.device("cpu"))
    assert outcome.failures == []
    assert outcome.claims == 60 + (60 - standing) + len(falls)

    parcel, packed = Parcel.of(tmp_path / "ledger", Record.read(tmp_path / "ledger"), 30), tmp_path / "packed"
    shards.write(tmp_path / "natural.safetensors.xz", parcel.natural())
    header = headers.read(tmp_path / "ledger")
    pack(parcel, packed, model, torch.device("cpu"), header=header, natural="../natural.safetensors.xz")
    outcome = verify(packed, model, torch.device("cpu"))
    assert outcome.failures == []
    assert outcome.confirmed == outcome.claims
    assert quantised(Record.read(packed), "linf").numbers == found.numbers


class Misleading(Frail):
    """The same model with gradients that point the wrong way."""

    def forward(self, images):
        return super().forward(images.detach() + (images.detach() - images))


def test_where_gradients_mislead_random_windows_search_the_levels(judged):
    model, images, wide = Misleading(), pictures(), ThreatModel("linf", 3 / 255)
    tight = PGD(name="pgd", num_steps=1, step_size=0.4 / 255, random_start=False, any_iterate=True)
    searches = [WholeLevelPGD(num_steps=5), WholeLevelSquare(num_queries=60)]
    lines = [line(search, wide, "probe", "levels", starts="fragile") for search in searches]
    record = judged(model, [CLEAN, line(tight, wide), *lines], images=images, radii={"linf": wide.eps})
    climbed, tried = record.of["linf/pgd-whole-levels"], record.of["linf/square-whole-levels"]
    fell = {row.example for row in climbed.values() if row.broken}
    assert set(tried) == set(climbed) - fell, "what fell in whole levels is not searched for again"
    found = {row.example for row in tried.values() if row.broken}
    assert len(found) > 5
    left = quantised(record, "linf").numbers["rounded"]["count"]
    assert left == record.worst("linf").count + len(set(climbed) - fell - found)
