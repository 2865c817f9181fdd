"""Time the CUDA backend: `python benchmarks/gpu_transform.py [--variants] [--out FOLDER]`.

First every result is compared with the reference, then each stage and the whole are timed by device events around
CUDA graph replays, over several input sets in turn, after a warm-up; the median is reported.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_sample_images

from linocut.transform import reference
from linocut.transform.kernels import triton_cuda as backend
from linocut.transform.kernels.triton_cuda import launch
from linocut.transform.settings import NO_BLUR, BlurRule, PaletteRule

SMALL = BlurRule.of((5, 3, 1), (20, 40)), PaletteRule(separation=192)
LARGE = BlurRule.of((11, 5, 3), (10, 20)), PaletteRule(separation=96)
INPUT_SETS = 4
SIZES = [(128, 32), (1000, 32), (4096, 32), (16384, 32), (64, 224), (512, 224), (8, 1024)]


def crops(count, side, dice, device="cuda"):
    """Unit float images cut from two photographs, shrunk so that a 32-pixel cut has the colours of a CIFAR-10 image.

    Each is flipped and dimmed at random and gets a little noise, so that no two are alike.
    """
    photos = torch.stack([torch.from_numpy(np.array(p)).permute(2, 0, 1) for p in load_sample_images().images])
    photos = photos.float().to(device)
    shrunk = [photos] if side > 40 else [torch.nn.functional.avg_pool2d(photos, n) for n in (6, 8, 8, 10)]
    if side > 427:
        shrunk = [torch.nn.functional.interpolate(photos, scale_factor=side / 400, mode="bilinear")]
    images = []
    for i in range(count):
        photo = shrunk[i % len(shrunk)]
        top = int(dice.integers(0, photo.shape[2] - side + 1))
        left = int(dice.integers(0, photo.shape[3] - side + 1))
        image = photo[int(dice.integers(2)), :, top : top + side, left : left + side]
        images.append(image.flip(2) if dice.integers(2) else image)
    batch = torch.stack(images)
    rng = torch.Generator(device).manual_seed(int(dice.integers(2**31)))
    batch *= 1 - 0.1 * torch.rand((count, 1, 1, 1), generator=rng, device=device)
    batch += torch.randn(batch.shape, generator=rng, device=device)
    return (batch.round().clamp(0, 255) / 255).contiguous()


def odd_images(dice):
    """Named batches that a kernel could get wrong: noise, flat, tiny, long, not a multiple of anything, not finite."""

    def noise(*shape):
        return torch.from_numpy(dice.random(shape, dtype=np.float32)).cuda()

    strange = noise(2, 3, 32, 32) * 3 - 1
    strange[0, :, :3] = float("nan")
    strange[1, 0, 0] = float("inf")
    yield "crops 32", crops(16, 32, dice)
    yield "noise 32", noise(2, 3, 32, 32)
    yield "flat", torch.full((2, 3, 32, 32), 0.4).cuda()
    yield "whole levels", (noise(2, 3, 32, 32) * 24).round() * 8 / 255
    yield "not finite", strange
    for height, width in ((1, 1), (2, 2), (3, 2), (33, 47), (5, 700), (700, 5)):
        yield f"{height}x{width}", noise(3, 3, height, width)
    yield "grey 28", crops(8, 28, dice)[:, :1].contiguous()
    yield "crops 224", crops(2, 224, dice)


# Others go through one rule: what takes long is compiling a kernel for each rule and number of pixels.
SHOWN_TO_EVERY_RULE = ("crops 32", "noise 32", "33x47")
SHOWN = {"two": ("grey 28",), "large": ("crops 224",)}


def rules():
    """The rules that every odd image goes through."""
    yield "small", *SMALL
    yield "large", *LARGE
    yield "two", BlurRule.of((3, 1, 1), (20, 40)), PaletteRule(separation=1836, at_least_two=True)
    yield "fine", NO_BLUR, PaletteRule(separation=40, bin_levels=3, lloyd_steps=4, by_population=False)
    yield "coarse", NO_BLUR, PaletteRule(separation=192, bin_levels=64, thumbnail_size=64, lloyd_steps=0)


def transform(x, blur, palette):
    """The whole transform of a batch, and what lies between."""
    y, level = backend.blur(x, blur)
    colors, population, num_colors = backend.find_palette(y, palette)
    return backend.paint(y, colors, num_colors), y, level, colors, population, num_colors


def first_difference(x, blur, palette):
    """The name of the first stage at which the backend differs from the reference, or None."""
    painted, y, level, colors, population, num_colors = (t.cpu().numpy() for t in transform(x, blur, palette))
    for i, image in enumerate(x.cpu().numpy()):
        blurred, choice = reference.adaptive_blur(reference.enter(image), blur)
        if not (np.array_equal(blurred, y[i]) and np.array_equal(choice, level[i])):
            return f"blur of image {i}"
        found = reference.find_palette(blurred, palette)
        n = len(found.colors)
        if num_colors[i] != n or not np.array_equal(found.colors, colors[i, :n]):
            return f"palette of image {i}"
        if not np.array_equal(found.population, population[i, :n]) or colors[i, n:].any() or population[i, n:].any():
            return f"population of image {i}"
        if not np.array_equal(reference.leave(reference.paint(blurred, found.colors)[0]), painted[i]):
            return f"painting of image {i}"
    return None


def check_parity(dice):
    """Compare the odd images with the reference, as few and as many; return the failures."""
    failures, tried, usual = [], 0, launch.MANY
    images = list(odd_images(dice))
    for (image_name, x), (rule_name, blur, palette) in itertools.product(images, list(rules())):
        for_all = image_name in SHOWN_TO_EVERY_RULE
        if not (for_all or rule_name == "small" or image_name in SHOWN.get(rule_name, ())):
            continue
        for launch.MANY in (usual, 0) if for_all else (usual,):
            tried += len(x)
            wrong = first_difference(x, blur, palette)
            if wrong:
                failures.append(f"{image_name} under {rule_name}, MANY {launch.MANY}: {wrong}")
        launch.MANY = usual
    x = crops(4096, 32, dice)
    once, again = transform(x, *SMALL), transform(x.flip(0).contiguous(), *SMALL)
    if not all(torch.equal(a, b.flip(0)) for a, b in zip(once, again, strict=True)):
        failures.append("4096 images in reverse order: other results")
    few = transform(x[:64], *SMALL)  # another launch setting
    if not all(torch.equal(a, b[:64]) for a, b in zip(few, once, strict=True)):
        failures.append("64 of 4096 images by themselves: other results")
    grad = torch.randn_like(x)
    if not torch.equal(*(backend.blur_transpose(grad, once[2], SMALL[0]) for _ in range(2))):
        failures.append("blur_transpose: other bits the second time")
    failures += check_transpose(dice)
    print(f"parity: {tried} images against the reference, {len(failures)} failures", *failures, sep="\n  ")
    return failures


def check_transpose(dice):
    """Compare <blur(x), g> with <x, transpose(g)> for the linear blur whose kernels are frozen, in float64."""
    failures = []
    for blur, side in ((SMALL[0], 32), (LARGE[0], 50), (LARGE[0], 150)):
        x = crops(2, side, dice)
        _, level = backend.blur(x, blur)
        impulse, grad = torch.rand_like(x), torch.randn_like(x)
        frozen = torch.zeros_like(x, dtype=torch.float64)
        for k, size in enumerate(blur.kernel_sizes):
            weights, shift = reference.gaussian_weights(size)
            w = torch.tensor(weights, dtype=torch.float64, device="cuda") / 2**shift
            padded = torch.nn.functional.pad(impulse.double(), [size // 2] * 4, mode="reflect")
            both = torch.nn.functional.conv2d(padded.flatten(0, 1)[:, None], (w[:, None] * w)[None, None])
            frozen = torch.where(level == k, both.view_as(frozen), frozen)
        left = (frozen * grad).sum()
        right = (impulse.double() * backend.blur_transpose(grad, level, blur)).sum()
        if abs(left - right) > 1e-6 * (frozen.abs() * grad.abs()).sum():
            failures.append(f"transpose at {side}: {left.item()} against {right.item()}")
    return failures


def median_ms(work, inputs, repeats=30, graph=True):
    """Median milliseconds of work(*input), inputs in turn: graph replays, or plain calls as a user makes them."""
    for given in inputs:
        work(*given)
    torch.cuda.synchronize()
    calls = []
    for given in inputs:
        if graph:
            held = torch.cuda.CUDAGraph()
            with torch.cuda.graph(held):
                work(*given)
            calls.append(held.replay)
        else:
            calls.append(lambda given=given: work(*given))
    times = []
    for i in range(repeats + 5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        calls[i % len(calls)]()
        end.record()
        times.append((start, end))
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in times[5:])


def stages(x_sets, blur, palette):
    """Milliseconds of each stage and of the whole, for several batches of one size."""
    made = [transform(x, blur, palette) for x in x_sets]
    grads = [torch.randn_like(x) for x in x_sets]
    enter = [(x,) for x in x_sets]
    return {
        "blur": median_ms(lambda x: backend.blur(x, blur), enter),
        "find_palette": median_ms(lambda y: backend.find_palette(y, palette), [(m[1],) for m in made]),
        "paint": median_ms(backend.paint, [(m[1], m[3], m[5]) for m in made]),
        "blur_transpose": median_ms(
            lambda g, level: backend.blur_transpose(g, level, blur),
            [(g, m[2]) for g, m in zip(grads, made, strict=True)],
        ),
        "total": median_ms(lambda x: transform(x, blur, palette)[0], enter),
        "total, no graph": median_ms(lambda x: transform(x, blur, palette)[0], enter, graph=False),
        "codebook only": median_ms(lambda x: transform(x, NO_BLUR, palette)[0], enter),
        "mean colors": float(torch.cat([m[5] for m in made]).float().mean()),
    }


def lloyd_profile(y_sets, palette):
    """Milliseconds of find_palette by number of Lloyd steps, and with a separation that keeps one colour."""
    results = {}
    for steps in (0, 1, 2, 4, 10, 20):
        rule = PaletteRule(**{**vars(palette), "lloyd_steps": steps})
        results[f"steps {steps}"] = median_ms(lambda y, rule=rule: backend.find_palette(y, rule), y_sets)
    rule = PaletteRule(**{**vars(palette), "separation": 4000})
    results["one colour"] = median_ms(lambda y: backend.find_palette(y, rule), y_sets)
    return results


# The first is the usual one.
OF_FEW = "FEW_IMAGES", [launch.Few(*s) for s in [(128, 2, 128), (64, 1, 128), (128, 3, 80), (256, 4, 128)]]
OF_MANY = (
    "MANY_IMAGES",
    [launch.Many(1, *s) for s in [(128, 16, 128), (128, 12, 168), (128, 20, 96), (256, 16, 128), (256, 12, 168)]],
)


def find_small_palette(y):
    """The palettes of small images."""
    return backend.find_palette(y, SMALL[1])


def try_settings(name_and_settings, sets_by_size):
    """Milliseconds of find_palette for other launch settings, by size; the usual one comes again last."""
    name, settings = name_and_settings
    table = {}
    for setting in [*settings, settings[0]]:
        setattr(launch, name, setting)
        try:
            row = {size: round(median_ms(find_small_palette, sets), 4) for size, sets in sets_by_size.items()}
        except Exception as error:  # a setting the device cannot launch is a result too
            row = {"error": str(error)[:80]}
        key = str(tuple(setting))
        table[key + " again" if key in table else key] = row
        print(f"{name:12} {key:24}", row, flush=True)
    return table


def about():
    """What was measured where, and the device's copy in terabytes a second, counting reads and writes."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    source = torch.randint(255, (2**31,), dtype=torch.uint8, device="cuda")
    speed = 2 * source.numel() / median_ms(torch.empty_like(source).copy_, [(source,)], graph=False) / 1e9
    return {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "commit": commit, "copy TB/s": speed}


