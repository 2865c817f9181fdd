"""The self-check passes where backends agree, and sees a single wrong value where they do not."""

from types import SimpleNamespace

import pytest

from linocut.errors import InputError
from linocut.transform import parity
from linocut.transform.kernels import torch_ops


def statuses(checks):
    return {(check.backend, check.device): check.status for check in checks}


def test_the_backends_of_this_machine_agree():
    found = statuses(parity.check_backends())
    assert found["torch", "cpu"] == "ok"
    assert set(found.values()) <= {"ok", "unavailable"}


def spoiled(step):
    """The torch backend with the last value of one of its functions off by one."""

    def wrong(*arguments):
        result = getattr(torch_ops, step)(*arguments)
        value = (result if step == "paint" else result[0]).clone()
        value.view(-1)[-1] += 1
        return value if step == "paint" else (value, *result[1:])

    return SimpleNamespace(**{**vars(torch_ops), step: wrong})


@pytest.mark.parametrize("step", ["blur", "find_palette", "paint"])
def test_one_wrong_value_is_seen(monkeypatch, step):
    real = parity.kernels
    monkeypatch.setattr(
        parity, "kernels", lambda name, device: spoiled(step) if name == "numba" else real(name, device)
    )
    found = statuses(parity.check_backends())
    assert found["numba", "cpu"] == "differs"
    assert found["torch", "cpu"] == "ok"


@pytest.mark.parametrize(("error", "status"), [(InputError("no"), "unavailable"), (RuntimeError("oh"), "broken")])
def test_a_backend_that_raises_is_told_and_the_others_are_checked(monkeypatch, error, status):
    real = parity.kernels

    def kernels(name, device):
        if name == "numba":
            raise error
        return real(name, device)

    monkeypatch.setattr(parity, "kernels", kernels)
    found = statuses(parity.check_backends())
    assert found["numba", "cpu"] == status
    assert found["torch", "cpu"] == "ok"
