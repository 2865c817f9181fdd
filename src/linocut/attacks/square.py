"""The Square Attack: random search with square windows, by logits alone."""

from dataclasses import dataclass
from typing import NamedTuple

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


class SquareState(NamedTuple):
    """Everything a search needs to go on: `done` queries are made of every example that is not broken."""

    points: torch.Tensor
    loss: torch.Tensor
    loss_start: torch.Tensor
    prediction: torch.Tensor
    broken: torch.Tensor
    queries: torch.Tensor
    done: int


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
        model = finest_of(model)  # a window's gain is far smaller than the grain of bfloat16
        state = self.begin(model, images, labels, threat, dice, starts)
        state = self.advance(state, model, images, labels, threat, dice, self.num_queries)
        return Result(
            images=state.points,
            broken=state.broken,
            prediction=state.prediction,
            loss_start=state.loss_start,
            loss_best=state.loss,
            loss_end=state.loss,
            steps=torch.zeros_like(state.queries),
            queries=state.queries,
            trace=None,
            silent=torch.zeros_like(state.broken),
        )

    def begin(
        self,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        starts: torch.Tensor | None = None,
    ) -> SquareState:
        """The search after its first query: stripes (L-inf), tiled bumps (L2) or the given start."""
        require_batch(images, labels)
        if starts is not None:
            points = threat.project(starts, images)
        elif threat.norm == "linf":
            points = square_windows.stripes(images, threat.eps, dice)
        else:
            points = square_windows.tiles(images, threat.eps, dice)
        points = self.shown(points, images, threat)
        if len(images):
            loss, prediction = _asked(model, points, labels, torch.ones_like(labels, dtype=torch.bool))
        else:
            loss, prediction = images.new_zeros(0), labels
        queries = torch.ones(len(images), dtype=torch.int32, device=images.device)
        return SquareState(points, loss, loss, prediction, prediction != labels, queries, 1)

    def advance(
        self,
        state: SquareState,
        model: Model,
        images: torch.Tensor,
        labels: torch.Tensor,
        threat: ThreatModel,
        dice: Dice,
        until: int,
    ) -> SquareState:
        """The search after `until` queries: the same whether it went there at once or with stops."""
        if until > self.num_queries:
            raise InputError(f"the budget is {self.num_queries} queries, asked to go on to {until}")
        whole = SquareState._make([*(part.clone() for part in state[:-1]), max(until, state.done)])
        rows = (~whole.broken).nonzero().squeeze(1)
        search = _Search(whole, rows, images, labels, dice)
        for query in range(state.done, until):
            if len(search.rows) == 0:
                break
            search.try_once(model, self._moved(search, threat, query))
            if images.device.type == "cpu" or query % _ASK_EVERY_ON_GPU == 0:
                search.let_go(whole)
        search.file(whole)
        return whole

    def _moved(self, search: "_Search", threat: ThreatModel, query: int) -> torch.Tensor:
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


def _asked(
    model: Model, points: torch.Tensor, labels: torch.Tensor, open_rows: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Margin and prediction; where a quicker copy calls an open row misclassified, its judge's prediction."""
    loss, prediction = look(model, points, labels, losses.margin)
    judge = judge_of(model)
    if judge is not None:
        prediction = judged(judge, points, prediction, (prediction != labels) & open_rows)
    return loss, prediction


class _Search:
    """The rows of a state that are still unbroken, side by side."""

    def __init__(
        self, whole: SquareState, rows: torch.Tensor, natural: torch.Tensor, labels: torch.Tensor, dice: Dice
    ) -> None:
        self.rows, self.natural, self.labels, self.dice = rows, natural[rows], labels[rows], dice.select(rows)
        self.block, self.draws = -1, dice.seeds[rows]
        self.points, self.loss, _, self.prediction, self.broken, self.queries = (part[rows] for part in whole[:-1])

    def draw(self, query: int) -> torch.Tensor:
        """Five hashes for each row, int64 (B,5). A draw is many small steps, so many queries share one."""
        block, place = divmod(query, _DRAWN_AT_ONCE)
        if block != self.block:
            self.block, self.draws = block, self.dice.bits(block, (_DRAWN_AT_ONCE, 5), stream=1)
        return self.draws[:, place]

    def try_once(self, model: Model, points: torch.Tensor) -> None:
        """Make one query of each row, and keep what is better or broken."""
        loss, prediction = _asked(model, points, self.labels, ~self.broken)
        wrong = (prediction != self.labels) & ~self.broken
        better = ((loss > self.loss) & ~self.broken) | wrong
        self.queries += ~self.broken
        self.points = torch.where(better[:, None, None, None], points, self.points)
        self.loss = torch.where(better, loss, self.loss)
        self.prediction = torch.where(better, prediction, self.prediction)
        self.broken = self.broken | wrong

    def let_go(self, whole: SquareState) -> None:
        """Write down the rows that are broken and keep the others."""
        if not bool(self.broken.any()):
            return
        self.file(whole)
        kept = (~self.broken).nonzero().squeeze(1)
        self.dice = self.dice.select(kept)
        for name in (
            "rows",
            "natural",
            "labels",
            "draws",
            "points",
            "loss",
            "prediction",
            "broken",
            "queries",
        ):
            setattr(self, name, getattr(self, name)[kept])

    def file(self, whole: SquareState) -> None:
        """Write these rows into the state of the whole batch."""
        for name in ("points", "loss", "prediction", "broken", "queries"):
            getattr(whole, name).index_copy_(0, self.rows, getattr(self, name))
