"""Settings of a run: what is refused, and by which name."""

import pytest

from linocut.errors import InputError

from .conftest import make_config


@pytest.mark.parametrize(
    "wrong",
    [
        {"architecture": "vgg"},
        {"method": "magic"},
        {"eps": 2.0},
        {"batch_size": 0},
        {"shards": 3},
        {"averaging": 1.0},
        {"start_noise": float("nan")},
        {"learning_rate": 1e308},
        {"warmup": -1.0},
    ],
)
def test_impossible_settings_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=name):
        make_config(**wrong)


def test_assignments_change_fields_and_name_what_is_wrong(config):
    changed = config.with_settings(["epochs=7", "learning_rate=1", "milestones=[2, 5]", "loss=trades"])
    assert (changed.epochs, changed.learning_rate, changed.milestones, changed.loss) == (
        7,
        1.0,
        (2, 5),
        "trades",
    )
    for wrong in (
        *("epoch=7", "epochs", "epochs=many", "flip=1", "seed=null", "flip=null", "milestones=null"),
        *("milestones=[1,null]", 'milestones=["a"]', "milestones=[-1]", "image_size=large", "image_size=true"),
        *("transform=none", 'transform={"class":null,"settings":null}', 'transform={"class":"X","settings":5}'),
        'transform={"class":"FixedCodebook","fit":3,"settings":{}}',
    ):
        with pytest.raises(InputError):
            config.with_settings([wrong])


def test_assignments_may_empty_what_may_be_empty(config):
    changed = config.with_settings(["image_size=6", 'transform={"class": "AdaptiveBlur", "settings": {}}'])
    assert (changed.image_size, changed.transform["class"]) == (6, "AdaptiveBlur")
    emptied = changed.with_settings(["image_size=null", "transform=null"])
    assert (emptied.image_size, emptied.transform) == (None, None)


@pytest.mark.parametrize(("changes", "told"), [({"canvas_store": "int8"}, "use half for l2"), ({"norm": "l1"}, "norm")])
def test_what_l2_does_not_take_is_refused(changes, told):
    with pytest.raises(InputError, match=told):
        make_config(**{"norm": "l2", "eps": 1.5, **changes})
    with pytest.raises(InputError, match="at most 1 in linf"):
        make_config(eps=1.5)
