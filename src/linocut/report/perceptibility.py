"""How visible the attacks are: SSIM of attacked against natural images, for each image and on average."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from linocut.report.identity import Identity
from linocut.report.sidecar import Sidecar
from linocut.report.sources import Subject
from linocut.report.ssim import ssim

MOST = 500  # images of a ledger and norm; more would not move the mean's second digit
AT_ONCE = 32  # images in memory as float64
PAPER = {  # mean SSIM of L-inf attacks: ATTA without a transform, and retrained with AC+AB
    "cifar-10": (0.946, 0.944),
    "gtsrb": (0.927, 0.933),
    "resisc45": (0.899, 0.877),
    "imagenette": (0.955, 0.963),
}


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """SSIM by example, of what the published attack broke in a norm; `paper` is the paper's mean, if it has one."""

    norm: str
    attack: str
    by_example: dict[int, float]
    paper: float | None

    @property
    def values(self) -> list[float]:
        return sorted(self.by_example.values())

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    def quantile(self, share: float) -> float:
        return float(torch.quantile(torch.tensor(self.values, dtype=torch.float64), share))


def likenesses(subject: Subject, sidecar: Sidecar) -> list[Likeness]:
    """One a norm in which the published attack broke something whose image was kept."""
    found, attack = [], subject.identity.published_attack
    for norm in subject.record.norms:
        by_example = _by_example(subject, sidecar, f"{norm}/{attack}")
        if by_example:
            paper = paper_mean(subject.identity) if norm == "linf" else None
            found.append(Likeness(norm=norm, attack=attack, by_example=by_example, paper=paper))
    return found


def _by_example(subject: Subject, sidecar: Sidecar, entry: str) -> dict[int, float]:
    """The SSIM of the first MOST broken rows of an entry."""
    rows, found = subject.record.of.get(entry, {}), {}
    for examples, natural, attacked in sidecar.attacked(entry):
        for first in range(0, len(examples), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            for example, value in zip(examples[part], ssim(natural[part], attacked[part]).tolist(), strict=True):
                if example in rows and rows[example].broken:
                    found[example] = value
            if len(found) >= MOST:
                return dict(list(found.items())[:MOST])
    return found


def paper_mean(identity: Identity) -> float | None:
    """The paper's mean SSIM for this model: it has two models a colour data set."""
    known = PAPER.get(identity.dataset)
    if known is None or identity.paper is None or identity.training != "atta":
        return None
    if identity.transform == "none":
        return known[0]
    return known[1] if (identity.transform, identity.transform_at) == ("ac+ab", "train") else None


def shared(likenesses: Sequence[Likeness]) -> set[int]:
    """The examples that every one of them has, on which means can be compared."""
    sets = [set(likeness.by_example) for likeness in likenesses]
    return set.intersection(*sets) if sets else set()
