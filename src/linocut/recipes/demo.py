"""The demonstration: four networks on digits, attacked; and a page that says what came out and how it works."""

import html
import shlex
import string
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import torch

from linocut.files import write_whole
from linocut.recipes.demo_photographs import photograph_sections
from linocut.recipes.reproduce import overview, verdict
from linocut.recipes.reproduce.reproduction import Reproduction, prepare
from linocut.recipes.reproduce.scales import Scale, demo
from linocut.recipes.reproduce.tables import words

ROWS = ("natural", "baseline", "fixed-pretrained", "acab-retrained")  # those of the main table, and natural training
PAGE = "index.html"


def prepare_demo(out: Path, *, timed: bool = True, scale: Scale = demo, rows: Sequence[str] = ROWS) -> Reproduction:
    """The plan of the demonstration, on one thread of the CPU.

    The networks are so small that threads would wait for each other, and on a busy machine for long.
    """
    torch.set_num_threads(1)
    return prepare(
        [("digits", row) for row in rows],
        scale=scale,
        seeds=[0],
        out=out,
        root=None,
        device=torch.device("cpu"),
        title="Four networks on digits",
        timed=timed,
    )


def write_page(reproduction: Reproduction) -> Path:
    """The path of the page: verdict, table and photographs in one file that loads nothing; it links to the report."""
    report = reproduction.report
    records = report.records(reproduction.shop)
    found = overview.lines(report.works, records)
    page = _template("demo_page.html").substitute(
        verdict="".join(f"<li>{html.escape(told)}</li>" for told in verdict.sentences(report.works, records)),
        table="".join(_table(found)),
        count=found[0].cells["clean"].n,
        verify=html.escape(verify_command(reproduction)),
        cut="".join(f"<li>{html.escape(told)}</li>" for told in what_was_cut(reproduction)),
        sections="\n".join(photograph_sections()),
    )
    path = reproduction.shop.out / PAGE
    write_whole(path, page.encode())
    return path


def verify_command(reproduction: Reproduction) -> str:
    """What replays the last network's first ledger, from any folder."""
    work, out = reproduction.report.works[-1], reproduction.shop.out.resolve()
    return shlex.join(["linocut", "verify", str(out / work.place / f"ledger-{work.judgements[0].suite}")])


def what_was_cut(reproduction: Reproduction) -> list[str]:
    """What makes this a demonstration and not a result."""
    works = reproduction.report.works
    first = works[0]
    shelf = reproduction.shop.shelf
    train, test = len(shelf.train(first)), len(shelf.test(first))
    suites = [
        f"{judgement.suite} on {test if judgement.n is None else min(test, judgement.n)} images"
        for judgement in first.judgements
    ]
    return [
        f"Digits of 8 by 8 pixels, {train:,} to train on, {test} to test; a small network, "
        f"{first.config.epochs} epochs, one seed. On other data the order may be another.",
        f"Suites: {' and '.join(suites)}. The suite for claims, strong, was not run: what holds here may fall to it.",
    ]


def _table(found: Sequence[overview.Line]) -> Iterator[str]:
    named = overview.headings(found)
    yield "<thead><tr><th scope='col'>network</th>"
    yield from (
        f"<th scope='col'>{html.escape(name.split(', ')[0]).replace(' ', '<br>')}</th>" for name in named.values()
    )
    yield "<th scope='col'>checks<br>that fail</th></tr></thead><tbody>"
    for line in found:
        yield f"<tr><th scope='row'>{html.escape(words(line.row))}</th>"
        for column in named:
            mark = " class='worst'" if column.endswith("_worst") else ""
            cell = line.cells[column]
            yield f"<td{mark}>{cell.mean:.1f}<br><small>{cell.bounds}</small></td>"
        yield f"<td class='checks'>{'<br>'.join(map(html.escape, line.failed)) or 'none'}</td></tr>"
    yield "</tbody>"


def _template(name: str) -> string.Template:
    return string.Template(resources.files("linocut.recipes").joinpath(name).read_text(encoding="utf-8"))
