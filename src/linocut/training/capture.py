"""A whole training step as one CUDA graph: the processor no longer launches thousands of kernels a step."""

import logging

import torch

from linocut.data.augment import Windows
from linocut.training.epochs import Batch
from linocut.training.trainer import Trainer

LOG = logging.getLogger(__name__)
WARMUP_STEPS = 3


def can_capture(trainer: Trainer) -> bool:
    """Whether nothing of a step happens outside one GPU: no store on disk, no other process."""
    return trainer.canvas.home.type == "cuda" and trainer.world.size == 1


class CapturedStep:
    """Trainer.step for full batches of one size, replayed from a graph after a few ordinary steps.

    The ordinary steps are steps of the run: capturing changes how a step is launched, not what is trained.
    Batches of another size run as usual; so do all, where capturing fails, and `failure` says why.
    """

    def __init__(self, trainer: Trainer):
        self.trainer = trainer
        self.usual = trainer.config.batch_size
        self.stream = torch.cuda.Stream()
        self.graph: torch.cuda.CUDAGraph | None = None
        self.failure: str | None = None
        self.warm = 0
        self.batch: Batch | None = None
        self.outcome = torch.empty(0)

    def __call__(self, batch: Batch) -> torch.Tensor:
        if len(batch.examples) != self.usual or self.failure is not None:
            return self.trainer.step(batch)
        if self.warm < WARMUP_STEPS:
            self.warm += 1
            return self._on_side_stream(batch)
        if self.graph is None:
            self._capture(batch)
        if self.graph is None or self.batch is None:
            return self.trainer.step(batch)
        self.batch.examples.copy_(batch.examples)
        self.batch.windows.rows.copy_(batch.windows.rows)
        self.batch.windows.columns.copy_(batch.windows.columns)
        self.batch.seeds.copy_(batch.seeds)
        self.graph.replay()
        return self.outcome

    def _on_side_stream(self, batch: Batch) -> torch.Tensor:
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            outcome = self.trainer.step(batch)
        torch.cuda.current_stream().wait_stream(self.stream)
        return outcome

    def _capture(self, batch: Batch) -> None:
        """Record a step without taking it; where that fails, nothing was trained and nothing is recorded."""
        windows = Windows(rows=batch.windows.rows.clone(), columns=batch.windows.columns.clone())
        examples, seeds = batch.examples.clone(), batch.seeds.clone()
        static = Batch(examples=examples, windows=windows, seeds=seeds, whole_size=batch.whole_size, idle=False)
        torch.cuda.synchronize()
        self.trainer.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=self.stream):
                self.outcome = self.trainer.step(static)
        except RuntimeError as error:
            self.failure = f"{type(error).__name__}: {error}"[:500]
            LOG.warning("the step could not be captured as a graph and is launched piece by piece: %s", self.failure)
            return
        self.graph, self.batch = graph, static