def measure(variants):
    """Compare with the reference, then time every stage; all numbers, with a short table printed last."""
    dice = np.random.default_rng(0)
    report = {**about(), "parity failures": check_parity(dice)}
    crop_sets = {b: [crops(b, 32, dice) for _ in range(INPUT_SETS)] for b in (128, 1000, 4096)}
    small = {b: [(backend.blur(x, SMALL[0])[0],) for x in sets] for b, sets in crop_sets.items()}
    report["lloyd"] = {b: lloyd_profile(small[b], SMALL[1]) for b in (128, 4096)}
    noise = [(backend.blur(torch.rand((4096, 3, 32, 32), device="cuda"), SMALL[0])[0],)]
    report["noise, find_palette at 4096"] = median_ms(find_small_palette, noise)
    if variants:
        report["few"] = try_settings(OF_FEW, {b: small[b] for b in (128, 1000)})
        report["many"] = try_settings(OF_MANY, {4096: small[4096]})
    report["stages"] = {}
    for batch, side in SIZES:
        sets = [crops(batch, side, dice) for _ in range(INPUT_SETS if batch < 10000 else 2)]
        report["stages"][f"{batch}x{side}"] = stages(sets, *(SMALL if side == 32 else LARGE))
    show(report)
    return report


def show(report):
    """Print the results as a short table."""
    for key in ("device", "torch", "commit", "copy TB/s", "noise, find_palette at 4096"):
        print(f"{key}: {report[key]}")
    for batch, profile in report["lloyd"].items():
        print(f"find_palette at {batch}:", ", ".join(f"{name} {ms:.4f}" for name, ms in profile.items()), "ms")
    names = list(next(iter(report["stages"].values())))
    print(f"{'milliseconds':12}", *(f"{name:>15}" for name in names), f"{'images/s':>12}")
    for size, row in report["stages"].items():
        rate = int(size.split("x")[0]) / row["total"] * 1000
        print(f"{size:12}", *(f"{row[name]:15.4f}" for name in names), f"{rate:12,.0f}")
    print(f"parity failures: {len(report['parity failures'])}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variants", action="store_true", help="also try other launch settings of the palette kernels")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "out/benchmarks")))
    arguments = parser.parse_args()
    results = measure(arguments.variants)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "gpu_transform.json").write_text(json.dumps(results, indent=1))
