"""What a run over files came to, in numbers."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from linocut.recipes.transform_files import Outcome


def summarize(outcomes: Sequence[Outcome], seconds: float) -> dict[str, Any]:
    """Counts, colours (None where nothing was written), rate, and how often each note was made; JSON-able."""
    written = [outcome for outcome in outcomes if outcome.problem is None]
    colors = [outcome.num_colors for outcome in written]
    return {
        "images": len(written),
        "skipped": len(outcomes) - len(written),
        "colors_min": min(colors, default=None),
        "colors_mean": round(sum(colors) / len(colors), 2) if colors else None,
        "colors_max": max(colors, default=None),
        "seconds": round(seconds, 3),
        "images_per_second": round(len(written) / seconds, 2) if seconds > 0 else None,
        "notes": dict(Counter(note for outcome in written for note in outcome.notes)),
    }


def as_record(outcome: Outcome) -> dict[str, Any]:
    """One file's outcome, JSON-able."""
    job = outcome.job
    if outcome.problem is not None:
        return {"input": str(job.source), "problem": outcome.problem}
    record = {"input": str(job.source), "output": str(job.target), "colors": outcome.num_colors}
    if job.panel:
        record["panel"] = str(job.panel)
    return {**record, "notes": list(outcome.notes)}
