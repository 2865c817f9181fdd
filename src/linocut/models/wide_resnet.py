"""Wide residual networks without dropout, for images of about 32x32.

Parameters carry the names most published checkpoints use (block1.layer.0.bn1, convShortcut, fc), so that
those can be imported as they are.
"""

import torch
from torch import nn


class WideBlock(nn.Module):
    """Two 3x3 convolutions, each after its BatchNorm and ReLU, added to their input."""

    def __init__(self, in_width: int, width: int, stride: int):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_width)
        self.conv1 = nn.Conv2d(in_width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.convShortcut = None
        if in_width != width or stride != 1:
            self.convShortcut = nn.Conv2d(in_width, width, 1, stride=stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        active = torch.relu(self.bn1(x))
        shortcut = x if self.convShortcut is None else self.convShortcut(active)
        return shortcut + self.conv2(torch.relu(self.bn2(self.conv1(active))))


class Stage(nn.Module):
    """`depth` blocks of one width, the first of which may halve the resolution."""

    def __init__(self, depth: int, in_width: int, width: int, stride: int):
        super().__init__()
        first = WideBlock(in_width, width, stride)
        self.layer = nn.Sequential(first, *(WideBlock(width, width, 1) for _ in range(depth - 1)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class WideResNet(nn.Module):
    """Logits by three stages of width 16, 32 and 64 times `widen`; `depth` counts layers and is 6n + 4."""

    def __init__(self, depth: int, widen: int, num_classes: int, in_channels: int):
        super().__init__()
        blocks, rest = divmod(depth - 4, 6)
        assert rest == 0, "a wide ResNet has 6n + 4 layers"
        self.conv1 = nn.Conv2d(in_channels, 16, 3, padding=1, bias=False)
        self.block1 = Stage(blocks, 16, 16 * widen, 1)
        self.block2 = Stage(blocks, 16 * widen, 32 * widen, 2)
        self.block3 = Stage(blocks, 32 * widen, 64 * widen, 2)
        self.bn1 = nn.BatchNorm2d(64 * widen)
        self.fc = nn.Linear(64 * widen, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block3(self.block2(self.block1(self.conv1(x))))
        return self.fc(torch.relu(self.bn1(x)).mean(dim=(2, 3)))
