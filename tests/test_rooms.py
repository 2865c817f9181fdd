"""Who may import whom (the table in CONTRIBUTING.md), and what no module may do, read off the syntax trees."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "linocut"
EXCEPTIONS = {
    Path("data/cifar_pickle.py"): {"pickle"},  # CIFAR-10's own files, through an unpickler that calls nothing
}

BELOW_RECIPES = {"transform", "attacks", "data", "theory", "models", "adapters", "training", "evaluation", "report"}
MAY_IMPORT = {
    "errors": set(),
    "files": set(),
    "transform": set(),
    "attacks": set(),
    "data": set(),
    "theory": set(),
    "models": {"transform"},
    "adapters": {"transform", "models"},
    "training": {"models", "attacks", "data"},
    "evaluation": {"models", "attacks", "data"},
    "report": {"evaluation"},
    "recipes": BELOW_RECIPES,
    "cli": BELOW_RECIPES | {"recipes"},
    "__init__": BELOW_RECIPES,  # the public names
    "__main__": {"cli"},
}


def room(path):
    """The room of a module, given its path inside the package."""
    return path.parts[0] if len(path.parts) > 1 else path.stem


def imported_rooms(source):
    """The rooms of linocut that this source imports, at its top or inside a function."""
    rooms = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide which room they enter"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("linocut.")}
    return rooms


def dangers(source):
    """What this source does that could run or unpack what a stranger wrote."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            yield from ({name.split(".")[0] for name in names} & {"pickle", "cPickle", "dill", "marshal", "shelve"})
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            if called in ("exec", "extractall", "unpack_archive", "system", "popen") or (
                called == "eval" and isinstance(node.func, ast.Name)
            ):
                yield called
            safe = any(k.arg == "weights_only" and getattr(k.value, "value", None) is True for k in node.keywords)
            if ast.unparse(node.func) == "torch.load" and not safe:
                yield "torch.load"
            for keyword in node.keywords:
                if keyword.arg in ("shell", "allow_pickle") and getattr(keyword.value, "value", True):
                    yield keyword.arg


MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_doors_are_one_way(path):
    own = room(path)
    assert own in MAY_IMPORT, f"a room that CONTRIBUTING.md does not name: {own}"
    source = (PACKAGE / path).read_text(encoding="utf-8")
    entered = imported_rooms(source) - {own, "errors", "files", "__version__", "InputError"}
    assert entered <= MAY_IMPORT[own], f"{own} may not import {sorted(entered - MAY_IMPORT[own])}"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_nothing_foreign_is_run_or_unpacked(path):
    found = set(dangers((PACKAGE / path).read_text(encoding="utf-8")))
    assert found <= EXCEPTIONS.get(path, set())


def test_table_names_these_rooms():
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {r for r in MAY_IMPORT if not r.startswith("__")}
    assert all(f"`{name}`" in table for name in named)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import pickle", {"pickle"}),
        ("from pickle import loads", {"pickle"}),
        ("def f():\n    import shelve", {"shelve"}),
        ("eval('1')", {"eval"}),
        ("exec(code)", {"exec"}),
        ("run('ls', shell=True)", {"shell"}),
        ("run('ls', shell=flag)", {"shell"}),
        ("run(['ls'], shell=False)", set()),
        ("tar.extractall(path)", {"extractall"}),
        ("np.load(path, allow_pickle=True)", {"allow_pickle"}),
        ("model.eval()", set()),
        ("shutil.unpack_archive(path)", {"unpack_archive"}),
        ("os.system('ls')", {"system"}),
        ("torch.load(path)", {"torch.load"}),
        ("torch.load(path, weights_only=flag)", {"torch.load"}),
        ("torch.load(path, weights_only=True)", set()),
    ],
)
def test_dangers_are_seen(source, found):
    assert set(dangers(source)) == found


def test_doors_are_seen():
    source = (
        "import linocut.data.images\ndef f():\n    from linocut import models\n    from linocut.attacks.pgd import PGD"
    )
    assert imported_rooms(source) == {"data", "models", "attacks"}
