"""The progress of an evaluation, as a terminal and as a log see it."""

from types import SimpleNamespace

from linocut.evaluation.progress import Progress

ENTRY = SimpleNamespace(name="linf/pgd")


def test_a_log_gets_one_line_an_entry(capsys, monkeypatch):
    monkeypatch.setattr("time.monotonic", iter([0.0, 2.0, 4.0]).__next__)
    with Progress(shown=True) as progress:
        progress.watch(ENTRY, 10, 20, 0)
        progress.watch(ENTRY, 20, 20, 0)
    assert capsys.readouterr().err == "linf/pgd: 20 of 20, 5.0 examples/s, took 4 s\n"


def test_a_terminal_sees_rate_and_time_left_of_what_is_new(capsys, monkeypatch):
    monkeypatch.setattr("time.monotonic", iter([0.0, 2.0]).__next__)
    progress = Progress(shown=True)
    progress.live = True
    progress.watch(ENTRY, 30, 1030, 10)
    assert "30 of 1030, 10.0 examples/s, 2 min left" in capsys.readouterr().err


def test_nothing_is_said_to_scripts_or_of_nothing(capsys):
    quiet = Progress(shown=False)
    quiet.watch(ENTRY, 5, 5, 0)
    Progress(shown=True).watch(ENTRY, 0, 0, 0)
    assert capsys.readouterr().err == ""
