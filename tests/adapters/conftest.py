"""How torchvision comes to import on a build of torch for CPUs, and small models."""

import sys

import pytest
import torch


@pytest.fixture
def torchvision_imports():
    """A function after which torchvision imports, or the test is skipped.

    PyPI's torchvision belongs to the CUDA build of torch: on the CPU build its compiled operators are missing, and
    importing it asks for two of them. Nothing here uses them, so declaring them is enough.
    """

    def prepare():
        if "torchvision" in sys.modules:
            return
        try:
            import torchvision  # noqa: F401
        except RuntimeError:
            for name in [n for n in sys.modules if n.split(".")[0] == "torchvision"]:
                del sys.modules[name]
            operators = torch.library.Library("torchvision", "FRAGMENT")
            operators.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            operators.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            KEPT.append(operators)
        except ImportError:
            pytest.skip("torchvision is not installed")

    return prepare


KEPT: list = []  # a library that is collected takes its operators with it
