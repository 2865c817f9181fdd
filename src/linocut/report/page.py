"""The page: every section's values put into the templates, with the style, the script and nothing from outside."""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from linocut.report import theme, verdict, words
from linocut.report.sections import overview
from linocut.report.sections.detail import detail
from linocut.report.sections.likeness import comparison
from linocut.report.sources import Subject

MANY = 24  # ledgers; above, fold-outs have no charts and pictures, so that a browser stays quick
PICTURES, EACH = 64, 16  # on a page, and at most of one ledger


def render(subjects: Sequence[Subject], title: str | None) -> str:
    """The page as one HTML text. Paper: its tables and figures, from the user's own ledgers."""
    environment = Environment(
        loader=PackageLoader("linocut.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        percent=words.percent, interval=words.interval, marks=words.MARKS, norm_names=words.NORMS
    )
    return environment.get_template("page.html").render(_values(subjects, title))


def _values(subjects: Sequence[Subject], title: str | None) -> dict[str, Any]:
    compact = len(subjects) > MANY
    each = 0 if compact else min(EACH, max(2, PICTURES // len(subjects)))
    details = [detail(subject, each, charts=not compact) for subject in subjects]
    norms = overview.norms_of(subjects)
    likenesses = [found["likenesses"] for found in details]
    script = _package_text("script.js")
    return {
        "title": title or _title(subjects),
        "headline": verdict.of_one(subjects[0]) if len(subjects) == 1 else verdict.of_many(subjects),
        "subjects": subjects,
        "rows": overview.table(subjects),
        "details": details,
        "norms": norms,
        "radii": {norm: overview.shared_radius(subjects, norm) for norm in norms},
        "charts": {norm: overview.picture(subjects, norm) for norm in norms} if len(subjects) > 1 else {},
        "chart_rows": overview.MOST_ROWS,
        "comparisons": [found for norm in norms if (found := comparison(subjects, likenesses, norm))],
        "compact": compact,
        "many": MANY,
        "datasets": sorted({subject.identity.dataset for subject in subjects}),
        "has_paper": any(subject.identity.paper for subject in subjects),
        "other_size": any(subject.identity.paper and not subject.identity.paper_size for subject in subjects),
        "some_met_fewer": any(overview.met_fewer(subject) for subject in subjects),
        "light": Markup(theme.rules(0)),
        "dark": Markup(theme.rules(1)),
        "style": Markup(_package_text("style.css")),
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }


def _title(subjects: Sequence[Subject]) -> str:
    *first, last = sorted({subject.identity.dataset for subject in subjects})
    data = f"{', '.join(first)} and {last}" if first else last
    return f"{subjects[0].name} on {data}" if len(subjects) == 1 else f"{len(subjects)} models on {data}"


def _package_text(name: str) -> str:
    return resources.files("linocut.report").joinpath("templates", name).read_text(encoding="utf-8")
