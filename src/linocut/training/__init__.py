"""Natural training and ATTA, with checkpoints that survive. Start with trainer.py: it is one step of it."""

from linocut.training.config import TrainingConfig
from linocut.training.run import Outcome, train

__all__ = ["Outcome", "TrainingConfig", "train"]
