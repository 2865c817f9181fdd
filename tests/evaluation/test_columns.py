import dataclasses
import json
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from linocut.attacks.dice import example_seed
from linocut.errors import InputError
from linocut.evaluation import columns, ledger, shards, xz
from linocut.evaluation import header as headers
from linocut.evaluation.rows import Row, from_line, to_line

CONFIGS, SEED, MANY = {"clean": "c", "linf/pgd": "d"}, 7, 10**6


def row(entry="clean", example=0, **more):
    """A row as an evaluation with this seed makes it."""
    known = {"example": example, "label": 1, "entry": entry, "clean": 1, "prediction": 1}
    known |= {"config": CONFIGS[entry], "seed": example_seed(SEED, example, entry)}
    return Row(**known | more)


def spoilt(folder, **tensors):
    """A file of one row in which some tensors are others, or missing where they are None."""
    columns.write(folder, [row()], SEED)
    held = shards.read(folder / columns.NAME) | tensors
    shards.write(folder / columns.NAME, {name: tensor for name, tensor in held.items() if tensor is not None})


def text(content):
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


finite = partial(st.floats, allow_nan=False, allow_infinity=False)
some_rows = st.lists(
    st.builds(
        row,
        entry=st.sampled_from(list(CONFIGS)),
        example=st.integers(0, 2**40),
        label=st.integers(0, 10**6),
        prediction=st.integers(-1, 40_000),
        quantised=st.none() | st.integers(-1, 2**20),
        broken=st.booleans(),
        silent=st.booleans(),
        applicable=st.booleans(),
        loss_start=st.none() | finite(width=32),
        loss_best=st.none() | finite(),
        distance=finite(),
        queries=st.integers(0, 2**33),
        image=st.none() | st.binary(min_size=8, max_size=8).map(bytes.hex),
        measure=st.none() | finite(),
    )
)


@given(rows=some_rows)
def test_no_bit_of_a_row_is_lost(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    columns.write(folder, rows, SEED)
    again = columns.read(folder, MANY)
    assert again == rows
    assert list(map(to_line, again)) == list(map(to_line, rows))  # whole numbers stay whole, 0.0 is not -0.0


@pytest.mark.parametrize("edge", [-(2**15), -(2**15) + 1, 2**15 - 1, 2**15, -(2**31), 2**31 - 1, 2**31])
def test_whole_numbers_at_the_edges_of_their_formats_are_not_taken_for_none(edge, tmp_path):
    rows = [row(quantised=edge), row(example=1)]
    columns.write(tmp_path, rows, SEED)
    assert [each.quantised for each in columns.read(tmp_path, MANY)] == [edge, None]


def test_a_number_that_a_line_has_not_is_not_there_either(tmp_path):
    lines = [to_line(row(distance=float("nan"), milliseconds=float("inf")))]
    rows = [from_line(line) for line in lines]
    columns.write(tmp_path, rows, SEED)
    assert columns.read(tmp_path, MANY) == rows


def test_losses_of_float32_take_four_bytes_and_others_eight(tmp_path):
    third = float(np.float32(1 / 3))
    columns.write(tmp_path, [row(loss_start=third, loss_best=1 / 3), row(example=1)], SEED)
    held = shards.read(tmp_path / columns.NAME)
    assert held["loss_start"].dtype == torch.float32
    assert held["loss_best"].dtype == torch.float64
    assert held.keys().isdisjoint({"seed", "config"})


@pytest.mark.parametrize("change", [{"seed": 5}, {"config": "d"}])
def test_a_row_that_the_others_deny_is_not_packed(change, tmp_path):
    with pytest.raises(InputError, match=r"clean, example 0.*cannot be packed"):
        columns.write(tmp_path, [dataclasses.replace(row(), **change), row(example=1)], SEED)
    assert not list(tmp_path.iterdir())


def test_rows_name_their_entries_whatever_the_order_of_the_header(tmp_path):
    rows = [row(), row("linf/pgd")]
    columns.write(tmp_path, rows, SEED)
    for names in (list(CONFIGS), list(CONFIGS)[::-1]):
        entries = {name: {"config": CONFIGS[name]} for name in names}
        held = headers.make({"n": 1, "seed": SEED}, entries, device=torch.device("cpu"))
        (tmp_path / headers.NAME).write_text(json.dumps(held))
        assert ledger.read_rows(tmp_path) == rows


@pytest.mark.parametrize(
    "spoil",
    [
        {"entry": torch.tensor([1])},
        {"entry": torch.tensor([-1])},
        {"entry": torch.tensor([0, 0])},
        {"entry": torch.tensor(0)},
        {"label": torch.tensor([0.5])},
        {"label": torch.tensor([[1]])},
        {"distance": torch.tensor([1])},
        {"distance": torch.tensor([1.0], dtype=torch.bfloat16)},
        {"imaged": torch.tensor([1]), "image": torch.zeros(1, 8, dtype=torch.uint8)},
        {"imaged": torch.tensor([-1]), "image": torch.zeros(1, 8, dtype=torch.uint8)},
        {"imaged": torch.tensor([0.0]), "image": torch.zeros(1, 8, dtype=torch.uint8)},
        {"imaged": torch.tensor([0]), "image": torch.zeros(1, 8, dtype=torch.int64)},
        {"imaged": torch.tensor([[0]]), "image": torch.zeros(1, 8, dtype=torch.uint8)},
        {"imaged": torch.tensor(0)},
        {"imaged": torch.tensor([0])},
        {"image": torch.zeros(0, 7, dtype=torch.uint8)},
        {"broken": torch.tensor([2], dtype=torch.uint8)},
        {"broken": torch.tensor([1])},
        {"more": torch.tensor([0])},
        {"silent": None},
        {"run": text(b"{")},
        {"run": text(b"[" * 10**5)},
        {"run": text(b'["seed"]')},
        {"run": text(b'{"seed": "7", "entries": {"clean": "c"}}')},
        {"run": text(b'{"seed": 7, "entries": {"clean": 1}}')},
        {"run": text(b'{"seed": 7, "entries": ["clean"]}')},
    ],
)
def test_columns_that_are_no_rows_are_refused(spoil, tmp_path):
    spoilt(tmp_path, **spoil)
    with pytest.raises(InputError, match="damaged"):
        columns.read(tmp_path, MANY)


def test_more_rows_than_the_header_has_room_for_are_refused(tmp_path):
    columns.write(tmp_path, [row(example=example) for example in range(3)], SEED)
    assert len(columns.read(tmp_path, 3)) == 3
    with pytest.raises(InputError, match="too many"):
        columns.read(tmp_path, 2)


@pytest.mark.parametrize("content", [b"", b"rows", xz.compressed(b"rows")])
def test_a_file_that_is_none_is_refused(content, tmp_path):
    (tmp_path / columns.NAME).write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        columns.read(tmp_path, MANY)


def test_a_packed_ledger_without_its_rows_is_refused(tmp_path):
    """Taken for one with no rows yet, its accuracies would be those of nothing."""
    held = headers.make({"n": 1, "seed": SEED}, {"clean": {"config": "c"}}, device=torch.device("cpu"))
    (tmp_path / headers.NAME).write_text(json.dumps(held | {"packed": {}}))
    with pytest.raises(InputError, match=r"without rows\.safetensors\.xz"):
        ledger.read_rows(tmp_path)
