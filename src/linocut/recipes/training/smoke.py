"""The smallest run that shows everything working: scikit-learn's digits on a processor."""

from typing import Any

from linocut.recipes.training.rows import row_named
from linocut.training.config import TrainingConfig

EPS = 0.2


def smoke(row: str = "acab-retrained") -> TrainingConfig:
    """Digits at 8x8, eps 0.2, ATTA through AC+AB, or another row of the paper."""
    chosen = row_named(row)
    transform = None
    if chosen.transform is not None:
        from linocut.transform import modules

        blur: dict[str, Any] = {"kernel_sizes": (3, 1, 1), "edge_thresholds": (20, 40)}
        codebook: dict[str, Any] = {"eps": EPS, "at_least_two": True}
        made = {
            "ab": lambda: modules.AdaptiveBlur(**blur),
            "ac": lambda: modules.AdaptiveCodebook(**codebook),
            "acab": lambda: modules.EssentialFeatures(**blur, **codebook),
        }[chosen.transform]()
        transform = {"class": type(made).__name__, "settings": made.settings()}
    return TrainingConfig(
        recipe=f"smoke/{row}",
        data_set="digits",
        image_size=8,
        architecture="small-net",
        method=chosen.method,
        transform=transform,
        transform_at=chosen.transform_at,
        eps=EPS,
        step_size=EPS / 4,
        num_steps=3,
        reset_every=0,
        epochs=15,
        batch_size=64,
        learning_rate=0.05,
        weight_decay=5e-4,
        schedule="one-cycle",
        canvas_store="float32",
    )
