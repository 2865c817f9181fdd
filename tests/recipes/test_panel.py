"""The explaining picture: drawn for every kind of image, and showing what was decided."""

import numpy as np
import pytest
import torch
from PIL import Image

from linocut.recipes.panel import panel
from linocut.recipes.pictures import count_colors, edge_picture, fit, kernel_colors, kernel_picture, palette_strip
from linocut.transform.modules import EssentialFeatures


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 1, 1), (3, 2, 900), (3, 700, 5), (1, 500, 600)])
def test_a_panel_is_drawn_for_every_shape(shape):
    features = EssentialFeatures(backend="torch")
    image = torch.rand(1, *shape, generator=torch.Generator().manual_seed(0))
    drawn = panel(features.explain(image)[0], features.settings(), name="picture.png")
    assert drawn.width == 1300
    assert 500 < drawn.height < 1300
    assert len(drawn.getcolors(drawn.width * drawn.height)) > 10


def test_a_panel_holds_the_output_pixel_by_pixel():
    features = EssentialFeatures(backend="torch")
    [explanation] = features.explain(torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(1)))
    drawn = np.asarray(panel(explanation, features.settings(), name="x"))
    output = (explanation.output.permute(1, 2, 0) * 255).round().to(torch.uint8).numpy()
    enlarged = output.repeat(11, axis=0).repeat(11, axis=1)  # 11 = 380 // 32
    left = 44 + 2 * (380 + 36)
    tops = [y for y in range(len(drawn) - 352) if (drawn[y, left : left + 352] == enlarged[0]).all()]
    assert any((drawn[y : y + 352, left : left + 352] == enlarged).all() for y in tops)


@pytest.mark.parametrize("name", ["two\nlines.png", "caf\udce9.png", "red\x1b[31m.png", ""])
def test_a_name_of_any_letters_is_drawn(name):
    features = EssentialFeatures(backend="torch")
    [explanation] = features.explain(torch.zeros(1, 3, 8, 8))
    assert panel(explanation, features.settings(), name=name).width == 1300


def test_a_name_of_any_length_fits():
    features = EssentialFeatures(backend="torch")
    [explanation] = features.explain(torch.zeros(1, 3, 8, 8))
    short = panel(explanation, features.settings(), name="x")
    assert panel(explanation, features.settings(), name="long name " * 100).size == short.size


def test_a_strip_gives_each_color_its_share():
    palette = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    strip = np.asarray(palette_strip(palette, torch.tensor([25, 50, 25]), (100, 4)))
    colors, counts = np.unique(strip[0], axis=0, return_counts=True)
    assert dict(zip(map(tuple, colors.tolist()), counts.tolist(), strict=True)) == {
        (0, 0, 0): 25,
        (255, 255, 255): 50,
        (255, 0, 0): 25,
    }


def test_edges_are_ink_on_paper():
    response = torch.tensor([[[0.0, 40.0, 80.0, 200.0]]])
    row = np.asarray(edge_picture(response, [20, 40]))[0].astype(int).sum(axis=1)
    assert row[0] > row[1] > row[2] == row[3]


def test_each_kernel_has_its_color():
    index = torch.tensor([[[0, 1, 2]]], dtype=torch.uint8)
    assert [tuple(c) for c in np.asarray(kernel_picture(index, 3))[0].tolist()] == kernel_colors(3)
    assert len(set(kernel_colors(5))) == 5
    assert len(kernel_colors(1)) == 1


def test_small_pictures_are_enlarged_by_whole_numbers():
    assert fit(Image.new("RGB", (28, 20)), 380).size == (28 * 13, 20 * 13)
    assert fit(Image.new("RGB", (1000, 500)), 380).size == (380, 190)


def test_colors_are_counted():
    dice = torch.Generator().manual_seed(1)
    for channels in (1, 3):
        for levels in (1, 2, 5):
            image = torch.randint(0, levels, (channels, 7, 11), dtype=torch.uint8, generator=dice)
            wanted = len(torch.unique(image.flatten(1), dim=1).T)
            assert count_colors(image) == wanted
    assert count_colors(torch.zeros(3, 1, 1, dtype=torch.uint8)) == 1
