"""The transform as a preprocessing defence of ART (pip install 'linocut[art]')."""

from collections.abc import Sequence
from typing import Any, Self

import torch
from art.defences.preprocessor.preprocessor import PreprocessorPyTorch

from linocut.transform.modules import EssentialFeatures


class EssentialFeaturesART(PreprocessorPyTorch):
    """Images painted in few colours, for PyTorchClassifier(..., preprocessing_defences=[this]).

    Images are (B,C,H,W) in [0,1], so the classifier needs clip_values=(0, 1). Settings are keyword arguments
    of EssentialFeatures. The gradient is that of its `surrogate`, taken inside forward: ART never asks a
    PyTorch defence for an estimate.
    """

    params = ["settings"]  # noqa: RUF012 - ART's own attribute

    def __init__(
        self, *, apply_fit: bool = True, apply_predict: bool = True, device_type: str = "gpu", **settings: Any
    ) -> None:
        super().__init__(device_type=device_type, is_fitted=True, apply_fit=apply_fit, apply_predict=apply_predict)
        self.settings = settings
        self._check_params()

    @classmethod
    def preset(cls, name: str, image_size: int | Sequence[int] | None = None, **rest: Any) -> Self:
        """The defence of one of the paper's experiments; `rest` goes to the constructor."""
        return cls(**{**EssentialFeatures.preset(name, image_size).settings(), **rest})

    def forward(self, x: torch.Tensor, y: Any | None = None) -> tuple[torch.Tensor, Any | None]:
        """The transformed images and the labels as they came."""
        return self.transform(x), y

    def set_params(self, **settings: Any) -> None:
        """Changes these keyword arguments of EssentialFeatures; one that it does not have is refused.

        `settings`, the one name that ART knows, stands for all of them.
        """
        before, self.settings = self.settings, {**settings.pop("settings", self.settings), **settings}
        try:
            self._check_params()
        except Exception:
            self.settings = before
            raise

    def _check_params(self) -> None:
        """Makes the transform anew, which checks the settings; ART calls this after set_params."""
        self.transform = EssentialFeatures(**self.settings)
