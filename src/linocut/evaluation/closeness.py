"""When two machines may take an image for different classes without one of them being wrong."""

import math

import torch

# Of a logit's lead over others; machines that round differently, as GPUs do with TF32, differ by up to so much.
CLOSE = 2e-3
SWAY = 0.02  # by which the logits of one model may differ in all, whatever computes them and in whatever format


def is_close(scores: torch.Tensor, here: int, there: int) -> bool:
    """Whether two different classes' logits differ by next to nothing.

    That is measured against the lead over the median of all other classes: a single class that is far below, as one
    that is never meant to be chosen, says nothing about rounding, and a chance of 0 (-inf) nothing at all. Without
    others it is measured against the logits themselves. A class of -1, no number, is close to none.
    """
    if here == there or not {here, there} <= set(range(len(scores))):
        return False
    others = [index for index in range(len(scores)) if index not in (here, there) and scores[index].isfinite()]
    lead = float(scores[here] - scores[others].median() if others else scores[[here, there]].abs().max())
    if not math.isfinite(lead):
        return False
    return float((scores[here] - scores[there]).abs()) <= CLOSE * lead


def are_alike(before: list[list[float]] | None, now: list[list[float]] | None) -> bool:
    """Whether these may be one model's logits of the same images; not known is taken for yes.

    They are measured as `is_close` does: against the lead over the median, which a class that is far below, or a
    number that is added to all classes, does not change.
    """
    if before is None or now is None:
        return True
    held, found = torch.tensor(before, dtype=torch.float64), torch.tensor(now, dtype=torch.float64)
    if held.shape != found.shape:
        return False
    held, found = (logits - logits.median(dim=1, keepdim=True).values for logits in (held, found))
    return bool((held - found).abs().max() <= SWAY * held.amax(dim=1).max() + 1e-9)
