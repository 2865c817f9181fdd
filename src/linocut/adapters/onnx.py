"""A defended model as one ONNX file, believed only after onnxruntime has agreed with PyTorch."""

import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from linocut.adapters import onnx_graph as graph
from linocut.errors import InputError
from linocut.files import whole_file
from linocut.models import Defended
from linocut.transform.modules import AdaptiveBlur, AdaptiveCodebook, EssentialFeatures, FixedCodebook
from linocut.transform.settings import BlurRule, PaletteRule, is_whole

BATCH = 50


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """What the comparison of one file with PyTorch said; times are milliseconds an image, network included."""

    images: int
    equal_outputs: tuple[str, ...]
    """The outputs of the transform: all the same as PyTorch's to the bit."""
    colors: int
    """The most that an image has; 0 without a palette."""
    largest_logit_difference: float
    onnx_milliseconds: float
    torch_milliseconds: float


class ExportedModel(nn.Module):
    """Logits, and what the transform decided: palette, number of colours and pixel labels, or else the painted image.

    A codebook of grey levels paints each channel of a colour image by itself: then there is no palette of it.
    """

    codes: Tensor | None

    def __init__(self, defended: Defended, channels: int):
        super().__init__()
        fixed = defended.transform if isinstance(defended.transform, FixedCodebook) else None
        self.blur, self.codebook = (None, None) if fixed is not None else _rules(defended.transform)
        self.register_buffer("codes", None if fixed is None else fixed.codes.to(torch.float32))
        self.channel_by_channel = fixed is not None and fixed.codes.shape[1] != channels
        self.rest = Defended(None, defended.model)
        self.rest.mean, self.rest.std = defended.mean, defended.std

    @property
    def output_names(self) -> list[str]:
        if self.blur is None and self.codes is None:
            return ["logits"]
        if self.channel_by_channel or (self.codes is None and self.codebook is None):
            return ["logits", "painted"]
        return ["logits", "palette", "num_colors", "pixel_labels"]

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        if self.codes is not None:
            return self._fixed(graph.enter(images), self.codes)
        if self.blur is None:
            return (self.rest(images),)
        y = graph.blur(graph.enter(images), self.blur)
        if self.codebook is None:
            blurred = graph.leave(y)
            return self.rest(blurred), blurred
        colors, _, num_colors = graph.find_palette(y, self.codebook)
        label = graph.assign(y, colors, num_colors)
        return self.rest(graph.paint(colors, label)), graph.leave(colors), num_colors, label

    def _fixed(self, y: Tensor, codes: Tensor) -> tuple[Tensor, ...]:
        planes = y.reshape(-1, 1, *y.shape[2:]) if self.channel_by_channel else y
        label = graph.assign_linf(planes, codes)
        colors = codes.expand(planes.shape[0], -1, -1)  # len() would fix the batch size
        painted = graph.paint(colors, label).reshape(y.shape)
        if self.channel_by_channel:
            return self.rest(painted), painted
        num_colors = torch.full_like(label[:, 0, 0], len(codes))
        return self.rest(painted), graph.leave(colors), num_colors, label


def write(
    defended: Defended, path: str | Path, image_shape: tuple[int, int, int], sample: Tensor | None = None
) -> Agreement:
    """Write the model for images of one shape (C,H,W) and any batch size; what the check said comes back.

    The check runs `sample` (B,C,H,W), or 16 made-up images, in onnxruntime and in PyTorch: palettes, numbers of
    colours and pixel labels must be the same to the bit, and so must the predicted classes. Otherwise nothing is
    left at `path`.
    """
    _require_packages()
    if not isinstance(defended, Defended):
        raise InputError(f"got a {type(defended).__name__}; wanted Defended(transform, network, mean, std)")
    image_shape = _checked_shape(image_shape, defended.transform)
    sample = made_up_images(16, image_shape) if sample is None else _checked_sample(sample, image_shape)
    modes = [(module, module.training) for module in defended.modules()]  # a part may be frozen in eval mode
    tensors = chain(defended.parameters(), defended.buffers())
    device = next((tensor.device for tensor in tensors), torch.device("cpu"))
    try:
        defended.eval().cpu()
        with whole_file(Path(path)) as unfinished:
            _export(ExportedModel(defended, image_shape[0]).eval(), unfinished, image_shape)
            return compare(defended, unfinished, sample)
    finally:
        defended.to(device)
        for module, mode in modes:
            module.training = mode


def _checked_shape(shape: Any, transform: nn.Module | None) -> tuple[int, int, int]:
    """(C,H,W) as Python's numbers, if the transform can take such images."""
    if not isinstance(shape, Sequence) or len(shape) != 3 or not all(is_whole(n) and n >= 1 for n in shape):
        raise InputError(f"image_shape must be (C,H,W), such as (1,28,28) for grey images of 28 x 28, got {shape!r}")
    C, H, W = (int(n) for n in shape)
    codes = transform.codes.shape[1] if isinstance(transform, FixedCodebook) else 1
    if transform is not None and (C not in (1, 3) or codes not in (1, C)):
        wanted = "1 or 3" if codes == 1 else f"{codes}"
        raise InputError(f"the transform takes images of {wanted} channels, got image_shape {(C, H, W)}")
    return C, H, W


