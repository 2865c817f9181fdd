"""Which rows each table of the paper has, under names of our own."""

from linocut.errors import InputError
from linocut.recipes.training import PAPER, ROWS

COLOR = ("cifar-10", "resisc45", "imagenette")  # the paper's main table; the others stand in its supplement
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
    }[table]


def chosen(data_set: str | None, row: str | None, table: str | None) -> list[tuple[str, str]]:
    """(data set, row) pairs: those asked for; every data set of the paper and its main tables if nothing is."""
    if data_set is not None and data_set not in DATA_SETS:
        raise InputError(f"no data set is called {data_set!r}; there are {', '.join(DATA_SETS)}")
    if row is not None and row not in ROWS:
        raise InputError(f"no row is called {row!r}; there are {', '.join(ROWS)}")
    if row is not None and table is not None:
        raise InputError(f"row {row} and table {table} were both asked for: give one of them")
    sets = (data_set,) if data_set is not None else tuple(PAPER)
    return [(name, each) for name in sets for each in ((row,) if row else rows_of(table or "main", name))]


def base_row(row: str) -> str:
    """The row with the same training and no transform: a pretrained row's network, a retrained row's twin."""
    return "natural" if ROWS[row].method == "natural" else "baseline"


def words(row: str) -> str:
    """The row in plain words: ATTA + AC+AB, retrained."""
    chosen = ROWS[row]
    training = "natural training" if chosen.method == "natural" else "ATTA"
    if chosen.transform is None:
        return training
    front = {"fixed": "fixed codebook", "acab": "AC+AB"}.get(chosen.transform, chosen.transform.upper())
    return f"{training} + {front}, {'retrained' if chosen.transform_at == 'train' else 'pretrained'}"
