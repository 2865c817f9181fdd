"""Every example on docs/adapters.md runs as it stands there."""

import re
from pathlib import Path

import pytest
import torch

PAGE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
NEEDS = {
    "Foolbox": "foolbox",
    "ART": "art",
    "AutoAttack": "pyautoattack",
    "AutoAttack from its authors": "autoattack",
    "torchattacks": "torchattacks",
    "torchvision": "torchvision",
    "ONNX": "onnxruntime",
    "NumPy and Pillow": "numpy",
    "Folders in Hugging Face's style": "safetensors",
}


def code(section):
    (found,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    return found


FIRST, *SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
EXAMPLES = {section.split("\n")[0]: code(section) for section in SECTIONS if "```" in section}


@pytest.mark.filterwarnings("ignore")  # of the other libraries
@pytest.mark.parametrize("title", EXAMPLES)
def test_example(title, tmp_path, monkeypatch, torchvision_imports):
    pytest.importorskip("sklearn", reason="the page's digits")
    if title == "torchvision":
        torchvision_imports()
    pytest.importorskip(NEEDS[title], exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code(FIRST), names)
    exec(EXAMPLES[title], names)
    if "robust_accuracy" in names:
        images, model, labels = names["images"], names["model"], names["labels"]
        adversarial = torch.as_tensor(names["adversarial"])
        assert float((adversarial - images).abs().max()) <= 0.3 + 1e-6
        right = (model(adversarial).argmax(1) == labels).float().mean().item()
        assert names["robust_accuracy"] == pytest.approx(right)
    elif title == "torchvision":
        assert names["label"] == 7
        assert type(names["image"]).__name__ == "Image"
    elif title == "ONNX":
        assert torch.allclose(torch.from_numpy(names["logits"]), names["model"](names["images"]), atol=1e-5)
    elif title == "NumPy and Pillow":
        assert len({tuple(c) for c in names["flatter"].reshape(-1, 3).tolist()}) < 1024
    else:
        assert torch.equal(names["again"](names["images"]), names["model"](names["images"]))


def test_every_tool_has_an_example():
    assert set(EXAMPLES) == set(NEEDS)
    assert all(len(example.strip().split("\n")) <= 12 for example in EXAMPLES.values())
