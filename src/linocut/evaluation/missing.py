"""Rows that a finished ledger must have and has not: an attack without its rows would look as if nothing fell to it."""

from collections.abc import Collection

from linocut.evaluation.record import Record


def missing(record: Record) -> dict[str, int]:
    """How many examples lack a row of an entry, by entry. Who must meet an entry follows from the rows before it."""
    wrong = record.wrong()
    broken: dict[str, set[int]] = {norm: set() for norm in record.norms}
    in_levels: dict[str, set[int]] = {norm: set() for norm in record.norms}
    lacking = {}
    for name, entry in record.entries.items():
        norm, rows = entry["norm"], record.of[name]
        due: Collection[int] = record.sample.order[: entry["limit"]]
        if entry.get("starts") == "linf":
            due = [example for example in due if example in broken.get("linf", set()) - wrong]
        if entry.get("starts") == "fragile":
            due = [example for example in due if example in broken[norm] - wrong - in_levels[norm]]
        elif entry["column"] == "worst":
            due = [example for example in due if example not in broken[norm] and example not in wrong]
        lack = len(set(due) - rows.keys())
        if lack:
            lacking[name] = lack
        if norm is not None:
            fell = {example: row for example, row in rows.items() if row.broken}
            counts = entry["eps"] <= record.norms[norm] and entry["kind"] != "levels"
            broken[norm].update(fell if counts else ())
            in_levels[norm] |= {
                example
                for example, row in fell.items()
                if entry.get("starts") == "fragile" or (counts and row.quantised != row.label)
            }
    return lacking
