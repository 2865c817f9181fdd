"""The SSIM of several ledgers beside each other, on the images that all of them broke."""

from collections.abc import Sequence
from typing import Any

from linocut.report.charts.rows import Dot, dot_chart
from linocut.report.perceptibility import Likeness, shared
from linocut.report.sources import Subject
from linocut.report.words import NORMS


def comparison(subjects: Sequence[Subject], found: Sequence[Sequence[Likeness]], norm: str) -> dict[str, Any] | None:
    """Spread and mean of each ledger in a norm, and the mean on shared examples where the ledgers share images."""
    rows = [
        (subject, likeness)
        for subject, likenesses in zip(subjects, found, strict=True)
        for likeness in likenesses
        if likeness.norm == norm
    ]
    if not rows:
        return None
    same_sample = len({subject.sample for subject, _ in rows}) == 1 and len(rows) > 1
    common = shared([likeness for _, likeness in rows]) if same_sample else set()
    lines: list[dict[str, Any]] = [
        {
            "name": subject.name,
            "images": len(likeness.values),
            "mean": likeness.mean,
            "low": likeness.quantile(0.05),
            "high": likeness.quantile(0.95),
            "paper": likeness.paper,
            "common": sum(likeness.by_example[e] for e in common) / len(common) if common else None,
        }
        for subject, likeness in rows
    ]
    dots = [
        (
            subject.name if len(subjects) > 1 else "published attack",
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
        for subject, likeness in rows
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
