"""ResNet-34 at full and at small resolution, and the pre-activation ResNet-18 for images of about 32x32.

Parameters carry the names most published checkpoints use, so that those can be imported as they are.
"""

import torch
from torch import nn


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with BatchNorm, added to their input before the last ReLU."""

    def __init__(self, in_width: int, width: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(in_width, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if in_width != width or stride != 1:
            shortcut = nn.Conv2d(in_width, width, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        return torch.relu(shortcut + self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))))


class PreActBlock(nn.Module):
    """Two 3x3 convolutions, each after its BatchNorm and ReLU, added to their input."""

    def __init__(self, in_width: int, width: int, stride: int):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_width)
        self.conv1 = nn.Conv2d(in_width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.shortcut = None
        if in_width != width or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(in_width, width, 1, stride=stride, bias=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        active = torch.relu(self.bn1(x))
        shortcut = x if self.shortcut is None else self.shortcut(active)
        return shortcut + self.conv2(torch.relu(self.bn2(self.conv1(active))))


def four_stages(block: type[BasicBlock] | type[PreActBlock], depths: tuple[int, ...]) -> list[nn.Sequential]:
    """Stages of width 64, 128, 256 and 512; every stage but the first halves the resolution."""
    stages, in_width = [], 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        first = block(in_width, width, 1 if stage == 0 else 2)
        stages.append(nn.Sequential(first, *(block(width, width, 1) for _ in range(depth - 1))))
        in_width = width
    return stages


class ResNet34(nn.Module):
    """Logits; the full stem (7x7, pooled) divides the resolution by 4, the small one (3x3) keeps it."""

    def __init__(self, num_classes: int, in_channels: int, *, small: bool):
        super().__init__()
        size, stride = (3, 1) if small else (7, 2)
        self.conv1 = nn.Conv2d(in_channels, 64, size, stride=stride, padding=size // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1, self.layer2, self.layer3, self.layer4 = four_stages(BasicBlock, (3, 4, 6, 3))
        self.fc = nn.Linear(512, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean(dim=(2, 3)))


class PreActResNet18(nn.Module):
    """Logits by four stages of two pre-activation blocks, with a last BatchNorm before the average."""

    def __init__(self, num_classes: int, in_channels: int):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 64, 3, padding=1, bias=False)
        self.layer1, self.layer2, self.layer3, self.layer4 = four_stages(PreActBlock, (2, 2, 2, 2))
        self.bn = nn.BatchNorm2d(512)
        self.linear = nn.Linear(512, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.conv1(x)))))
        return self.linear(torch.relu(self.bn(x)).mean(dim=(2, 3)))
