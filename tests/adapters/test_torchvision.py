"""The v2 transform in torchvision's own pipelines."""

import numpy as np
import pytest
import torch
from PIL import Image

from linocut.errors import InputError
from linocut.transform.apply import apply
from linocut.transform.modules import EssentialFeatures


@pytest.fixture
def v2(torchvision_imports):
    torchvision_imports()
    return pytest.importorskip("torchvision.transforms.v2", exc_type=ImportError)


@pytest.fixture
def pixels():
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 9, 11), dtype=np.uint8))


def test_uint8_single_images_and_labels(v2, pixels):
    from torchvision import tv_tensors

    from linocut.adapters.torchvision import EssentialFeaturesV2

    image, label = v2.Compose([EssentialFeaturesV2()])(tv_tensors.Image(pixels), 3)
    assert isinstance(image, tv_tensors.Image)
    assert (image.dtype, image.shape, label) == (torch.uint8, pixels.shape, 3)
    expected = apply(pixels.permute(1, 2, 0).contiguous().numpy())
    assert np.array_equal(image.permute(1, 2, 0).numpy(), expected)


def test_pillow_images_are_painted_too(v2, pixels):
    from linocut.adapters.torchvision import EssentialFeaturesV2

    array = pixels.permute(1, 2, 0).contiguous().numpy()
    picture, label = v2.Compose([EssentialFeaturesV2(eps=0.1)])(Image.fromarray(array), 3)
    assert isinstance(picture, Image.Image)
    assert np.array_equal(np.asarray(picture), apply(array, eps=0.1))
    assert not np.array_equal(np.asarray(picture), array)
    assert label == 3
    with pytest.raises(InputError, match="mode RGBA"):
        EssentialFeaturesV2()(Image.fromarray(array).convert("RGBA"))


def test_what_is_no_image_passes(v2, pixels):
    from torchvision import tv_tensors

    from linocut.adapters.torchvision import EssentialFeaturesV2

    boxes = tv_tensors.BoundingBoxes([[0, 0, 4, 4]], format="XYXY", canvas_size=(9, 11))
    sample = {
        "image": tv_tensors.Image(pixels),
        "mask": tv_tensors.Mask(torch.arange(99).view(9, 11)),
        "boxes": boxes,
        "label": torch.tensor(2),
    }
    out = EssentialFeaturesV2()(sample)
    assert not torch.equal(out["image"], pixels)
    assert torch.equal(out["mask"], sample["mask"])
    assert torch.equal(out["boxes"], boxes)
    assert out["label"] == 2


def test_floats_batches_and_videos(v2, pixels):
    from torchvision import tv_tensors

    from linocut.adapters.torchvision import EssentialFeaturesV2

    batch = torch.stack([pixels, pixels.flip(2)]).float() / 255
    features = EssentialFeaturesV2.preset("gtsrb")
    expected = EssentialFeatures.preset("gtsrb")(batch)
    assert torch.equal(features(batch), expected)
    assert torch.equal(features(batch[0]), expected[0])
    video = features(tv_tensors.Video(batch[None]))
    assert isinstance(video, tv_tensors.Video)
    assert torch.equal(video.as_subclass(torch.Tensor), expected[None])


def test_the_module_itself_works_in_compose(v2, pixels):
    batch = pixels[None].float() / 255
    assert torch.equal(v2.Compose([EssentialFeatures()])(batch), EssentialFeatures()(batch))


def test_it_trains_through(v2, pixels):
    from linocut.adapters.torchvision import EssentialFeaturesV2

    leaf = (pixels[None].float() / 255).requires_grad_()
    EssentialFeaturesV2()(leaf).sum().backward()
    assert leaf.grad.abs().sum() > 0


def test_a_matrix_is_no_image(v2):
    from torchvision import tv_tensors

    from linocut.adapters.torchvision import EssentialFeaturesV2

    image = tv_tensors.Image(torch.zeros(2, 3, 3))
    with pytest.raises(InputError, match="channels"):
        EssentialFeaturesV2()(image)
