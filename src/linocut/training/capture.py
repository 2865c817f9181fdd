"""A whole training step as one CUDA graph: the processor no longer launches thousands of kernels a step."""

import torch

from linocut.data.augment import Windows
from linocut.training.epochs import Batch
from linocut.training.trainer import Trainer

WARMUP_STEPS = 3


class CapturedStep:
    """Trainer.step for full batches of one size, replayed from a graph after a few ordinary steps.

    The ordinary steps are steps of the run: capturing changes how a step is launched, not what is trained.
    Batches of another size run as usual. The canvases must lie on the GPU.
    """

    def __init__(self, trainer: Trainer):
        assert trainer.canvas.home.type == "cuda"
        assert trainer.world.size == 1
        self.trainer = trainer
        self.usual = trainer.config.batch_size
        self.stream = torch.cuda.Stream()
        self.graph: torch.cuda.CUDAGraph | None = None
        self.warm = 0
        self.batch: Batch | None = None
        self.outcome = torch.empty(0)

    def __call__(self, batch: Batch) -> torch.Tensor:
        if len(batch.examples) != self.usual:
            return self.trainer.step(batch)
        if self.warm < WARMUP_STEPS:
            self.warm += 1
            return self._on_side_stream(batch)
        if self.graph is None:
            self._capture(batch)
        assert self.batch is not None
        assert self.graph is not None
        self.batch.examples.copy_(batch.examples)
        self.batch.windows.rows.copy_(batch.windows.rows)
        self.batch.windows.columns.copy_(batch.windows.columns)
        self.graph.replay()
        return self.outcome

    def _on_side_stream(self, batch: Batch) -> torch.Tensor:
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            outcome = self.trainer.step(batch)
        torch.cuda.current_stream().wait_stream(self.stream)
        return outcome

    def _capture(self, batch: Batch) -> None:
        windows = Windows(rows=batch.windows.rows.clone(), columns=batch.windows.columns.clone())
        self.batch = Batch(examples=batch.examples.clone(), windows=windows, whole_size=batch.whole_size, idle=False)
        torch.cuda.synchronize()
        self.trainer.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            self.outcome = self.trainer.step(self.batch)
