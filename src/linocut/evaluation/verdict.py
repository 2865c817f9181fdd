"""An evaluation from Python: a model and images in memory in, a verdict out."""

import operator
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from linocut.data.tensors import from_tensors
from linocut.errors import InputError
from linocut.evaluation import summary
from linocut.evaluation.balls import balls
from linocut.evaluation.case import Model, at_rest
from linocut.evaluation.findings import NOT_APPLICABLE, OK, Finding, find
from linocut.evaluation.header import IN_MEMORY
from linocut.evaluation.hearing import batch_size_for, dressed, hear
from linocut.evaluation.pictures import Pictures
from linocut.evaluation.progress import Progress
from linocut.evaluation.record import Record, Share
from linocut.evaluation.sample import Sample
from linocut.evaluation.suites import Suite
from linocut.evaluation.verify import Verification, verify
from linocut.evaluation.wrapped import Expectation


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Verdict:
    """What was found; shown as the tables of `linocut evaluate`, with the checks that fail or warn.

    record: all rows. findings: the fifteen checks. folder: the ledger, for `linocut report` and `linocut verify`.
    """

    record: Record
    findings: list[Finding]
    folder: Path
    judge: Model
    device: torch.device

    @property
    def clean(self) -> Share:
        """The accuracy with no attack."""
        return self.record.clean

    def published(self, norm: Literal["linf", "l2"]) -> Share:
        """The accuracy under the published PGD (of a fixed codebook: the loop of Chen et al.)."""
        return self.record.published(self._judged(norm))[self.record.white_box(norm)]

    def worst(self, norm: Literal["linf", "l2"]) -> Share:
        """The accuracy per example over everything that was tried."""
        return self.record.worst(self._judged(norm))

    @property
    def failed(self) -> list[str]:
        """The codes of the checks that fail: then take the worst case as an upper bound."""
        return summary.failed(self.findings)

    def adversarial(self, norm: Literal["linf", "l2"]) -> tuple[torch.Tensor, torch.Tensor]:
        """Which of the given images something broke, int64 (K,), and an image that did, float32 (K,C,H,W).

        What the model gets wrong with no attack is not among them.
        """
        pictures, found = Pictures.of(self.folder), dict[int, torch.Tensor]()
        for name in self.record.counting(self._judged(norm)):
            for batch in pictures.batches(name):
                shard = pictures.adversarial(name, batch)
                assert shard is not None
                for example, image in zip(shard["example"].tolist(), shard["image"], strict=True):
                    if self.record.of[name][example].broken:  # others are kept that the model was right about at last
                        found.setdefault(example, image)
        examples = sorted(found)
        images = [found[example] for example in examples]
        return torch.tensor(examples, dtype=torch.int64), torch.stack(images) if images else torch.empty(0)

    def verify(self) -> Verification:
        """Every claim of the ledger asked again of the model, as `linocut verify` does."""
        with at_rest(self.judge):
            return verify(self.folder, self.judge, self.device)

    def as_json(self) -> dict[str, Any]:
        """What `linocut evaluate --json` prints."""
        return summary.as_json(self.record, self.findings, self.folder)

    def __repr__(self) -> str:
        told = [line for line in summary.finding_lines(self.findings) if line[0] not in (OK, NOT_APPLICABLE)]
        checks = summary.aligned(told) if told else ["no check fails or warns"]
        table = summary.aligned(summary.accuracy_lines(self.record))
        return "\n".join([*table, *summary.notes(self.record), "", *checks])

    def _judged(self, norm: str) -> str:
        if norm not in self.record.norms:
            raise InputError(f"{norm!r} was not judged: {', '.join(self.record.norms)} were")
        return norm


@torch.inference_mode(False)  # there, and under no_grad, attacks would see no gradient
@torch.enable_grad()
def evaluate(
    model: Model,
    images: Any,
    labels: Any,
    *,
    out: str | Path,
    eps: float | None = None,
    norm: Literal["linf", "l2", "both"] = "both",
    suite: Suite = "strong",
    attack: Suite | None = None,
    preprocess: Model | None = None,
    twin: Model | None = None,
    name: str | None = None,
    data: str = "images",
    n: int | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    precision: Literal["float32", "bfloat16"] = "float32",
    compile: bool = False,
    progress: bool = True,
) -> Verdict:
    """The verdict on a model, over images in memory.

    model: any callable from images in [0,1] to logits (B, classes); a module is judged in eval mode, where its weights
    lie, and left as it was. images: (N,C,H,W), whole grey levels, as uint8 or on the unit range; labels: (N,).
    out: the ledger's folder; the same call goes on where it was stopped. eps: the radius, that of L-inf with both
    norms (L2 gets its corner's length); it may be left out if `data` names a set of the paper. suite, attack: the names
    that `linocut evaluate` knows, or lists of attacks. preprocess: put before the model; one without a gradient is
    passed straight through (BPDA). twin: the undefended model, whose adversarial images are tried too. name: what
    reports call the model. The rest is as at the command line.
    """
    if norm not in ("linf", "l2", "both"):
        raise InputError(f"norm must be linf, l2 or both, got {norm!r}")
    if precision not in ("float32", "bfloat16"):
        raise InputError(f"precision must be float32 or bfloat16, got {precision!r}")
    for made, told in ((model, "model"), (twin, "twin"), (preprocess, "preprocess")):
        if not (callable(made) or (made is None and told != "model")):
            raise InputError(f"{told} must be a function of images, got a {type(made).__name__}; load a folder first")
    given, device, folder = from_tensors(images, labels, name=str(data)), _home(model, images), Path(out).resolve()
    radii = balls(
        str(data),
        given.pixels[0].numel(),
        ("linf", "l2") if norm == "both" else (norm,),
        None if eps is None else _number(eps, "eps"),
    )
    sample = Sample(
        size=len(given),
        n=len(given) if n is None else _count(n, "n"),
        batch_size=batch_size_for(device) if batch_size is None else _count(batch_size, "batch_size"),
        seed=_count(seed, "seed"),
    )
    with at_rest(model, twin, preprocess), Progress(shown=progress) as shown:
        judged = dressed(model, preprocess, given.unit(slice(0, 2)).to(device))
        record = hear(
            judged,
            given,
            sample,
            folder,
            names={
                "model": f"{name or type(model).__name__}{IN_MEMORY}",
                "preprocess": None if preprocess is None else _called(preprocess),
                "twin": None if twin is None else _called(twin),
                "data": str(data),
                "split": given.split,
            },
            radii=radii,
            device=device,
            suite=suite,
            also=attack,
            twin=twin,
            half=precision == "bfloat16",
            compiled=compile,
            watch=shown.watch,
        )
    draws = record.settings["draws"]
    judge = Expectation(judged, draws) if draws > 1 else judged
    return Verdict(record=record, findings=find(record), folder=folder, judge=judge, device=device)


def _count(value: Any, name: str) -> int:
    """A whole number of any kind, NumPy's too."""
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}") from None


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number such as 8 / 255, got {value!r}") from None


def _home(model: Model, images: Any) -> torch.device:
    """Where the model's weights lie; of a model without any, where the images do."""
    tensors = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    if tensors:
        return tensors[0].device
    return images.device if isinstance(images, torch.Tensor) else torch.device("cpu")


def _called(function: Model) -> str:
    """module:function where `linocut verify` finds it under that name; else its kind, in memory."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module != "__main__" and getattr(sys.modules.get(str(module)), str(name), None) is function:
        return f"{module}:{name}"
    return f"{name or type(function).__name__}{IN_MEMORY}"
