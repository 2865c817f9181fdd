"""How long a batch takes is reckoned from a few images where the whole would take long."""

import pytest
import torch

from linocut.recipes.reproduce.calibration import Calibration


class Told(Calibration):
    """A turn says by itself how long it took."""

    def _clock(self, turn):
        return turn()


def timed(step, image, size, tmp_path):
    return Told(torch.device("cpu"), tmp_path)._timed(lambda n: lambda: step + n * image, size)


@pytest.mark.parametrize(
    ("step", "image", "size", "whole"),
    [
        (0.05, 0.0005, 512, True),  # many weights, cheap images: 4 of them would say 6.7 s for what takes 0.3
        (0.001, 0.001, 512, True),
        (0.1, 0.05, 512, False),
        (6.0, 0.1, 3, True),  # no fewer images to look at
        (6.0, 0.1, 10, False),
    ],
)
def test_the_time_of_a_batch_is_right_whatever_its_images_cost(step, image, size, whole, tmp_path):
    found = timed(step, image, size, tmp_path)
    assert found.whole == pytest.approx(step + size * image)
    assert found.timed == whole
