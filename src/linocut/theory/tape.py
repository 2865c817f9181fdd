"""What the steps of an epoch read, drawn ahead, and a step that a GPU repeats as one recording.

A step of interval training is hundreds of small operations, and starting them takes a GPU longer than doing them. So
nothing inside a step is decided by Python: its random numbers and its place in the schedule are drawn for the whole
epoch into tensors that keep their place, and the step finds its own row by a counter on the device. Then the
whole step, from the draw of windows to the optimiser, can be recorded once and replayed.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


class Tape:
    """Rows for every step of one epoch, and the step that is due; refilled in place for each epoch."""

    def __init__(self, steps: int, batch: int, images: Tensor) -> None:
        device = images.device
        self.steps = steps
        self.batch = batch
        self.images = torch.empty_like(images)  # as shown in this epoch
        self.order = torch.zeros(steps, batch, dtype=torch.long, device=device)
        self.window = torch.zeros(steps, batch, device=device)  # where in its span, 0..1
        self.colors = torch.zeros(steps, batch, *images.shape[1:], dtype=torch.bool, device=device)
        self.parts = torch.zeros(steps, dtype=torch.long, device=device)  # the radius in 1024ths of a level
        self.weight = torch.zeros(steps, device=device)  # of the interval loss
        self.rate = torch.zeros(steps, device=device)  # of learning
        self.total = torch.zeros((), device=device)  # of the losses seen
        self.due = torch.zeros(1, dtype=torch.long, device=device)

    def fill(self, images: Tensor, schedule: Sequence[tuple[int, float, float]], edges: float, dice: torch.Generator):
        """Begins an epoch: `schedule` has (parts, weight, rate) of each step; a share `edges` of windows is extreme."""
        device = images.device
        self.images.copy_(images)
        order = torch.randperm(len(images), generator=dice, device=device)
        self.order.copy_(order[: self.order.numel()].view_as(self.order))
        where, chance = torch.rand(2, *self.window.shape, generator=dice, device=device)
        self.window.copy_(torch.where(chance < edges, where.round(), where))
        self.colors.random_(0, 2, generator=dice)
        for row, values in zip((self.parts, self.weight, self.rate), zip(*schedule, strict=True), strict=True):
            row.copy_(torch.tensor(values))
        self.total.zero_()
        self.due.zero_()

    def now(self, rows: Tensor) -> Tensor:
        """The row of the step that is due."""
        return rows.index_select(0, self.due).squeeze(0)


class Repeated:
    """A step to call again and again; on a GPU it is recorded at the fourth call and replayed from then on.

    The step must read and write tensors that stay where they are, and `optimiser` be a fused one, whose own count of
    steps is on the device. The first calls run it as it is, so that lazy set-up and the choice of algorithms are done.
    """

    def __init__(self, step: Callable[[], None], optimiser: torch.optim.Optimizer, device: torch.device) -> None:
        self.step = step
        self.optimiser = optimiser
        self.on_gpu = device.type == "cuda"
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        self.calls += 1
        if not self.on_gpu:
            self.step()
            return
        if self.graph is None and self.calls <= 3:
            self._aside()
            return
        if self.graph is None:
            self.graph = self._recorded()
        self.graph.replay()

    def _aside(self) -> None:
        """Runs the step on a stream of its own, as a recording will."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.step()
        torch.cuda.current_stream().wait_stream(stream)

    def _recorded(self) -> torch.cuda.CUDAGraph:
        for group in self.optimiser.param_groups:
            group["capturable"] = True
        self.optimiser.zero_grad(set_to_none=True)  # gradients then live in the recording's own memory
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # records without running
            self.step()
        return graph
