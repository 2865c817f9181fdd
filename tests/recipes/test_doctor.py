"""The doctor finds what is wrong, not only what is right."""

import json

from linocut.recipes import doctor
from linocut.transform.parity import BackendCheck


def test_the_report_is_plain_json_and_healthy_here(monkeypatch):
    checks = [BackendCheck(backend="torch", device="cpu", status="ok")]
    monkeypatch.setattr(doctor, "check_backends", lambda: checks)
    report = json.loads(json.dumps(doctor.examine()))
    assert report["healthy"]
    assert report["packages"]["torch"]
    assert report["cpu"]


def test_a_difference_is_not_healthy(monkeypatch):
    for status, healthy in (("differs", False), ("broken", False), ("unavailable", True)):
        check = BackendCheck(backend="torch", device="cpu", status=status)
        monkeypatch.setattr(doctor, "check_backends", lambda check=check: [check])
        assert doctor.examine()["healthy"] is healthy


def test_a_driver_that_torch_does_not_use_is_told(monkeypatch):
    monkeypatch.setattr(doctor, "nvidia_driver_present", lambda: True)
    monkeypatch.setattr(doctor.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(doctor.torch.version, "cuda", None)
    assert "without CUDA" in doctor._warnings()[0]
    monkeypatch.setattr(doctor.torch.version, "cuda", "13.0")
    assert "finds no GPU" in doctor._warnings()[0]
    monkeypatch.setattr(doctor, "nvidia_driver_present", lambda: False)
    assert doctor._warnings() == []
