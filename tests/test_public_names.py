"""The lock on what users may rely on, and on what importing it costs."""

import json
import socket
import subprocess
import sys

import pytest

import linocut

PUBLIC = {
    "AdaptiveBlur",
    "AdaptiveCodebook",
    "Architecture",
    "Card",
    "Defended",
    "EssentialFeatures",
    "Explanation",
    "FixedCodebook",
    "InputError",
    "apply",
    "build",
    "evaluate",
    "load",
    "save",
}

PROBE = """
import json, sys, time
import numpy, torch
before = set(sys.modules)
start = time.process_time()
import linocut, linocut.models, linocut.transform.modules
spent = time.process_time() - start
new = {name.split(".")[0] for name in set(sys.modules) - before}
print(json.dumps({"seconds": spent, "new": sorted(new)}))
"""


def test_public_names():
    assert set(linocut.__all__) == PUBLIC, "public names changed: change this lock and the changelog with them"
    assert len(PUBLIC) <= 20
    assert all(hasattr(linocut, name) for name in PUBLIC)


def test_import_is_light():
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    cost = json.loads(run.stdout)
    assert not set(cost["new"]) & {"numba", "triton", "PIL", "typer", "rich", "matplotlib", "sklearn", "safetensors"}
    assert cost["seconds"] < 0.3
    assert run.stderr == ""


def test_no_test_reaches_another_machine():
    with socket.socket() as probe, pytest.raises(pytest.fail.Exception, match="tried to reach"):
        probe.connect(("192.0.2.1", 443))
