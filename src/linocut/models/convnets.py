"""Two networks without batch statistics: the MNIST net of Madry et al., and a small one for digits."""

import torch
from torch import nn


class MadryNet(nn.Sequential):
    """Logits of 28x28 images: two 5x5 convolutions (32, 64), each pooled, 1024 hidden units. Paper: MNIST."""

    def __init__(self, num_classes: int, in_channels: int):
        super().__init__(
            nn.Conv2d(in_channels, 32, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64 * 7 * 7, 1024),
            nn.ReLU(),
            nn.Linear(1024, num_classes),
        )


class SmallNet(nn.Module):
    """Logits of images of any size: three 3x3 convolutions, the last of stride 2, averaged to 4x4, 128 hidden units."""

    def __init__(self, num_classes: int, in_channels: int):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 32, 3, padding=1)
        self.conv3 = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.hidden = nn.Linear(64 * 4 * 4, 128)
        self.fc = nn.Linear(128, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv in (self.conv1, self.conv2, self.conv3):
            x = torch.relu(conv(x))
        x = nn.functional.adaptive_avg_pool2d(x, 4)
        return self.fc(torch.relu(self.hidden(x.flatten(1))))
