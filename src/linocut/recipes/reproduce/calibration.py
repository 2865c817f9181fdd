"""How quick this machine is at the very networks, batches and transforms of a plan: a few steps, timed."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from linocut.attacks.attack import Attack
from linocut.attacks.dice import Dice
from linocut.attacks.pgd import PGD
from linocut.attacks.square import Square
from linocut.attacks.threat import ThreatModel
from linocut.data import Images
from linocut.models import Architecture, Defended, build
from linocut.recipes.reproduce.shelf import some_of
from linocut.recipes.reproduce.step import digest
from linocut.recipes.reproduce.work import Work
from linocut.training.config import TrainingConfig
from linocut.training.epochs import EpochPlan, Ownership
from linocut.training.fitting import fitted, rebuilt
from linocut.training.run import check_takes, make_trainer
from linocut.training.world import World

PROBE, FURTHER = 4, 16  # images of the first, small look, and of a second one
LONG = 5.0  # seconds; a whole batch that would take longer is reckoned from small looks
ENOUGH = 2.0  # seconds of whole batches, after which their time is known
REPEATS, PASSES = 3, 5


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Seconds that a pass costs: so much for each batch, so much for each image in it."""

    batch: float
    image: float

    def of(self, images: int, batch_size: int) -> float:
        """One pass of so many images, in batches."""
        return -(-images // batch_size) * self.batch + images * self.image


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Seconds: a step of PGD, a query of Square, the transform of one image.

    whole: whether whole batches were timed; else a few images were, and the rest is reckoned from them.
    """

    gradient: Pace
    query: Pace
    transform: float
    whole: bool


class Calibration:
    """Speeds of works; what differs in nothing that costs time is timed once."""

    def __init__(self, device: torch.device, scratch: Path, tell: Callable[[str], None] = lambda text: None):
        self.device, self.scratch, self.tell = device, scratch, tell
        self._speeds: dict[str, Speed] = {}
        self._steps: dict[str, Times] = {}

    def of(self, work: Work, images: Images) -> Speed:
        """How quickly this work's network is attacked, however it was trained; `images` are those of its training."""
        config, batch = work.config, min(work.judgements[0].batch_size, len(images))
        kind = [config.data_set, config.architecture, config.transform, config.norm]
        key = digest({"kind": kind, "shape": list(images.pixels.shape[1:]), "judged": batch})
        if key not in self._speeds:
            self.tell(f"  attacks on {config.architecture} for {work.data_set}/{work.row}")
            self._speeds[key] = self._speed(config, some_of(images, batch), batch)
        return self._speeds[key]

    def step(self, work: Work, images: Images) -> "Times":
        """How long a step of this work's training takes."""
        whole = max(1, len(images) // work.config.shards) * work.config.shards
        config = replace(work.config, batch_size=min(work.config.batch_size, whole))  # a step takes no more either
        fields = {**config.to_json(), "recipe": "", "epochs": 0, "seed": 0, "shape": list(images.pixels.shape[1:])}
        key = digest(fields)
        if key not in self._steps:
            self.tell(f"  training of {config.architecture} for {work.data_set}/{work.row}")
            few = some_of(images, config.batch_size)
            config = _uncompiled(config, few)
            self._steps[key] = self._timed(lambda n: self._training(config, some_of(few, n)), config.batch_size)
        return self._steps[key]

    def _speed(self, config: TrainingConfig, images: Images, batch: int) -> Speed:
        config = _uncompiled(config, images)
        model = self._model(config, images)
        threat = ThreatModel(config.norm, config.eps)  # type: ignore[arg-type]  # the config knows but two
        climb = self._timed(lambda n: _attack(PGD(num_steps=PASSES), model, self._some(images, n), threat), batch)
        query = self._timed(lambda n: _attack(Square(num_queries=PASSES), model, self._some(images, n), threat), batch)
        paint = 0.0
        if model.transform is not None:
            front = torch.no_grad()(model.transform)
            paint = self._timed(lambda n: partial(front, self._some(images, n)[0]), batch).whole / batch
        return Speed(gradient=climb.pace(batch), query=query.pace(batch), transform=paint, whole=climb.timed)

    def _timed(self, make: Callable[[int], Callable[[], object]], size: int) -> "Times":
        """Seconds for one turn with few images, and with all `size`."""
        few = min(PROBE, size)
        small = make(few)
        small()  # the first turn compiles kernels and fills caches
        probe = self._clock(small)
        if few < size and probe * size / few > LONG:
            # Perhaps that is the price of a step and not of its images, as where a network has many weights.
            further = min(FURTHER, size)
            more = make(further)
            more()
            image = max(0.0, (self._clock(more) - probe) / (further - few))
            reckoned = probe + (size - few) * image
            if reckoned > LONG:
                return Times(few=probe, count=few, whole=reckoned, timed=False)
        whole = make(size)
        times = [self._clock(whole)]
        while len(times) < 2 or (sum(times) < ENOUGH and len(times) <= REPEATS):
            times.append(self._clock(whole))
        typical = statistics.median(times[1:])  # the first turn fills caches, and chooses kernels
        return Times(few=min(probe, self._clock(small)), count=few, whole=typical, timed=True)

    def _some(self, images: Images, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        return images.unit(slice(0, n)).to(self.device), images.labels[:n].to(self.device)

    def _clock(self, turn: Callable[[], object]) -> float:
        self._wait()
        started = time.perf_counter()
        turn()
        self._wait()
        return time.perf_counter() - started

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _training(self, config: TrainingConfig, images: Images) -> Callable[[], object]:
        config = replace(config, batch_size=len(images), shards=1)
        own = Ownership(num_examples=len(images), shards=1)
        trainer = make_trainer(config, images, own, self.device, World(), self.scratch, on_disk=False)
        if config.method == "atta":
            trainer.start_segment(own, 0)
        trainer.set_turn(0, config.learning_rate)
        batch = EpochPlan(config, own, 0, trainer.canvas.image, trainer.canvas.home).batch(0)
        return lambda: trainer.step(batch)

    def _model(self, config: TrainingConfig, images: Images) -> Defended:
        network = Architecture(
            name=config.architecture, num_classes=len(images.classes), in_channels=images.pixels.shape[1]
        )
        check_takes(network, (images.pixels.shape[2], images.pixels.shape[3]))
        made = Defended(rebuilt(config), build(network.name, network.num_classes, network.in_channels))
        return made.to(self.device).eval().requires_grad_(False)


@dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds for one turn with `count` images and with a whole batch; whether that was timed, or reckoned."""

    few: float
    count: int
    whole: float
    timed: bool

    def pace(self, size: int) -> Pace:
        """What one of the PASSES costs, split into what a batch costs and what an image does."""
        if size == self.count:
            return Pace(batch=self.whole / PASSES, image=0.0)
        image = max(0.0, (self.whole - self.few) / (size - self.count))
        return Pace(batch=max(0.0, self.few - image * self.count) / PASSES, image=image / PASSES)


def _uncompiled(config: TrainingConfig, images: Images) -> TrainingConfig:
    """The same with a codebook of few images for one of all, and nothing to compile."""
    return fitted(replace(config, compile=False), images)


def _attack(
    attack: Attack, model: Defended, batch: tuple[torch.Tensor, torch.Tensor], threat: ThreatModel
) -> Callable[[], object]:
    """A few steps on images that the untrained network takes for something else: they never break, and all run."""
    points, _ = batch
    with torch.no_grad():
        labels = model(points).argmax(dim=1)
    seeds = torch.arange(len(points), device=points.device)
    return lambda: attack.run(model, points, labels, threat, Dice(seeds))
