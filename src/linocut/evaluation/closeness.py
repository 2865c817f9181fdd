"""When two machines may take an image for different classes without one of them being wrong."""

import math

import torch

# Of a logit's lead over others; machines that round differently, as GPUs do with TF32, differ by up to so much.
CLOSE = 2e-3


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
