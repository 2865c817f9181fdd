"""Three pictures: an image of MNIST_G, the proof of theorem 1 beside the failure of theorem 2, accuracy over eps."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from linocut.errors import InputError
from linocut.files import whole_file
from linocut.theory.definitions import WHITE, fixed_codebook, mnist_d, recolored

BLUE, ORANGE, GREY = "#2f6fae", "#d9822b", "#6e6e6e"
CURVE = ("eps_levels", "proven", "attacked")
BELOW: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "top", "fontsize": 9}


def drawn_zero() -> np.ndarray:
    """A grey-edged ring for when no real digit is at hand."""
    y, x = np.mgrid[:28, :28] - 13.5
    distance = np.abs(np.hypot(x / 0.75, y) - 28 * 0.3)
    return np.clip(WHITE * (2.6 - distance), 0, WHITE).astype(np.int64)


def read_results(path: Path) -> dict[str, Any]:
    """What the benchmark measured, from the file that it wrote, with all that its picture shows."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        curves = [[[float(row[key]) for key in CURVE] for row in entry["curve"]] for entry in results["studies"]]
        float(results["best_fixed_on_varied"]["ceiling_percent"])
        shown = [results[key] for key in ("date", "gpu", "cpu", "size")]
        shown += [entry["study"][key] for entry in results["studies"] for key in ("contrast", "codebook")]
    except (OSError, ValueError, KeyError, TypeError) as reason:
        why = f"{type(reason).__name__}: {reason}"
    else:
        if curves and all(curves):
            return results
        why = "it holds no curve"
    raise InputError(f"{path}: no results to draw ({why}); wanted the JSON file that benchmarks/certified.py wrote")


def check(folder: Path) -> None:
    """Nothing, or an InputError where no picture can be drawn into this folder: asked first, before the long work."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise InputError("figures need matplotlib: pip install 'linocut[report]'") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror or error}); name another folder") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: cannot be written to; name another folder")


def draw(folder: Path, digit: np.ndarray | None, results: dict[str, Any] | None) -> list[Path]:
    """The files written: mnist_g.png, proof.png and, with the results of the benchmark, certified.png."""
    check(folder)
    figures = {"mnist_g.png": mnist_g_example(digit), "proof.png": proof_picture(w=64)}
    if results is not None:
        figures["certified.png"] = certified_accuracy(results)
    for name, figure in figures.items():
        with whole_file(folder / name) as unfinished:
            figure.savefig(unfinished, format="png", dpi=150)
    return [folder / name for name in figures]


def mnist_g_example(digit: np.ndarray | None) -> Any:
    """A digit (a drawn one for None), in black and white, and recoloured twice, with what {0, 255} makes of that."""
    from matplotlib.figure import Figure

    title, shown = ("a drawn digit", drawn_zero()) if digit is None else ("MNIST", digit)
    black_and_white = mnist_d(shown)
    kept, lost = recolored(black_and_white, 100, 164), recolored(black_and_white, 170, 234)
    panels = [
        (shown, title),
        (black_and_white, "MNIST_D"),
        (kept, "MNIST_G: 100 and 164"),
        (fixed_codebook(kept, (0, WHITE)), "{0, 255} recovers it"),
        (lost, "MNIST_G: 170 and 234"),
        (fixed_codebook(lost, (0, WHITE)), "{0, 255} loses it"),
    ]
    figure = Figure(figsize=(10, 1.9), layout="constrained")
    for axes, (image, title) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        axes.imshow(image, cmap="gray", vmin=0, vmax=WHITE)
        axes.set_title(title, fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
    return figure


def proof_picture(w: int) -> Any:
    """Left: where clusters and midpoint can lie under AC while eps < w/4. Right: a fixed border inside a cluster."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    c1, c2, eps = 90, 90 + w, (w - 1) // 4
    for color, name, paint in ((c1, "c1", BLUE), (c2, "c2", ORANGE)):
        left.axvspan(color - eps, color + eps, color=paint, alpha=0.35)
        left.annotate(f"{name} ± {eps}", (color, 0.88), ha="center", color=paint)
        left.plot([color], [0.5], "o", color=paint)
    middle = (c1 + c2) / 2
    left.axvspan(middle - eps, middle + eps, ymax=0.4, color=GREY, alpha=0.5)
    left.annotate(f"midpoint ± {eps}", (middle, 0.2), ha="center", va="center", fontsize=8)
    left.set_title(f"adaptive, w = {w}, eps = {eps} < w/4: the midpoint stays between the clusters", fontsize=9)
    left.set_xlim(60, 190)
    right.axvspan(120, 127.5, color=BLUE, alpha=0.2)
    right.axvspan(127.5, 135, color=ORANGE, alpha=0.2)
    right.plot([127], [0.5], "o", color="black")
    right.plot([127, 128], [0.25, 0.25], "o", color="black", mfc="white")
    right.annotate("c1 = 127", (126.7, 0.5), ha="right", va="center")
    right.annotate("one pixel stays: to 0", (126.7, 0.25), ha="right", va="center", color=BLUE)
    right.annotate("another moves by 1: to 255", (128.3, 0.25), ha="left", va="center", color=ORANGE)
    right.set_xlim(120, 135)
    right.set_title("fixed {0, 255}, eps = 1: the border at 127.5 cuts the cluster of c1 = 127", fontsize=9)
    for axes in (left, right):
        axes.set_ylim(0, 1)
        axes.set_yticks([])
        axes.set_xlabel("grey level")
    return figure


