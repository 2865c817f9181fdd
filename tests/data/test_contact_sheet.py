"""The sheet shows the right picture above the right name."""

import numpy as np
import torch

from linocut.data import load
from linocut.data.contact_sheet import CELL, GAP, LINE, choose_samples, contact_sheet


def test_samples_cover_every_class_in_order_and_follow_the_seed():
    images = load("digits")
    chosen = choose_samples(images)
    assert images.labels[chosen].bincount().tolist() == [6] * 10
    assert images.labels[chosen].tolist() == sorted(images.labels[chosen].tolist())
    assert chosen == choose_samples(images) != choose_samples(images, seed=1)


def test_every_picture_stands_in_its_cell_and_every_row_below_the_other():
    first = torch.arange(3, dtype=torch.uint8).view(3, 1, 1, 1).expand(3, 1, 4, 4) * 50
    sheet = np.asarray(contact_sheet([("before", first), ("after", 255 - first)], ["a", "b", "c"], columns=2))
    for index, level in enumerate((0, 50, 100)):
        left = GAP + (index % 2) * (CELL + GAP)
        top = LINE + GAP + (index // 2) * (2 * CELL + 2 * LINE + GAP)
        assert set(sheet[top : top + CELL, left : left + CELL].ravel()) == {level}
        assert set(sheet[top + CELL : top + 2 * CELL, left : left + CELL].ravel()) == {255 - level}
        caption = sheet[top + 2 * CELL : top + 2 * CELL + LINE, left : left + CELL]
        assert caption.min() < 100, "its name is written below"


def test_a_long_name_stays_under_its_own_picture():
    cell = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    sheet = np.asarray(contact_sheet([("x", cell)], ["end of no overtaking by lorries", "W" * 100]))
    captions = sheet[LINE + GAP + CELL :]
    assert captions[:, :GAP].min() == captions[:, GAP + CELL : GAP + CELL + GAP].min() == 255
    assert captions[LINE : 2 * LINE, GAP : GAP + CELL].min() < 100, "the name goes on in a second line"