def _checked_sample(sample: Any, image_shape: tuple[int, int, int]) -> Tensor:
    """The sample on the CPU, if it holds images of this shape as the model takes them."""
    if not isinstance(sample, Tensor):
        raise InputError(f"the sample is a {type(sample).__name__}; wanted a float32 tensor: torch.as_tensor(sample)")
    if tuple(sample.shape[1:]) != image_shape or len(sample) == 0:
        raise InputError(f"the sample has shape {tuple(sample.shape)}, wanted (B,{','.join(map(str, image_shape))})")
    if sample.dtype != torch.float32:
        hint = "sample.float() / 255" if sample.dtype == torch.uint8 else "sample.float()"
        raise InputError(f"the sample has dtype {sample.dtype}, wanted float32 values in [0,1]: {hint}")
    return sample.detach().cpu()


def _export(model: ExportedModel, path: Path, image_shape: tuple[int, int, int]) -> None:
    images = made_up_images(2, image_shape)
    try:
        with torch.no_grad():
            model.rest(images)
    except RuntimeError as reason:  # as a convolution tells of other channels than its own
        told = str(reason).splitlines()[0]
        raise InputError(f"the model takes no images of image_shape {image_shape}: {told:.300}") from reason
    with warnings.catch_warnings(), _without_remarks(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter's own, about its ways
        program = torch.onnx.export(
            model,
            (images,),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            input_names=["images"],
            output_names=model.output_names,
            verbose=False,
        )
    assert program is not None
    program.save(str(path), external_data=False)


@contextmanager
def _without_remarks() -> Iterator[None]:
    """The exporter remarks on every operator of torchvision's that is not installed; nobody asked for them."""
    log = logging.getLogger("torch.onnx._internal.exporter._registration")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def compare(defended: Defended, path: Path, images: Tensor) -> Agreement:
    """How onnxruntime and PyTorch agree on these images; InputError where they must and do not."""
    session = _session(path)
    seconds = {"onnx": 0.0, "torch": 0.0}
    apart, colors = 0.0, 0
    _answers(session, images[:1])  # the first run of each prepares itself
    _logits(defended, images[:1])
    for first in range(0, len(images), BATCH):
        batch = images[first : first + BATCH]
        started = time.perf_counter()
        answers = _answers(session, batch)
        seconds["onnx"] += time.perf_counter() - started
        started = time.perf_counter()
        logits = _logits(defended, batch)
        seconds["torch"] += time.perf_counter() - started
        for whose, numbers in (("PyTorch", logits), ("onnxruntime", answers["logits"])):
            if not np.isfinite(numbers).all():
                raise InputError(f"{whose} gives logits that are no finite numbers, so nothing can be compared")
        apart = max(apart, float(np.abs(answers["logits"] - logits).max()))
        if not np.array_equal(answers["logits"].argmax(1), logits.argmax(1)):
            raise InputError(f"onnxruntime predicts other classes than PyTorch (logits differ by up to {apart:.3g})")
        colors = max(colors, _require_same_pixels(defended, batch, answers))
    return Agreement(
        images=len(images),
        equal_outputs=tuple(output.name for output in session.get_outputs() if output.name != "logits"),
        colors=colors,
        largest_logit_difference=apart,
        onnx_milliseconds=1000 * seconds["onnx"] / len(images),
        torch_milliseconds=1000 * seconds["torch"] / len(images),
    )


def _require_same_pixels(defended: Defended, batch: Tensor, answers: dict[str, np.ndarray]) -> int:
    """The most colours an image of the batch has, after a comparison to the bit of all that the transform decided."""
    if defended.transform is None:
        return 0
    most = 0
    for i, own in enumerate(defended.transform.explain(batch)):  # type: ignore[operator]
        if own.palette is None:
            same = np.array_equal(answers["painted"][i], own.output.numpy())
        else:
            n = int(answers["num_colors"][i])
            palette, label = answers["palette"][i, :n], answers["pixel_labels"][i]
            most = max(most, n)
            same = (
                np.array_equal(palette, own.palette.numpy())
                and np.array_equal(label, own.labels.numpy())
                and np.array_equal(np.moveaxis(palette[label], 2, 0), own.output.numpy())
            )
        if not same:
            raise InputError(f"onnxruntime transforms image {i} of the sample otherwise than PyTorch does")
    return most


def made_up_images(count: int, image_shape: tuple[int, int, int]) -> Tensor:
    """(B,C,H,W) float32 in whole levels: soft colours with hard-edged patches and a little noise; always the same."""
    C, H, W = image_shape
    dice = torch.Generator().manual_seed(0)
    soft = torch.rand((count, C, 4, 4), generator=dice)
    images = nn.functional.interpolate(soft, size=(H, W), mode="bilinear", align_corners=True)
    images[:, :, : H // 2, W // 3 : W // 2 + 1] = torch.rand((count, C, 1, 1), generator=dice)
    images += 0.04 * torch.randn((count, C, H, W), generator=dice)
    return (255 * images.clamp(0, 1)).round() / 255


def _rules(transform: nn.Module | None) -> tuple[BlurRule | None, PaletteRule | None]:
    if transform is None:
        return None, None
    if not isinstance(transform, AdaptiveBlur | AdaptiveCodebook | EssentialFeatures):
        raise InputError(
            f"a {type(transform).__name__} has no ONNX graph; AdaptiveBlur, AdaptiveCodebook, EssentialFeatures and "
            "FixedCodebook have"
        )
    return transform.blur_rule, transform.palette_rule


def _require_packages() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as reason:
        raise InputError(f"ONNX export needs more packages ({reason}): pip install 'linocut[onnx]'") from None


def _session(path: Path) -> Any:
    """onnxruntime on the CPU with as many threads as PyTorch has, so that times can be compared."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _answers(session: Any, batch: Tensor) -> dict[str, np.ndarray]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"images": batch.numpy()}), strict=True))


@torch.no_grad()
def _logits(defended: Defended, batch: Tensor) -> np.ndarray:
    return defended(batch).numpy()
