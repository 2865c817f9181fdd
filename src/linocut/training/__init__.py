"""Natural training and ATTA, with checkpoints that survive. Start with trainer.py, one step; loop.py repeats it."""

from linocut.training.config import TrainingConfig
from linocut.training.run import Outcome, train

__all__ = ["Outcome", "TrainingConfig", "train"]
