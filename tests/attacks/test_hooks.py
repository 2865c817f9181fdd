import pytest
import torch

from linocut.attacks.hooks import NotApplicable, finest_of, hook, judge_of, own_palettes


class Record:
    def __init__(self, colors):
        self.palette = torch.tensor(colors)


class Model:
    answer = 7

    class transform:
        @staticmethod
        def explain(images):
            return [Record([[0.1], [0.9], [0.5]][: i + 1]) for i in range(len(images))]

    def frozen(self, images):
        return len(images)


def test_a_hook_is_a_method_of_that_name():
    assert hook(Model(), "frozen")(torch.zeros(3)) == 3
    for missing in ("undefended", "answer"):
        with pytest.raises(NotApplicable, match=missing):
            hook(Model(), missing)


def test_palettes_of_different_lengths_are_padded_and_marked():
    colors, exists = own_palettes(Model(), torch.zeros(3, 1, 2, 2))
    assert colors.shape == (3, 3, 1)
    assert exists.tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert colors[2].flatten().tolist() == pytest.approx([0.1, 0.9, 0.5])
    assert own_palettes(Model(), torch.zeros(0, 1, 2, 2))[0].shape == (0, 0, 1)


def test_a_transform_without_a_palette_is_not_applicable():
    class Blurring:
        @staticmethod
        def explain(images):
            return [type("Record", (), {"palette": None}) for _ in images]

    with pytest.raises(NotApplicable, match="no palette"):
        own_palettes(type("Model", (), {"transform": Blurring})(), torch.zeros(2, 1, 2, 2))


def test_a_model_whose_transform_cannot_explain_is_not_applicable():
    for model in (lambda x: x, type("Bare", (), {"transform": None})()):
        with pytest.raises(NotApplicable, match="explain"):
            own_palettes(model, torch.zeros(1, 1, 2, 2))


def test_a_strangers_method_is_no_judge():
    class Stranger:
        def judge(self, images, threshold):
            raise AssertionError

        finest = judge

    stranger = Stranger()
    assert judge_of(stranger) is None
    assert finest_of(stranger) is stranger
