"""What is to be made of one row: a network by its config, and how it will be judged."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from linocut.training.config import TrainingConfig

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """One evaluation: a suite on the first n test images of the fixed order (all if None).

    precision and compile: of the copy on which attacks search; the network itself decides, in float32.
    """

    suite: str
    n: int | None
    batch_size: int
    eps: float | None = None
    precision: Precision = "float32"
    compile: bool = False


@dataclass(frozen=True, kw_only=True)
class Work:
    """One row of one data set with one seed.

    data_set: what was asked for; config.data_set is what it is trained on, which digits may stand in for.
    train_images: so many of the training images, spread evenly; all if None. note: what a reader must be told.
    """

    data_set: str
    row: str
    config: TrainingConfig
    judgements: tuple[Judgement, ...]
    train_images: int | None = None
    note: str = ""

    @property
    def place(self) -> str:
        """Its folder below the folder of the reproduction."""
        return f"{self.data_set}/{self.row}/seed-{self.config.seed}"

    @property
    def is_fixed(self) -> bool:
        """Whether it needs a codebook of the training images before anything else."""
        return self.config.transform is not None and "fit" in self.config.transform

    @property
    def comes_later(self) -> bool:
        """Whether its transform is put before a network that was trained without one."""
        return self.config.transform is not None and self.config.transform_at == "test"

    def trained_with(self, row: str, changes: list[str]) -> "Work":
        """The work of a row that changes settings of the training; where a radius of its own is judged, it follows.

        The judged radius is that of L-inf, so one that was trained for in L2 says nothing about it.
        """
        config = self.config.with_settings(changes)
        config = replace(config, recipe="+".join([config.recipe, *changes]))
        follows = config.norm == "linf"
        judged = tuple(
            replace(each, eps=config.eps) if follows and each.eps is not None else each for each in self.judgements
        )
        return replace(self, row=row, config=config, judgements=judged)

    def with_config(self, **changes: Any) -> "Work":
        """The same with some settings of the training changed."""
        return replace(self, config=replace(self.config, **changes))
