import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings

import pytest
import torch

from linocut.errors import InputError
from linocut.evaluation import header as headers
from linocut.evaluation import ledger as ledgers
from linocut.evaluation.rows import Row, from_line, to_line


def row(example=0, entry="clean", **more):
    return Row(
        **(
            {
                "example": example,
                "label": 1,
                "entry": entry,
                "config": "c",
                "seed": 5,
                "clean": 1,
                "prediction": 1,
            }
            | more
        )
    )


def header(device="cpu", **settings):
    entries = {"clean": {"config": "c"}, "linf/pgd": {"config": "d"}}
    return headers.make({"n": 3} | settings, entries, device=torch.device(device))


def test_a_header_names_what_computes_and_not_what_else_is_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: f"GPU {device.index}")
    monkeypatch.setattr("platform.machine", lambda: "abacus")
    told = {name: header(name)["made_with"]["machine"] for name in ("cpu", "cuda:0", "cuda:1")}
    assert told == {"cpu": "abacus", "cuda:0": "GPU 0", "cuda:1": "GPU 1"}


def test_a_row_survives_its_line():
    full = row(broken=True, loss_best=0.1 + 0.2, distance=1e-17, image="ab", quantised=3, measure=0.5)
    assert from_line(to_line(full)) == full
    assert to_line(full).count("\n") == 1


def test_numbers_that_json_has_not_become_none():
    assert from_line(to_line(row(loss_best=float("nan"), loss_end=float("inf")))) == row()
    json.loads(to_line(row(loss_best=float("nan"))))


def test_any_changed_byte_is_seen():
    line = to_line(row(distance=0.25))
    for place in range(len(line) - 1):
        changed = line[:place] + chr(ord(line[place]) ^ 1) + line[place + 1 :]
        with pytest.raises(ValueError):
            from_line(changed)


def test_a_line_of_another_version_is_refused():
    text = to_line(row()).replace('"silent"', '"quiet_"')
    with pytest.raises(ValueError):
        from_line(text)


def write_rows(folder, rows, rank=0):
    ledgers.Ledger(folder, rank).append(rows)


