"""The SSIM of several models beside each other, on the images that the attack broke in all of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from linocut.report.charts.rows import Dot, dot_chart
from linocut.report.judged import Judged
from linocut.report.perceptibility import Likeness, shared
from linocut.report.words import NORMS


def comparison(models: Sequence[Judged], found: Mapping[Path, Sequence[Likeness]], norm: str) -> dict[str, Any] | None:
    """Spread and mean of each model in a norm, and the mean on shared examples where the models share images.

    found: likenesses by the folder of a ledger; of a model's ledgers the one with the most images counts.
    """
    rows, samples = [], set()
    for model in models:
        ledgers = [(ledger, one) for ledger in model.ledgers for one in found[ledger.folder] if one.norm == norm]
        if ledgers:
            ledger, likeness = max(ledgers, key=lambda each: len(each[1].values))
            rows.append((model, likeness))
            samples.add(ledger.sample)
    if not rows:
        return None
    same_sample = len(samples) == 1 and len(rows) > 1
    common = shared([likeness for _, likeness in rows]) if same_sample else set()
    lines: list[dict[str, Any]] = [
        {
            "name": model.name,
            "images": len(likeness.values),
            "mean": likeness.mean,
            "low": likeness.quantile(0.05),
            "high": likeness.quantile(0.95),
            "paper": likeness.paper,
            "common": sum(likeness.by_example[e] for e in common) / len(common) if common else None,
        }
        for model, likeness in rows
    ]
    dots = [
        (
            model.name if len(models) > 1 else "published attack",
            [
                Dot(
                    look="worst",
                    at=likeness.mean,
                    low=likeness.quantile(0.05),
                    high=likeness.quantile(0.95),
                    half=(likeness.quantile(0.25), likeness.quantile(0.75)),
                )
            ],
        )
        for model, likeness in rows
    ]
    lowest = min(line["low"] for line in lines)
    chart = dot_chart(
        dots,
        span=(max(-1.0, int(lowest * 10 - 0.5) / 10), 1.0),
        x_name="SSIM",
        title=f"Likeness of attacked to natural images in {NORMS[norm]}",
        description="; ".join(f"{line['name']} {line['mean']:.3f} over {line['images']}" for line in lines),
    )
    return {"norm": norm, "name": NORMS[norm], "lines": lines, "chart": chart, "common": len(common)}
