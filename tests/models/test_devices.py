"""Devices by name, with a machine of two GPUs made believe."""

import pytest
import torch

from linocut.errors import InputError
from linocut.evaluation.request import device_of
from linocut.models.devices import device_named, name_of
from linocut.recipes.device_choice import choose
from linocut.training.world import local_device


@pytest.fixture
def gpus(monkeypatch):
    def there(count):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    return there


@pytest.mark.parametrize("name", [None, "auto"])
def test_unless_one_is_named_it_is_a_gpu_where_there_is_one(name, gpus):
    gpus(2)
    assert device_named(name) == torch.device("cuda")
    assert device_named(name, 1) == torch.device("cuda:1")
    gpus(0)
    assert device_named(name, 1) == device_named(name) == torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda:2", "cuda:99"])
def test_a_gpu_that_is_not_there_is_refused(name, gpus):
    gpus(2)
    assert device_named("cuda:1") == torch.device("cuda:1")
    assert device_named("cuda", 1) == torch.device("cuda")  # a name that was given is taken as it is
    with pytest.raises(InputError, match=f"{name} was asked for, and torch sees 2 GPUs: use --device cpu"):
        device_named(name)
    gpus(0)
    with pytest.raises(InputError, match="cuda was asked for, and torch sees 0 GPUs"):
        device_named("cuda")


@pytest.mark.parametrize("verb", [choose, device_of, local_device])
def test_every_verb_takes_the_same_names(verb, gpus):
    gpus(0)
    assert verb("auto") == verb("cpu") == torch.device("cpu")
    for name in ("tpu", ""):
        with pytest.raises(InputError, match=f"no device is called '{name}': use cpu, cuda or auto"):
            verb(name)


def test_a_device_has_the_name_of_what_computes_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU {device.index}")
    monkeypatch.setattr("platform.machine", lambda: "abacus")
    assert [name_of(torch.device(name)) for name in ("cpu", "cuda:1")] == ["abacus", "GPU 1"]
