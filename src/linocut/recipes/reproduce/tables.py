"""Which rows each table of the paper has, under names of our own."""

import math
from collections.abc import Sequence

from linocut.errors import InputError
from linocut.recipes.training import PAPER
from linocut.recipes.training.rows import row_named, training_changes
from linocut.transform.presets import CIFAR, PRESETS

PICTURES = ("resisc45", "imagenette")  # large, of any size
COLOR = ("cifar-10", *PICTURES)  # the paper's main table; the others stand in its supplement
_MAIN = ("baseline", "fixed-pretrained", "ac-retrained", "acab-retrained")
_MAIN_SIMPLE = ("baseline", "fixed-pretrained", "ac-pretrained", "ac-retrained", "acab-pretrained", "acab-retrained")
_MODES = (
    "natural-fixed-pretrained",
    "natural-fixed-retrained",
    "fixed-retrained",
    "natural-acab-pretrained",
    "natural-acab-retrained",
    "acab-pretrained",
)
_ABLATION = ("acab-retrained", "ac-retrained", "ab-retrained")
TABLES = {
    "main": "white-box results: the paper's table of colour sets, or its table of MNIST, Fashion-MNIST and GTSRB",
    "modes": "other ways of training: natural, fixed codebook retrained, AC+AB pretrained",
    "ablation": "AC+AB against AC alone and AB alone",
    "retrained": "every row whose network was trained through its transform",
    "pretrained": "every row whose transform came after training",
    "natural": "every row that was trained naturally",
    "square": "the Square tables, which hold every row; suite `paper` runs PGD and Square on each",
    "decisions": "not in the paper: AC+AB with one setting changed that it leaves open or that could matter",
}
DATA_SETS = (*PAPER, "digits")


def rows_of(table: str, data_set: str) -> tuple[str, ...]:
    """The rows of a table for a data set, in the order of the paper."""
    if table not in TABLES:
        raise InputError(f"no table is called {table!r}; there are {', '.join(TABLES)}")
    everything = tuple(dict.fromkeys((*_MAIN_SIMPLE, *_ABLATION, *_MODES)))
    return {
        "main": _MAIN if data_set in COLOR else _MAIN_SIMPLE,
        "modes": _MODES,
        "ablation": _ABLATION,
        "retrained": tuple(row for row in everything if row.endswith("-retrained")),
        "pretrained": tuple(row for row in everything if row.endswith("-pretrained")),
        "natural": tuple(row for row in everything if row.startswith("natural")),
        "square": everything,
        "decisions": ("baseline", "acab-retrained", *(f"acab-retrained@{change}" for change in _decisions(data_set))),
    }[table]


def _decisions(data_set: str) -> list[str]:
    """Settings of the transform, one changed at a time."""
    low, high = PRESETS.get(data_set, CIFAR).edge_thresholds
    found = ["order=bins", "separation=2", f"separation={3 * math.sqrt(3):.3f}"]
    found += [f"lloyd_steps={steps}" for steps in (0, 1, 5)]
    found += [f"edge_thresholds={low * factor:g},{high * factor:g}" for factor in (0.5, 2)]
    return found + [f"thumbnail_size={side}" for side in (16, 64) if data_set in PICTURES]


def chosen(
    data_set: str | None, rows: Sequence[str], table: str | None, changes: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """(data set, row) pairs: those asked for; every data set of the paper and its main tables if nothing is.

    changes: settings of the training, for every row.
    """
    if data_set is not None and data_set not in DATA_SETS:
        raise InputError(f"no data set is called {data_set!r}; there are {', '.join(DATA_SETS)}")
    for row in rows:
        row_named(row)
    if rows and table is not None:
        raise InputError(f"row {', '.join(rows)} and table {table} were both asked for: give one of them")
    sets = (data_set,) if data_set is not None else tuple(PAPER)
    found = [(name, each) for name in sets for each in dict.fromkeys(rows or rows_of(table or "main", name))]
    found = [(name, "+".join([each, *changes])) for name, each in found]
    for _, each in found:
        training_changes(each)
    return found


def base_row(row: str) -> str:
    """The row with the same training and no transform: a pretrained row's network, a retrained row's twin."""
    return "+".join(["natural" if row_named(row).method == "natural" else "baseline", *training_changes(row)])


def words(row: str) -> str:
    """The row in plain words: ATTA + AC+AB, retrained."""
    chosen = row_named(row)
    training = "natural training" if chosen.method == "natural" else "ATTA"
    if chosen.transform is not None:
        front = {"fixed": "fixed codebook", "acab": "AC+AB"}.get(chosen.transform, chosen.transform.upper())
        training += f" + {front}, {'retrained' if chosen.transform_at == 'train' else 'pretrained'}"
    return ", ".join([training, *row.partition("+")[0].split("@")[1:], *training_changes(row)])
