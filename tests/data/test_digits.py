"""The embedded digits: no network, no folder, always the same."""

from linocut.data import load


def test_every_digit_is_in_one_split_and_the_scale_is_used(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    train, test = load("digits"), load("digits", split="test")
    assert (len(train), len(test)) == (1438, 359)
    assert train.pixels.shape[1:] == (1, 28, 28)
    assert (int(train.pixels.min()), int(train.pixels.max())) == (0, 255)
    shares = test.labels.bincount() / (test.labels.bincount() + train.labels.bincount())
    assert (shares - 0.2).abs().max() < 0.01
    assert not list(tmp_path.iterdir())


def test_the_split_follows_the_seed_and_the_size_is_a_choice():
    assert load("digits").sha256 == load("digits").sha256 != load("digits", seed=1).sha256
    assert load("digits", image_size=32).pixels.shape[1:] == (1, 32, 32)
