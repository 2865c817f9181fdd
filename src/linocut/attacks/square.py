"""The Square Attack: random search with square windows, by logits alone."""

from dataclasses import dataclass

import torch

from linocut.attacks import losses, square_windows
from linocut.attacks.attack import Result, require_batch
from linocut.attacks.dice import Dice
from linocut.attacks.gradients import look
from linocut.attacks.hooks import Model, finest_of, judge_of
from linocut.attacks.pursuit import judged
from linocut.attacks.threat import ThreatModel
from linocut.errors import InputError

_DRAWN_AT_ONCE = 32
_ASK_EVERY_ON_GPU = 16  # as in pursuit: who left is asked seldom where asking makes a GPU wait


@dataclass(frozen=True, kw_only=True)
class Square:
    """Keeps a change of one window where the margin grows; an image that is broken leaves.

    The budget counts every forward pass, the start's included. Each image draws its own window.
    Paper: supplement, Square Attack, 1,000 queries on 500 images.
    """

    name: str = "square"
    num_queries: int = 1000
    share: float = 0.8

    def __post_init__(self) -> None:
        if self.num_queries < 1:
            raise InputError(f"num_queries must be at least 1, got {self.num_queries!r}")
        if not 0 < self.share <= 1:
            raise InputError(f"share is the part of the image a window covers, 0 to 1, got {self.share!r}")

    def run(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> Result:
        """The point of highest margin of each example."""
        require_batch(images, labels)
        model = finest_of(model)  # a window's gain is far smaller than the grain of bfloat16
        points = self.shown(self.start(images, threat, dice, starts), images, threat)
        search = _Search(model, points, images, labels, dice)
        search.let_go()
        for query in range(1, self.num_queries):
            if len(search.rows) == 0:
                break
            search.try_once(self.moved(search, threat, query))
            if images.device.type == "cpu" or query % _ASK_EVERY_ON_GPU == 0:
                search.let_go()
        return search.result()

    def start(self, images: torch.Tensor, threat: ThreatModel, dice: Dice, starts: torch.Tensor | None) -> torch.Tensor:
        """What the first query is about: the given start, else stripes (L-inf) or tiled bumps (L2)."""
        if starts is not None:
            return threat.project(starts, images)
        first = square_windows.stripes if threat.norm == "linf" else square_windows.tiles
        return first(images, threat.eps, dice)

    def moved(self, search: "_Search", threat: ThreatModel, query: int) -> torch.Tensor:
        """What to try at this query."""
        linf = threat.norm == "linf"
        share = square_windows.window_share(self.share, query - 1, self.num_queries)
        side = square_windows.window_side(share, *search.points.shape[2:], odd=not linf)
        move = square_windows.repainted if linf else square_windows.shifted_mass
        points = move(search.points, search.natural, threat.eps, side, search.draw(query))
        return self.shown(points, search.natural, threat)

    def shown(self, points: torch.Tensor, natural: torch.Tensor, threat: ThreatModel) -> torch.Tensor:
        """What the model is asked about, and what is kept: the points themselves."""
        return points


class _Search:
    """The rows that are still unbroken, side by side: `rows` says which of the batch they are."""

    def __init__(
        self, model: Model, points: torch.Tensor, natural: torch.Tensor, labels: torch.Tensor, dice: Dice
    ) -> None:
        """The search after its first query, of `points`."""
        self.model, self.judge = model, judge_of(model)
        self.rows = torch.arange(len(points), device=points.device)
        self.points, self.natural, self.labels, self.dice = points, natural, labels, dice
        self.block, self.draws = -1, dice.seeds
        self.broken = torch.zeros(len(points), dtype=torch.bool, device=points.device)  # nobody yet
        if len(points):
            self.loss, self.prediction = self._asked(points)
        else:
            self.loss, self.prediction = points.new_zeros(0), labels
        self.broken = self.prediction != labels
        self.queries = torch.ones(len(points), dtype=torch.int32, device=points.device)
        best = self.loss.clone()
        self._result = Result(
            images=points.clone(),
            broken=self.broken.clone(),
            prediction=self.prediction.clone(),
            loss_start=self.loss,
            loss_best=best,
            loss_end=best,
            steps=torch.zeros_like(self.queries),
            queries=self.queries.clone(),
            trace=None,
            silent=torch.zeros_like(self.broken),
        )

    def draw(self, query: int) -> torch.Tensor:
        """Five hashes for each row, int64 (B,5). A draw is many small steps, so many queries share one."""
        block, place = divmod(query, _DRAWN_AT_ONCE)
        if block != self.block:
            self.block, self.draws = block, self.dice.bits(block, (_DRAWN_AT_ONCE, 5), stream=1)
        return self.draws[:, place]

    def try_once(self, points: torch.Tensor) -> None:
        """Make one query of each row, and keep what is better or broken."""
        loss, prediction = self._asked(points)
        wrong = (prediction != self.labels) & ~self.broken
        better = ((loss > self.loss) & ~self.broken) | wrong
        self.queries += ~self.broken
        self.points = torch.where(better[:, None, None, None], points, self.points)
        self.loss = torch.where(better, loss, self.loss)
        self.prediction = torch.where(better, prediction, self.prediction)
        self.broken = self.broken | wrong

    def _asked(self, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Margin and prediction; where a quicker copy calls an open row misclassified, its judge's prediction."""
        loss, prediction = look(self.model, points, self.labels, losses.margin)
        if self.judge is not None:
            prediction = judged(self.judge, points, prediction, (prediction != self.labels) & ~self.broken)
        return loss, prediction

    def let_go(self) -> None:
        """Write down the rows that are broken and keep the others."""
        if not bool(self.broken.any()):
            return
        self._file()
        kept = (~self.broken).nonzero().squeeze(1)
        self.dice = self.dice.select(kept)
        for name in ("rows", "natural", "labels", "draws", "points", "loss", "prediction", "broken", "queries"):
            setattr(self, name, getattr(self, name)[kept])

    def result(self) -> Result:
        """What happened to every example of the batch."""
        self._file()
        return self._result

    def _file(self) -> None:
        """Write these rows into the result of the whole batch; its two losses are one tensor."""
        whole, now = self._result, (self.points, self.loss, self.prediction, self.broken, self.queries)
        kept = (whole.images, whole.loss_best, whole.prediction, whole.broken, whole.queries)
        for target, part in zip(kept, now, strict=True):
            target.index_copy_(0, self.rows, part)