def certified_accuracy(results: dict[str, Any]) -> Any:
    """Proven and attacked accuracy over eps, fixed and adaptive, on MNIST and on MNIST of varied contrast.

    The truth lies in the band between the two lines; the number is what is proven at the largest radius.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    titles = ("MNIST", "MNIST, random contrast and brightness")
    lowest = 100.0
    for axes, title, varied in zip(panels, titles, (False, True), strict=True):
        for entry in results["studies"]:
            if bool(entry["study"]["contrast"]) == varied:
                paint, kind = (BLUE, "adaptive") if entry["study"]["codebook"] == "adaptive" else (ORANGE, "fixed")
                lowest = min(lowest, draw_curve(axes, entry["curve"], paint, kind))
        if varied:
            ceiling = results["best_fixed_on_varied"]["ceiling_percent"]
            last = axes.get_xlim()[1]
            axes.plot([last * 0.86, last], [ceiling, ceiling], color=GREY, lw=1.5)
            says = f"no fixed codebook of two colours\ncan be proven above {ceiling:.1f} at this radius"
            axes.annotate(says, (last, ceiling + 1), ha="right", va="bottom", fontsize=8, color=GREY)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("eps in grey levels")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylim(5 * ((lowest - 5) // 5), 100)
    panels[0].set_ylabel("accuracy, %")
    panels[0].legend(fontsize=8, loc="lower left")
    dates = sorted({entry.get("date", results["date"])[:10] for entry in results["studies"]})
    hardware = results["gpu"] or results["cpu"]
    figure.suptitle(f"{hardware}, {' and '.join(dates)}, {results['size']} networks", fontsize=8, color=GREY)
    return figure


def draw_curve(axes: Any, curve: list[dict[str, Any]], paint: str, kind: str) -> float:
    """The lowest accuracy drawn: a line for what is proven, a dashed one for what no attack broke, a band between."""
    eps, proven, attacked = ([row[key] for row in curve] for key in CURVE)
    axes.plot(eps, attacked, "--", color=paint, lw=1, label=f"{kind}, not broken by attack")
    axes.plot(eps, proven, "o-", color=paint, ms=4, label=f"{kind}, proven")
    axes.fill_between(eps, proven, attacked, color=paint, alpha=0.2, lw=0)
    axes.annotate(f"{proven[-1]:.1f}", (eps[-1], proven[-1]), (0, -6), **BELOW, color=paint)
    return min(proven)
