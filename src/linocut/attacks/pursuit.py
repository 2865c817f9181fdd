"""The examples still under attack, and the best point seen of each.

Two modes. As published, every example stays for all steps and the point of highest loss is returned. In the
worst case (`any_iterate`) a misclassified point is kept at once and its example leaves, so that the model
runs on survivors only; where there is a judge (see hooks), it must call the point misclassified too. As
published the judge is asked once, at the end: whether a misclassified point that was passed by truly is one.
`keep_last` returns the last point in place of the best.
"""

import torch

from linocut.attacks.attack import Result
from linocut.attacks.hooks import Model

# Whether anyone left is a question the host must wait for; on a GPU it is asked this seldom. Examples that
# are broken meanwhile stay locked, so the answer does not depend on it.
_ASK_EVERY_ON_GPU = 8


@torch.no_grad()
def judged(judge: Model, points: torch.Tensor, prediction: torch.Tensor, doubted: torch.Tensor) -> torch.Tensor:
    """The predictions with those of the doubted rows replaced by the judge's."""
    rows = doubted.nonzero().squeeze(1)
    return prediction.index_copy(0, rows, judge(points[rows]).argmax(dim=1)) if len(rows) else prediction


class Pursuit:
    """Rows are the examples still here: `rows` says which of the batch they are."""

    def __init__(
        self,
        images: torch.Tensor,
        labels: torch.Tensor,
        *,
        any_iterate: bool,
        num_looks: int,
        keep_last: bool = False,
        judge: Model | None = None,
    ) -> None:
        count, device = len(images), images.device
        self.any_iterate, self.keep_last, self.judge = any_iterate, keep_last, judge
        self.rows = torch.arange(count, device=device)
        self.natural, self.labels = images, labels
        self.best = images.clone()
        self.loss_best = torch.full((count,), -torch.inf, device=device)
        self.loss_start = torch.full((count,), torch.nan, device=device)
        self.loss_end = self.loss_start.clone()
        self.prediction = labels.clone()
        self.wrong = torch.zeros(count, dtype=torch.bool, device=device)  # of the best point
        self.seen_wrong = self.wrong.clone()
        # Of the points that a quick copy calls misclassified, the one of highest loss: the judge is asked at the end.
        self.passed = images.clone() if judge is not None and not any_iterate else None
        self.loss_passed = self.loss_best.clone()
        self.queries = torch.zeros(count, dtype=torch.int32, device=device)
        self.steps = self.queries.clone()
        self.trace = torch.full((count, num_looks), torch.nan, device=device)
        self.looks = 0
        self._result = self._snapshot()

    def __len__(self) -> int:
        return len(self.rows)

    def see(
        self,
        points: torch.Tensor,
        loss: torch.Tensor,
        prediction: torch.Tensor,
        *,
        queries: int = 1,
        steps: int = 0,
    ) -> torch.Tensor:
        """Which of these points are the new best of their example, bool; they are kept."""
        here = ~self.wrong if self.any_iterate else torch.ones_like(self.wrong)
        wrong = (prediction != self.labels) & here
        if self.any_iterate and self.judge is not None:
            prediction = judged(self.judge, points, prediction, wrong)
            wrong = (prediction != self.labels) & here
        better = here & (loss > self.loss_best)
        if self.looks == 0:
            self.loss_start = loss
        if self.looks == 0 or self.keep_last:
            better = here  # whatever its loss: NaN must not leave an example without a point
        elif self.any_iterate:
            better = better | wrong
        torch.where(better[:, None, None, None], points, self.best, out=self.best)
        known = torch.where(loss.isnan(), -torch.inf, loss)  # so that any number beats it
        self.loss_best = torch.where(better, known, self.loss_best)
        self.prediction = torch.where(better, prediction, self.prediction)
        self.wrong = torch.where(better, wrong, self.wrong)
        self.seen_wrong = self.seen_wrong | wrong
        if self.passed is not None:
            worse = wrong & ~(loss <= self.loss_passed)  # a loss that is no number counts as high
            torch.where(worse[:, None, None, None], points, self.passed, out=self.passed)
            self.loss_passed = torch.where(worse, loss, self.loss_passed)
        self.loss_end = torch.where(here, loss, self.loss_end)
        self.trace[:, self.looks] = torch.where(here, loss, torch.nan)
        self.queries += here * queries
        self.steps += here * steps
        self.looks += 1
        return better

    def stay(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The same tensors without the rows of examples that have just left."""
        asked = self.rows.device.type == "cpu" or self.looks % _ASK_EVERY_ON_GPU == 0
        if not (self.any_iterate and asked and bool(self.wrong.any())):
            return tensors
        kept = (~self.wrong).nonzero().squeeze(1)
        self._file()
        for name in (*Result._fields, "rows", "natural", "labels", "best", "wrong", "seen_wrong"):
            if name not in ("images", "broken", "silent"):
                setattr(self, name, getattr(self, name)[kept])
        return tuple(tensor[kept] for tensor in tensors)

    def result(self) -> Result:
        """What happened to every example of the batch."""
        if self.passed is not None and self.judge is not None:
            doubted = self.seen_wrong & ~self.wrong
            self.seen_wrong = judged(self.judge, self.passed, self.labels, doubted) != self.labels
        if len(self.rows) == len(self._result.broken):
            return self._snapshot()
        self._file()
        return self._result

    def _snapshot(self) -> Result:
        return Result(
            images=self.best,
            broken=self.wrong,
            prediction=self.prediction,
            loss_start=self.loss_start,
            loss_best=self.loss_best,
            loss_end=self.loss_end,
            steps=self.steps,
            queries=self.queries,
            trace=self.trace,
            silent=self.seen_wrong & ~self.wrong,
        )

    def _file(self) -> None:
        """Write the rows that are here into the result of the whole batch."""
        now = self._snapshot()
        if len(self.rows) == len(self._result.broken):
            self._result = Result(*(part.clone() for part in now if part is not None))
            return
        for whole, part in zip(self._result, now, strict=True):
            assert whole is not None
            assert part is not None
            whole.index_copy_(0, self.rows, part)
