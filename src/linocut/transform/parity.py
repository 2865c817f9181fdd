"""Whether the backends of this machine give the same bits as the reference."""

import time
from dataclasses import dataclass

import torch

from linocut.errors import InputError
from linocut.transform.kernels.dispatch import backend as kernels
from linocut.transform.modules import EssentialFeatures


@dataclass(frozen=True, kw_only=True)
class BackendCheck:
    """One backend on one device. status: ok, unavailable (cannot run here), differs, or broken (it raised)."""

    backend: str
    device: str
    status: str
    detail: str = ""
    seconds: float = 0.0


def check_backends() -> list[BackendCheck]:
    """One check for each backend that exists for this machine's devices, the reference first."""
    wanted = _results("reference", "cpu")
    places = [("torch", "cpu"), ("numba", "cpu")]
    if torch.cuda.is_available():
        places += [("torch", "cuda"), ("triton", "cuda")]
    checks = [BackendCheck(backend="reference", device="cpu", status="ok", detail="what the others are compared with")]
    checks += [_check(backend, device, wanted) for backend, device in places]
    if not torch.cuda.is_available():
        checks.append(
            BackendCheck(backend="triton", device="cuda", status="unavailable", detail="torch can use no NVIDIA GPU")
        )
    return checks


def _check(backend: str, device: str, wanted: dict[str, torch.Tensor]) -> BackendCheck:
    start = time.perf_counter()
    try:
        got = _results(backend, device)
    except InputError as reason:
        return BackendCheck(backend=backend, device=device, status="unavailable", detail=str(reason))
    except Exception as error:  # a compiler or a driver may fail in any way; the doctor reports it and goes on
        detail = f"{type(error).__name__}: {error}".splitlines()[0]
        return BackendCheck(backend=backend, device=device, status="broken", detail=detail)
    differing = [step for step, value in wanted.items() if not torch.equal(value, got[step])]
    return BackendCheck(
        backend=backend,
        device=device,
        status="differs" if differing else "ok",
        detail=f"differs from the reference in {', '.join(differing)}" if differing else "equal bit for bit",
        seconds=time.perf_counter() - start,
    )


def _results(backend: str, device: str) -> dict[str, torch.Tensor]:
    """Every intermediate result of every sample, on the CPU, by name."""
    run = kernels(backend, torch.device(device))
    results = {}
    for name, images, preset in _samples():
        transform = EssentialFeatures.preset(preset)
        y, level = run.blur(images.to(device), transform.blur_rule)
        colors, population, num_colors = run.find_palette(y, transform.palette_rule)
        steps = {"kernel choice": level, "blur": y, "colours": colors, "populations": population}
        steps["painting"] = run.paint(y, colors, num_colors)
        steps["fixed codebook"] = run.paint_linf(y, _codes(images.shape[1]).to(device))
        results.update({f"{step} ({name})": value.cpu() for step, value in steps.items()})
    return results


def _codes(channels: int) -> torch.Tensor:
    """Twenty codes (20,C) in eighths, some of them as far from a pixel as others."""
    return 256 * torch.randint(0, 8, (20, channels), generator=torch.Generator().manual_seed(1), dtype=torch.int16)


def _samples() -> list[tuple[str, torch.Tensor, str]]:
    """Images that take every way through the transform: smooth, noisy, flat, grey, odd in size."""
    dice = torch.Generator().manual_seed(0)
    y, x = torch.meshgrid(torch.linspace(0, 1, 48), torch.linspace(0, 1, 37), indexing="ij")
    smooth = torch.stack([x, y, (x * 9).sin() * (y * 7).cos() / 2 + 0.5])[None]
    digits = (torch.rand(4, 1, 7, 7, generator=dice) > 0.7).float().repeat_interleave(4, 2).repeat_interleave(4, 3)
    return [
        ("smooth", smooth, "cifar-10"),
        ("large kernels", smooth, "resisc45"),
        ("noise", torch.rand(1, 3, 20, 20, generator=dice), "cifar-10"),
        ("flat", torch.full((2, 3, 5, 1), 0.4), "gtsrb"),
        ("grey", digits, "mnist"),
    ]
