"""How long an evaluation takes: python benchmarks/evaluation.py --suite paper --n 2000 --precision bfloat16

Untrained weights say nothing about which examples fall, and those that fall leave and cost nothing more. So by default
the network gets a stubborn head: its true logits, scaled down, on top of one class that always wins. Nobody leaves,
every attack runs to its end, and what is measured is the most an example can cost: the price of a survivor. For
`strong` the file also says what that makes of 2,000 examples at given shares of survivors; a projection, marked as one.
With --model and --data the same is measured on a real network and real images, where examples do leave.

Prints seconds by entry and writes benchmarks/results/. Timing includes the ledger, the kept images and the findings.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

from linocut.data.dataset import Images
from linocut.evaluation.balls import balls
from linocut.evaluation.case import Case, unit
from linocut.evaluation.findings import find
from linocut.evaluation.quick import searcher
from linocut.evaluation.request import device_of, open_model
from linocut.evaluation.run import evaluate
from linocut.evaluation.sample import Sample
from linocut.evaluation.suites import plan
from linocut.models import Defended, build
from results import write_result


class Stubborn(nn.Module):
    """A network whose class 0 always wins by 1, with the network's own gradient."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits = 1e-3 * torch.tanh(self.network(images).float())
        return logits + torch.eye(logits.shape[1], device=logits.device)[0]


def synthetic(count: int, shape: tuple[int, int, int]) -> Images:
    """Smooth random images, all of class 0."""
    dice = torch.Generator().manual_seed(0)
    coarse = torch.rand(count, shape[0], max(1, shape[1] // 4), max(1, shape[2] // 4), generator=dice)
    smooth = nn.functional.interpolate(coarse, size=shape[1:], mode="bilinear")
    return Images(
        pixels=smooth.mul(255).round().to(torch.uint8),
        labels=torch.zeros(count, dtype=torch.int64),
        classes=tuple("0123456789"),
        name="synthetic",
        split="test",
        sha256="synthetic",
    )


def subject(options: argparse.Namespace, device: torch.device, images: Images) -> nn.Module:
    """The network to be judged, on its device."""
    if options.model:
        model = open_model(options.model, device, images.pixels[:2])
        assert isinstance(model, nn.Module)
    else:
        torch.manual_seed(0)
        network = Stubborn(build(options.network, 10, options.channels))
        model = Defended(transform_of(options), network).to(device).eval()
    if device.type == "cuda":
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model


def transform_of(options: argparse.Namespace) -> nn.Module | None:
    if not options.transform:
        return None
    from linocut.transform.modules import EssentialFeatures

    return EssentialFeatures.preset(options.preset)


class Clock:
    """Seconds by entry."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.last = time.perf_counter()

    def watch(self, entry, done: int, due: int, before: int) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds[entry.name] = self.seconds.get(entry.name, 0.0) + now - self.last
        self.last = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="paper")
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--network", default="wrn-34-10")
    parser.add_argument("--channels", type=int, default=3)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--preset", default="cifar-10", help="whose radii and transform")
    parser.add_argument("--transform", action="store_true", help="with the paper's transform in front")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--device")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--norm", choices=("linf", "l2", "both"), default="both")
    parser.add_argument("--model", help="a saved model, instead of the stubborn one")
    parser.add_argument("--data", help="a data set by name, with --model")
    parser.add_argument("--root", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--standing", type=float, nargs=2, default=(0.36, 0.12), help="survivors in L-inf and L2")
    parser.add_argument("--no-result", action="store_true", help="print only")
    options = parser.parse_args()
    device = device_of(options.device)
    if options.data:
        from linocut.data import load

        images = load(options.data, root=options.root, split=options.split)
    else:
        images = synthetic(options.n, (options.channels, options.side, options.side))
    model = subject(options, device, images)
    norms = ("linf", "l2") if options.norm == "both" else (options.norm,)
    radii = balls(options.data or options.preset, images.pixels[0].numel(), norms)
    half = options.precision == "bfloat16"
    quick = searcher(model, half=half, compiled=options.compile, probe=unit(images.pixels[:8].to(device)))
    case = Case(model=model, images=images, device=device, searcher=quick, raw=model)
    batch = options.batch_size or (500 if device.type == "cuda" else 100)
    sample = Sample(size=len(images), n=options.n, batch_size=batch)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        # One batch first, unmeasured: compiling kernels is paid once a machine.
        warm = Sample(size=len(images), n=min(batch, options.n), batch_size=batch)
        few = [entry for entry in plan("fast", radii) if entry.column in ("clean", "published")]
        eps = {norm: ball.threat.eps for norm, ball in radii.items()}
        evaluate(case, few, warm, Path(folder) / "warm", radii=eps, settings={"suite": "warm"})
        started = clock.last = time.perf_counter()
        settings = {"suite": options.suite}
        record = evaluate(
            case,
            plan(options.suite, radii),
            sample,
            Path(folder) / "run",
            radii=eps,
            settings=settings,
            watch=clock.watch,
        )
        findings = find(record)
        total = time.perf_counter() - started
    report(options, record, clock, total, len(findings))


def report(options, record, clock: Clock, total: float, findings: int) -> None:
    survivors: dict[str, dict] = {}
    for norm in record.norms:
        names = [name for name in record.names(norm=norm) if record.entries[name]["column"] != "probe"]
        rows = [row for name in names for row in record.of[name].values()]
        seconds = sum(clock.seconds.get(name, 0.0) for name in names)
        standing = record.worst(norm).count
        survivors[norm] = {
            "seconds": seconds,
            "standing": standing,
            "seconds_per_example": seconds / options.n,
            "gradients_per_example": sum(row.steps for row in rows) / options.n,
            "queries_per_example": sum(row.queries for row in rows) / options.n,
        }
    probes = sum(s for name, s in clock.seconds.items() if record.entries[name]["column"] == "probe")
    measured = {
        "what": f"{options.suite}, {options.norm}, n = {options.n}",
        "model": options.model or f"{options.network} with a stubborn head: nobody leaves",
        "transform": options.transform,
        "precision": options.precision,
        "compile": options.compile,
        "total_seconds": round(total, 2),
        "seconds_of_probes": round(probes, 2),
        "by_norm": survivors,
        "seconds_by_entry": {name: round(s, 3) for name, s in clock.seconds.items()},
    }
    if options.suite != "paper" and not options.model and set(survivors) == {"linf", "l2"}:
        shares = dict(zip(("linf", "l2"), options.standing, strict=True))
        # Of those that fall, most fall to the first attacks: this leaves their cost out, and says so.
        measured["projected_seconds_for_2000"] = {
            "shares_standing": shares,
            "survivors_only": round(sum(2000 * shares[n] * survivors[n]["seconds_per_example"] for n in shares), 1),
            "probes": round(probes, 1),
        }
    for name, value in measured.items():
        if name != "seconds_by_entry":
            print(f"{name}: {value}")
    for name, value in sorted(clock.seconds.items(), key=lambda item: -item[1])[:12]:
        print(f"  {name:28} {value:8.2f} s")
    print(f"{findings} findings")
    if not options.no_result:
        kind = "transform" if options.transform else "plain"
        print(write_result(f"evaluation-{options.suite}-{kind}-{options.precision}", measured))


if __name__ == "__main__":
    main()
