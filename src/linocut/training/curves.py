"""The course of a run as one figure."""

from pathlib import Path

from linocut.files import whole_file
from linocut.training.journal import read_log


def draw_curves(folder: Path) -> Path | None:
    """The path of a figure of loss, robust training accuracy and learning rate; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    rows = [row for row in read_log(folder) if "loss" in row]
    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, name, title in zip(
        figure.subplots(1, 3),
        ("loss", "robust_accuracy", "learning_rate"),
        ("training loss", "training accuracy under the training attack", "learning rate"),
        strict=True,
    ):
        axes.plot([row["step"] for row in rows], [row[name] for row in rows], linewidth=1)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("step", fontsize=8)
        axes.grid(alpha=0.3)
    path = folder / "curves.png"
    with whole_file(path) as unfinished:
        figure.savefig(unfinished, dpi=120, format="png")
    return path
