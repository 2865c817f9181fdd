"""Paths told without the machine they were on."""

from linocut.recipes.publish.wording import Wording, roots_of, sources_of

WORDING = Wording(["/runs/of mine/out", "/runs/results"], ["/runs/of mine/out/data", "/data&sets"])


def test_a_command_keeps_its_options_and_loses_its_folders():
    typed = ["/venv/bin/linocut", "reproduce", "--out", "/runs/of mine/out", "--root=/data&sets", "--device", "cpu"]
    told = WORDING.command(typed)
    assert told == ["linocut", "reproduce", "--out", "OUT", "--root=DATA", "--device", "cpu"]
    assert WORDING.word("/runs/of mine/out/mnist/baseline/seed-0/model") == "mnist/baseline/seed-0/model"
    assert WORDING.word("/runs/of mine/out/data") == "DATA"
    assert WORDING.word("/data&sets/mnist") == "DATA/mnist"


def test_what_lies_elsewhere_is_told_by_its_last_part():
    assert WORDING.word("/somebody/else/model") == "model"
    assert WORDING.word("/runs/of mine/outer") == "outer"
    assert WORDING.word("models/mine") == "models/mine"
    assert WORDING.word("mine:model") == "mine:model"


def test_texts_are_retold_escaped_or_not():
    page = "<code>linocut verify '/runs/of mine/out/mnist/ledger' --root /data&amp;sets/x</code> /runs/results"
    assert WORDING.text(page) == "<code>linocut verify 'mnist/ledger' --root DATA/x</code> OUT"


def test_roots_are_read_off_commands():
    assert roots_of([["evaluate", "m", "--root", "/a"], None, ["evaluate", "--root"], ["--root", "/b", "-n", "3"]]) == {
        "/a",
        "/b",
    }


def test_what_a_command_took_over_are_the_results():
    typed = ["/bin/linocut", "reproduce", "--published", "/elsewhere/pub", "--out", "/runs/of mine/out", "--json"]
    assert WORDING.command(typed) == ["linocut", "reproduce", "--published", "RESULTS", "--out", "OUT", "--json"]


def test_results_that_were_taken_over_are_told_in_texts_too():
    """A report made of the ledgers at hand shows the command as it was typed."""
    typed = ["linocut", "reproduce", "--published", "/elsewhere/pub", "--out", "out"]
    sources = sources_of([typed, ["--published=/another"], ["--published", "near"], None])
    assert sources == {"/elsewhere/pub", "/another"}
    wording = Wording(["/runs/out"], [], sources)
    assert wording.text("reproduce --published /elsewhere/pub --out OUT") == "reproduce --published RESULTS --out OUT"
    assert wording.word("--published=/another") == "--published=RESULTS"
