"""The page: every section's values put into the templates, with the style, the script and nothing from outside."""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from linocut.report import theme, verdict, words
from linocut.report.judged import Judged
from linocut.report.sections import overview
from linocut.report.sections.detail import detail
from linocut.report.sections.likeness import comparison
from linocut.report.sources import Subject

MANY = 40  # models, or twice as many ledgers; above, fold-outs have no charts and pictures: a browser stays quick
PICTURES, EACH = 64, 16  # on a page, and at most of one ledger


def render(subjects: Sequence[Subject], models: Sequence[Judged], title: str | None) -> str:
    """The page as one HTML text, of ledgers and the models they judge. Paper: its tables and figures, from these."""
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
    return environment.get_template("page.html").render(_values(subjects, models, title))


def _values(subjects: Sequence[Subject], models: Sequence[Judged], title: str | None) -> dict[str, Any]:
    compact = len(models) > MANY or len(subjects) > 2 * MANY
    each = 0 if compact else min(EACH, PICTURES // len(subjects))
    details = {subject.folder: detail(subject, each, charts=not compact) for subject in subjects}
    norms, names = overview.norms_of(models), [model.name for model in models]
    likenesses = {folder: found["likenesses"] for folder, found in details.items()}
    script = _package_text("script.js")
    return {
        "title": title or _title(models),
        "headline": verdict.of_one(subjects[0]) if len(subjects) == 1 else verdict.of_many(subjects),
        "subjects": subjects,
        "rows": overview.table(models, subjects),
        "details": list(details.values()),
        "short_names": {
            ledger.folder: short
            for model, short in zip(models, words.told_apart(names), strict=True)
            for ledger in model.ledgers
        },
        "in_common": words.in_common(names),
        "network": overview.shared_network(models),
        "others": {ledger.folder: len(model.ledgers) - 1 for model in models for ledger in model.ledgers},
        "figured": [details[model.widest.folder] for model in models],
        "norms": norms,
        "radii": {norm: overview.shared_radius(models, norm) for norm in norms},
        "charts": {norm: overview.picture(models, norm) for norm in norms} if len(subjects) > 1 else {},
        "chart_rows": overview.MOST_ROWS,
        "comparisons": [found for norm in norms if (found := comparison(models, likenesses, norm))],
        "compact": compact,
        "many": MANY,
        "datasets": sorted({subject.identity.dataset for subject in subjects}),
        "has_paper": any(subject.identity.paper for subject in subjects),
        "other_size": any(subject.identity.paper and not subject.identity.paper_size for subject in subjects),
        "some_met_fewer": any(overview.met_fewer(model) for model in models),
        "light": Markup(theme.rules(0)),
        "dark": Markup(theme.rules(1)),
        "style": Markup(_package_text("style.css")),
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }


def _title(models: Sequence[Judged]) -> str:
    *first, last = sorted({model.identity.dataset for model in models})
    data = f"{', '.join(first)} and {last}" if first else last
    return f"{models[0].name} on {data}" if len(models) == 1 else f"{len(models)} models on {data}"


def _package_text(name: str) -> str:
    return resources.files("linocut.report").joinpath("templates", name).read_text(encoding="utf-8")