def test_a_torn_last_line_is_dropped_with_a_warning_and_the_next_row_stands(tmp_path):
    write_rows(tmp_path, [row(0), row(1)])
    part = tmp_path / "parts" / "rank-0.jsonl"
    whole = part.read_bytes()
    for cut in (1, 20, len(to_line(row(1))) - 1):
        part.write_bytes(whole[:-cut])
        with pytest.warns(UserWarning, match="cut short"):
            ledger = ledgers.Ledger(tmp_path)
        assert list(ledger.rows) == [("clean", 0)]
        ledger.append([row(2)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert [r.example for r in ledgers.read_rows(tmp_path)] == [0, 2]


def test_a_damaged_line_in_the_middle_is_refused_by_its_number(tmp_path):
    write_rows(tmp_path, [row(i) for i in range(3)])
    part = tmp_path / "parts" / "rank-0.jsonl"
    lines = part.read_text().splitlines(keepends=True)
    part.write_text(lines[0] + lines[1].replace('"label":1', '"label":2') + lines[2])
    with pytest.raises(InputError, match="line 2"):
        ledgers.read_rows(tmp_path)


def test_the_later_line_of_a_key_holds(tmp_path):
    write_rows(tmp_path, [row(0, prediction=1), row(0, prediction=2)])
    assert [r.prediction for r in ledgers.read_rows(tmp_path)] == [2]


def test_parts_of_any_number_of_workers_merge_to_the_same_bytes(tmp_path):
    rows = [row(i, entry) for entry in ("linf/pgd", "clean") for i in (4, 2, 9, 0)]
    merged = []
    for workers in (1, 2, 3):
        folder = tmp_path / str(workers)
        folder.mkdir()
        headers.settle(folder, header())
        random.Random(workers).shuffle(rows)
        for rank in range(workers):
            write_rows(folder, rows[rank::workers], rank)
        result = ledgers.merge(folder)
        assert [r.entry for r in result] == ["clean"] * 4 + ["linf/pgd"] * 4
        assert ledgers.merge(folder) == result  # merging again changes nothing
        assert not list((folder / "parts").iterdir())
        merged.append((folder / "rows.jsonl").read_bytes())
    assert len(set(merged)) == 1


def test_a_changed_setting_is_refused_by_its_name(tmp_path):
    headers.settle(tmp_path, header(eps={"linf": 0.1}))
    headers.settle(tmp_path, header(eps={"linf": 0.1}))
    with pytest.raises(InputError, match=r"eps\.linf = 0\.1, not 0\.2"):
        headers.settle(tmp_path, header(eps={"linf": 0.2}))
    with pytest.raises(InputError, match="suite"):
        headers.settle(tmp_path, header(eps={"linf": 0.1}, suite="fast"))
    changed = header(eps={"linf": 0.1})
    changed["entries"]["linf/pgd"]["config"] = "e"
    with pytest.raises(InputError, match=r"linf/pgd\.config"):
        headers.settle(tmp_path, changed)


def test_a_plan_may_grow_at_its_end_only(tmp_path):
    headers.settle(tmp_path, header())
    grown, shuffled = header(), header()
    grown["entries"]["linf/more"] = {"config": "m"}
    shuffled["entries"] = {"linf/more": {"config": "m"}} | shuffled["entries"]
    with pytest.raises(InputError, match="linf/more"):
        headers.settle(tmp_path, shuffled)
    assert list(headers.settle(tmp_path, grown)["entries"]) == [*header()["entries"], "linf/more"]
    with pytest.raises(InputError, match="not asked for now"):
        headers.settle(tmp_path, header())


def test_a_full_disk_is_named_and_what_was_written_stays(tmp_path, monkeypatch):
    ledger = ledgers.Ledger(tmp_path)
    ledger.append([row(0)])

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"No space left.*run again"):
        ledger.append([row(1)])
    assert list(ledger.rows) == [("clean", 0)]


def test_a_folder_without_a_ledger_says_so(tmp_path):
    with pytest.raises(InputError, match="holds no ledger"):
        headers.read(tmp_path)
    (tmp_path / "header.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        headers.read(tmp_path)
    (tmp_path / "header.json").write_text("[]")
    with pytest.raises(InputError, match="no header"):
        headers.read(tmp_path)


APPEND_FOREVER = """
import sys
from pathlib import Path
from linocut.evaluation.ledger import Ledger
from linocut.evaluation.rows import Row
ledger = Ledger(Path(sys.argv[1]))
start = len(ledger.rows)
for i in range(start, 10**6):
    ledger.append([Row(example=i, label=0, entry="clean", config="c", seed=i, clean=0, prediction=0)])
    print(i, flush=True)
"""


def test_kill_9_while_appending_loses_nothing_that_was_confirmed(tmp_path, count):
    confirmed = -1
    for trial in range(count(2, 20)):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", APPEND_FOREVER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        process.stdout.readline()
        time.sleep(random.Random(trial).uniform(0.01, 0.2))
        os.kill(process.pid, signal.SIGKILL)
        printed = process.communicate()[0].split()
        confirmed = max([confirmed, *map(int, printed)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            examples = [r.example for r in ledgers.read_rows(tmp_path)]
        assert examples == list(range(len(examples)))
        assert len(examples) > confirmed


def test_a_folder_of_ledgers_names_one_of_them(tmp_path):
    (tmp_path / "ledger-paper").mkdir()
    (tmp_path / "ledger-paper" / "header.json").write_text("{}")
    with pytest.raises(InputError, match=r"such as .*ledger-paper"):
        headers.read(tmp_path)
    with pytest.raises(InputError, match=r"header\.json is not there"):
        headers.read(tmp_path / "nothing")
