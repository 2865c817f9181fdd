"""One step of training: cut, attack, update, write back. Everything of ATTA that is not bookkeeping.

Paper: section 5 after Zheng et al. (2020). Their code divides the loss by the batch size B twice; one
division with learning rate lr/B and weight decay wd*B takes the same steps: so the recipes are written.
"""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from linocut.attacks import Dice
from linocut.models import Architecture
from linocut.training.averaging import WeightAverage
from linocut.training.canvas import Canvas
from linocut.training.config import TrainingConfig
from linocut.training.epochs import Batch, Ownership
from linocut.training.networks import Front, fresh_network, twin_of
from linocut.training.objectives import attack_objective, climb, training_loss
from linocut.training.streams import stream
from linocut.training.world import World


class Trainer:
    """A network, its optimiser, its canvases and the running average: all that training changes.

    canvas, labels: this process's own examples. transform: a module, or None where training goes without.
    """

    def __init__(
        self,
        config: TrainingConfig,
        canvas: Canvas,
        labels: torch.Tensor,
        *,
        network: Architecture,
        transform: nn.Module | None,
        device: torch.device,
        world: World | None = None,
    ):
        self.config, self.canvas, self.labels = config, canvas, labels.to(device)
        self.world = world or World()
        self.architecture = network
        fresh = fresh_network(network, config.seed)
        if self.world.size > 1 and device.type == "cuda":
            fresh = nn.SyncBatchNorm.convert_sync_batchnorm(fresh)
        layout = torch.channels_last if config.channels_last else torch.preserve_format
        self.network: nn.Module = fresh.to(device, memory_format=layout).train()  # type: ignore[call-overload]
        usual = config.batch_size // self.world.size
        self.attacked = Front(config, transform, twin_of(self.network, self.architecture), device, usual)
        updated: nn.Module = self.network
        if self.world.size > 1:
            updated = DistributedDataParallel(updated)
        self.updated = Front(config, transform, updated, device, usual)
        on_gpu = device.type == "cuda"
        # On a GPU the learning rate is a tensor, so that a captured step follows the schedule.
        rate = torch.tensor(config.learning_rate, device=device) if on_gpu else config.learning_rate
        self.optimizer = torch.optim.SGD(
            self.network.parameters(),
            lr=rate,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
            fused=on_gpu,
        )
        self.average = WeightAverage(self.network, config.averaging) if config.averaging else None

    def set_turn(self, step: int, rate: float) -> None:
        """Prepare step number `step` of the run: its learning rate and its share in the average."""
        if self.average is not None:
            self.average.set_turn(step)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def start_segment(self, own: Ownership, epoch: int) -> None:
        """Give every own example a fresh perturbation: natural + noise * N(0,1)."""
        for number in own.own_shards():
            generator = stream(self.config.seed, "noise", epoch, number, device=self.canvas.home)
            self.canvas.reset(own.places(number), self.config.start_noise, generator)

    def step(self, batch: Batch) -> torch.Tensor:
        """Loss, correct predictions and examples of this process's part, float32 (3,), still on the device.

        The predictions are those of the update: in train mode, on the images the attack found.
        """
        labels = self.labels[batch.examples]
        if self.config.method == "atta":
            natural, start = self.canvas.cut(batch.examples, batch.windows)
            perturbed = self.perturb(natural, start, labels, batch.seeds)
            if not batch.idle:
                self.canvas.write_back(batch.examples, batch.windows, natural, perturbed)
        else:
            natural = perturbed = self.canvas.cut_natural(batch.examples, batch.windows)
        return self.update(natural, perturbed, labels, batch.whole_size, idle=batch.idle)

    def perturb(
        self, natural: torch.Tensor, start: torch.Tensor, labels: torch.Tensor, seeds: torch.Tensor
    ) -> torch.Tensor:
        """The images that the training attack makes of `start`; the network stays as it is."""
        config, dice, shape = self.config, Dice(seeds), tuple(natural.shape[1:])

        def noise(step: int) -> torch.Tensor:
            return config.gradient_noise * dice.normal(step, shape)

        objective = attack_objective(config.loss, self.attacked, natural, labels)
        return climb(
            objective,
            natural,
            start,
            num_steps=config.num_steps,
            step_size=config.step_size,
            eps=config.eps,
            norm=config.norm,
            noise=noise if config.gradient_noise else None,
        )

    def update(
        self,
        natural: torch.Tensor,
        perturbed: torch.Tensor,
        labels: torch.Tensor,
        whole_size: int,
        *,
        idle: bool = False,
    ) -> torch.Tensor:
        """Take one step of SGD on the perturbed images; whole_size counts those of all processes."""
        loss = self.config.loss if self.config.method == "atta" else "cross-entropy"
        self.optimizer.zero_grad(set_to_none=True)
        total, logits = training_loss(loss, self.config.trades_beta, self.updated, natural, perturbed, labels)
        counted = 0.0 if idle else 1.0
        # DDP averages gradients over processes: world/whole_size makes that the mean over the whole batch.
        (total * (counted * self.world.size / whole_size)).backward()
        self.optimizer.step()
        self._share_statistics()
        if self.average is not None:
            self.average.follow(self.network)
        correct = (logits.detach().argmax(dim=1) == labels).sum()
        seen = torch.full_like(total.detach(), len(labels))
        return torch.stack([total.detach(), correct.float(), seen]) * counted

    def _share_statistics(self) -> None:
        """Give every process the batch statistics of the first, as a checkpoint would on resuming.

        DDP does so too, but only before the next update: the attack comes before that. SyncBatchNorm on GPUs
        has made them equal already.
        """
        if self.world.talk is None or self.labels.device.type == "cuda":
            return
        buffers = [buffer for buffer in self.network.buffers() if buffer.is_floating_point()]
        for buffer in buffers:
            torch.distributed.broadcast(buffer, 0, group=self.world.talk)

    def state(self) -> dict[str, torch.Tensor]:
        """Every tensor that training changes, by name, but for the canvases; no copies are made."""
        found = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        for name, parameter in self.network.named_parameters():
            momentum = self.optimizer.state[parameter].get("momentum_buffer")
            found[f"momentum.{name}"] = torch.zeros_like(parameter) if momentum is None else momentum
        if self.average is not None:
            found |= {f"average.{name}": value for name, value in self.average.state.items()}
        return found

    def is_finite(self) -> bool:
        """Whether every number of the state is one; waits for the device once."""
        return bool(torch.stack([value.isfinite().all() for value in self.state().values()]).all())

    @torch.no_grad()
    def restore(self, state: dict[str, torch.Tensor]) -> None:
        """Take over a saved state, in place: the attack's twin sees it too."""
        for name, value in self.network.state_dict().items():
            value.copy_(state[f"network.{name}"])
        for name, parameter in self.network.named_parameters():
            momentum = state[f"momentum.{name}"].to(parameter.device)
            self.optimizer.state[parameter]["momentum_buffer"] = torch.empty_like(parameter).copy_(momentum)
        if self.average is not None:
            for name, value in self.average.state.items():
                value.copy_(state[f"average.{name}"])

    def final_network(self) -> nn.Module:
        """A copy of the trained network on the CPU, in eval mode: its average where one was kept."""
        state = self.network.state_dict() if self.average is None else self.average.state
        network = self.architecture.outline()
        network.load_state_dict({name: value.detach().cpu().clone() for name, value in state.items()}, assign=True)
        for parameter in network.parameters():
            parameter.requires_grad_()
        return network.eval()
