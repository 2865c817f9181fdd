"""What is judged: a model, its images, and what is known about it."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import torch
from torch import nn

from linocut.attacks.gradients import in_full
from linocut.data.dataset import Images
from linocut.errors import InputError
from linocut.evaluation.wrapped import unwrapped
from linocut.models import Defended
from linocut.models.store import describe_transform, is_ours

Model = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model on trial.

    model: the judge of every claim, deterministic (a randomised defence comes as its Expectation).
    searcher: what the attacks see; the model itself, or a quicker copy whose finds the model then checks.
    raw: the model as it was given, to be asked whether it repeats itself.
    twin: another model whose adversarial images are tried. seen: digests of training images.
    """

    model: Model
    images: Images
    device: torch.device
    searcher: Model
    raw: Model
    twin: Model | None = None
    seen: frozenset[bytes] | None = None

    def pixels(self, examples: list[int] | tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
        """The images as uint8 (B,C,H,W) and their labels, on the case's device."""
        index = torch.tensor(examples, dtype=torch.int64, device=self.images.pixels.device)
        return self.images.pixels[index].to(self.device), self.images.labels[index].to(self.device)


def unit(pixels: torch.Tensor) -> torch.Tensor:
    """uint8 as float32 in [0, 1]."""
    return pixels.float().div_(255)


def predict(model: Model, images: torch.Tensor) -> torch.Tensor:
    """The predicted class of each image, (B,); -1 where the logits name none: a NaN, or an infinite largest one."""
    return decide(model, images)[0]


@torch.no_grad()
def decide(model: Model, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The predicted classes, (B,), as `predict` gives them, and the logits behind them."""
    logits = model(images)
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or len(logits) != len(images):
        got = tuple(logits.shape) if isinstance(logits, torch.Tensor) else f"a {type(logits).__name__}"
        raise InputError(
            f"a model must return logits (B, classes), got {got} for {len(images)} images{_advice(logits)}"
        )
    logits = in_full(logits)
    # A logit of -inf is the logarithm of a chance of 0, and names no class; amax passes a NaN on.
    return torch.where(logits.amax(dim=1).isfinite(), logits.argmax(dim=1), -1), logits


def _advice(returned: object) -> str:
    """What to do where a model returns something other than logits."""
    if isinstance(returned, tuple):
        return ": return its first"
    if hasattr(returned, "logits"):
        return ": return its .logits"
    if type(returned).__module__ == "numpy":
        return ": return torch.from_numpy of it"
    return ""


def model_hash(model: object, images: torch.Tensor | None = None) -> str:
    """The SHA-256 of a model's weights, buffers and structure; of a function that of the modules it holds.

    images: some that it takes; a buffer that they change, as one that counts forwards, is left out.
    """
    digest = hashlib.sha256(_structure(model).encode())
    moving = set() if images is None or not isinstance(model, nn.Module) else _moving(model, images)
    for name, tensor in _tensors(model):
        if name in moving:
            continue
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


@torch.no_grad()
def _moving(model: nn.Module, images: torch.Tensor) -> set[str]:
    """The names of buffers that change when the module is asked."""
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    if before:
        model(images)
    after = dict(model.named_buffers())
    return {name for name, held in before.items() if name not in after or not torch.equal(held, after[name])}


def _tensors(model: object) -> list[tuple[str, torch.Tensor]]:
    """The tensors of a module's state; of a function, or another object, the weights of the modules that it holds.

    Not the buffers of those: a forward may change them, and nobody knows how many came before.
    """
    if isinstance(model, nn.Module):
        state = sorted(model.state_dict().items())
        return [(name, value) for name, value in state if isinstance(value, torch.Tensor)]  # else it is no weight
    held = [*_closed_over(model), getattr(model, "__self__", None), *getattr(model, "__dict__", {}).values()]
    modules = [each for each in held if isinstance(each, nn.Module)]
    return [pair for module in modules for pair in sorted(module.named_parameters())]


def _closed_over(model: object) -> Iterator[object]:
    for cell in getattr(model, "__closure__", None) or ():
        with suppress(ValueError):  # a variable that was never given a value
            yield cell.cell_contents


def _structure(model: object) -> str:
    """What a model is made of besides its tensors.

    A stranger's module is printed; one of ours is described, since every version of torch prints layers its own way.
    """
    if not isinstance(model, nn.Module):
        return type(model).__name__
    if type(model) is not Defended or not (model.transform is None or is_ours(model.transform)):
        return repr(model)
    layers = [f"{name} {type(layer).__name__}" for name, layer in model.model.named_modules()]
    normal = [None if values is None else values.flatten().tolist() for values in (model.mean, model.std)]
    return json.dumps([describe_transform(model.transform), normal, layers])


@contextmanager
def at_rest(*models: object) -> Iterator[None]:
    """Models in eval mode with no gradient for their weights, which halves an attack's backward; undone on leaving."""
    modules = [inner for model in models if isinstance(inner := unwrapped(model), nn.Module)]
    modes = [(module, module.training) for model in modules for module in model.modules()]
    wanted = [(parameter, parameter.requires_grad) for model in modules for parameter in model.parameters()]
    try:
        for module in modules:
            module.eval()
            for parameter in module.parameters():  # module.requires_grad_ is not for TorchScript
                parameter.requires_grad_(False)
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        for parameter, flag in wanted:
            parameter.requires_grad_(flag)
