"""plan.json: the steps of every command that was given for a folder, with what each was expected to take."""

import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from typing import Any

import linocut
from linocut.errors import InputError
from linocut.files import write_whole
from linocut.recipes.reproduce.inheritance import trained_in
from linocut.recipes.reproduce.plan import Plan
from linocut.recipes.reproduce.scales import Numerics
from linocut.recipes.reproduce.step import Step, Workshop, digest

NAME = "plan.json"
ESTIMATE = ("seconds", "at_most", "whole_batches", "transform_seconds", "timed_on")


def numerics_of(shop: Workshop, data_sets: Collection[str]) -> Numerics:
    """Those that the folder was begun with, or what suits the device.

    Networks that are to join published ones of these data sets are trained in the format of those: another would
    make another network.
    """
    held = _numerics(_read(shop))
    if held is not None:
        return held
    usual = Numerics.on(shop.device)
    joined = trained_in(shop.published, data_sets) if shop.published is not None else None
    return replace(usual, precision=joined or usual.precision)


def held_estimates(plan: Plan, shop: Workshop, device: str) -> dict[str, dict[str, Any]]:
    """By name, what was reckoned before for steps of these settings, from times taken on this device."""
    held, found = _steps(_read(shop)), {}
    for step in plan.steps:
        entry = held.get(step.name, {})
        if entry.get("timed_on") == device and entry.get("settings") == _settings(step):
            found[step.name] = _estimate(entry)
    return found


def add(plan: Plan, shop: Workshop, numerics: Numerics, told: Mapping[str, dict[str, Any]], *, alone: bool) -> None:
    """Write this plan beside those of other commands; `told` is what is expected of each step, by its name.

    InputError where another process is at work with other settings for one of the steps: each would remove what
    the other makes. Where none is, such steps belong to an earlier wish, and its plan is forgotten.
    """
    content = _read(shop)
    held = _steps(content)
    if (_numerics(content) or numerics) != numerics:
        raise InputError(f"another process has just begun {shop.out} with other numerics: start this one again")
    changed = [
        step.name for step in plan.steps if held.get(step.name, {}).get("settings", "") not in ("", _settings(step))
    ]
    if changed and not alone:
        raise InputError(
            f"another process works in {shop.out} with other settings for {changed[0]}: "
            "wait for it, or choose another folder"
        )
    if changed:
        content, held = {}, {}
    mine = [_entry(step, told.get(step.name) or _estimate(held.get(step.name, {}))) for step in plan.steps]
    others = [entry for name, entry in held.items() if name not in {step.name for step in plan.steps}]
    notes = {f"{work.data_set}: {work.note}" for work in plan.works if work.note}
    new = {
        "linocut": linocut.__version__,
        "command": sys.argv,
        "device": str(shop.device),
        "numerics": asdict(numerics),
        "notes": sorted(notes | set(content.get("notes", []))),
        "steps": others + mine,
    }
    write_whole(shop.out / NAME, json.dumps(new, indent=1).encode())


def _read(shop: Workshop) -> dict[str, Any]:
    """What the file says; nothing where there is none that can be read."""
    try:
        content = json.loads((shop.out / NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _numerics(content: Mapping[str, Any]) -> Numerics | None:
    try:
        return Numerics(**content["numerics"])
    except (LookupError, TypeError):
        return None


def _steps(content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    entries = content.get("steps", [])
    return {entry["name"]: entry for entry in entries if isinstance(entry, dict) and "name" in entry}


def _entry(step: Step, told: Mapping[str, Any]) -> dict[str, Any]:
    needs = [need.name for need in step.needs]
    return {"name": step.name, "title": step.title, "needs": needs, "settings": _settings(step), **told}


def _settings(step: Step) -> str:
    """A hash of what the step is to be; empty for one that every command may wish for in its own way."""
    wish = step.wish()
    return digest(wish) if wish else ""


def _estimate(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ESTIMATE if name in entry}
