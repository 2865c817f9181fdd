"""Forty tensors that a transform must refuse, each with a guess at the mistake."""

import numpy as np
import pytest
import torch

from linocut.errors import InputError
from linocut.transform.modules import AdaptiveBlur, AdaptiveCodebook, EssentialFeatures

GOOD = torch.full((2, 3, 6, 7), 0.5)


def having(value):
    bad = GOOD.clone()
    bad[1, 2, 5, 6] = value
    return bad


BAD = {
    "NaN": (having(float("nan")), "1 NaN"),
    "Inf": (having(float("inf")), "1 infinite"),
    "minus Inf": (having(-float("inf")), "1 infinite"),
    "all NaN": (GOOD * float("nan"), "252 NaN"),
    "a little above 1": (having(1.0001), r"from 0.5 to 1.0001\d*; .* clamp"),
    "a little below 0": (having(-1e-6), r"from -(1e-06|9.99\d*e-07) .* clamp"),
    "up to nearly 2": (having(1.9), "scale or clamp"),
    "whole levels": (having(255.0), "divide by 255"),
    "levels up to 2": (having(2.0), "divide by 255"),
    "above 255": (having(4096.0), "scale or clamp"),
    "minus one to one": (GOOD * 4 - 2.5, r"\(x \+ 1\) / 2"),
    "normalised": (having(-2.1), "before normalising"),
    "huge": (having(1e30), "scale or clamp"),
    "uint8": (torch.zeros(2, 3, 6, 7, dtype=torch.uint8), r"x.float\(\) / 255"),
    "int16": (torch.zeros(2, 3, 6, 7, dtype=torch.int16), r"x.float\(\) / 255"),
    "int64": (torch.zeros(2, 3, 6, 7, dtype=torch.int64), r"x.float\(\) / 255"),
    "bool": (torch.zeros(2, 3, 6, 7, dtype=torch.bool), "dtype bool"),
    "float64": (GOOD.double(), r"use x.float\(\)"),
    "float16": (GOOD.half(), r"use x.float\(\)"),
    "bfloat16": (GOOD.bfloat16(), r"use x.float\(\)"),
    "complex": (GOOD + 0j, "dtype complex64"),
    "scalar": (torch.tensor(0.5), "give a batch"),
    "vector": (torch.rand(10), "give a batch"),
    "one grey image": (torch.rand(6, 7), r"x\[None, None\]"),
    "one image": (GOOD[0], r"x\[None\]"),
    "one image, channels last": (GOOD[0].permute(1, 2, 0), r"x.permute\(2, 0, 1\)\[None\]"),
    "grey batch without channel": (torch.rand(8, 28, 28), r"x\[:, None\]"),
    "five dimensions": (GOOD[None], r"x.flatten\(0, -4\)"),
    "channels last": (GOOD.permute(0, 2, 3, 1), r"x.permute\(0, 3, 1, 2\)"),
    "grey, channels last": (torch.rand(2, 28, 28, 1), r"x.permute\(0, 3, 1, 2\)"),
    "RGBA": (torch.rand(2, 4, 6, 7), "RGBA"),
    "grey and alpha": (torch.rand(2, 2, 6, 7), "alpha"),
    "ten channels": (torch.rand(2, 10, 6, 7), "10 channels"),
    "no channel": (torch.rand(2, 0, 6, 7), "0 channels"),
    "no rows": (torch.rand(2, 3, 0, 7), "without pixels"),
    "no columns": (torch.rand(2, 3, 6, 0), "without pixels"),
    "nothing at all": (torch.rand(0, 3, 0, 0), "without pixels"),
    "sparse": (GOOD.to_sparse(), "to_dense"),
    "array": (GOOD.numpy(), "torch.from_numpy"),
    "list of tensors": ([GOOD[0], GOOD[1]], "torch.stack"),
    "tuple": ((GOOD,), "torch.stack"),
    "None": (None, "got None"),
    "number": (0.5, "builtins.float"),
    "text": ("image.png", "builtins.str"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tensors_are_refused_with_a_guess(name):
    x, guess = BAD[name]
    for transform in (EssentialFeatures(), AdaptiveBlur(), AdaptiveCodebook()):
        with pytest.raises(InputError, match=guess):
            transform(x)
        with pytest.raises(InputError, match=guess):
            transform.explain(x)
    with pytest.raises(InputError, match=guess):
        EssentialFeatures().frozen(x)
    frozen = EssentialFeatures().frozen(GOOD)
    with pytest.raises(InputError, match=guess):
        frozen(x)


def test_there_are_forty():
    assert len(BAD) >= 40


def test_an_image_object_is_refused():
    image = pytest.importorskip("PIL.Image").fromarray(np.zeros((4, 5, 3), dtype=np.uint8))
    with pytest.raises(InputError, match=r"PIL\.Image"):
        EssentialFeatures()(image)


def test_a_tracer_is_told_to_take_the_module_whole():
    class Whole(torch.fx.Tracer):
        def is_leaf_module(self, module, name):
            return isinstance(module, EssentialFeatures) or super().is_leaf_module(module, name)

    network = torch.nn.Sequential(EssentialFeatures(), torch.nn.Flatten())
    with pytest.raises(InputError, match=r"is_leaf_module.*or torch\.export"):
        torch.fx.symbolic_trace(network)
    traced = torch.fx.GraphModule(network, Whole().trace(network))
    assert torch.equal(traced(GOOD), network(GOOD))
    assert torch.equal(torch.export.export(network, (GOOD,)).module()(GOOD), network(GOOD))


def test_good_tensors_pass():
    for x in (GOOD, GOOD[:, :1], having(0.0), having(1.0), GOOD[:0], having(-0.0)):
        assert EssentialFeatures(validate=True)(x).shape == x.shape


def test_values_are_looked_at_only_where_asked():
    bad = having(2.0)
    assert EssentialFeatures(validate=False)(bad).shape == bad.shape
    for validate in (None, True):
        with pytest.raises(InputError):
            EssentialFeatures(validate=validate)(bad)


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own: nested tensors are a prototype
def test_nested_tensors_are_refused():
    with pytest.raises(InputError, match="nested"):
        EssentialFeatures()(torch.nested.nested_tensor([torch.rand(3, 4, 4), torch.rand(3, 5, 5)]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_modules_refuse_too():
    torch._dynamo.reset()
    compiled = torch.compile(EssentialFeatures(backend="torch"), fullgraph=True, backend="aot_eager")
    assert compiled(GOOD).shape == GOOD.shape
    with pytest.raises(InputError, match="divide by 255"):
        compiled(having(255.0))
