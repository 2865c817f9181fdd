"""The steps that end in a network: fit a codebook, train, or put a transform before a trained network."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from linocut.models import Defended, load, save
from linocut.models.store import fit_transform, read_card
from linocut.recipes.reproduce.inheritance import TAKEN_OVER, lies_there, take_over
from linocut.recipes.reproduce.interruption import Stopped
from linocut.recipes.reproduce.step import Step, Watch, Workshop
from linocut.recipes.reproduce.work import Work
from linocut.training import train
from linocut.training.config import TrainingConfig
from linocut.training.finish import measured, origin
from linocut.training.fitting import rebuilt
from linocut.training.loop import Progress
from linocut.transform.modules import FixedCodebook

HOW_NOT_WHAT = ("compile", "channels_last")  # they change how quickly a network is made, not which


class FitCodebook(Step):
    """The fixed codebook of a row's training images."""

    def __init__(self, work: Work):
        super().__init__(f"{work.place}/codebook", "fit the codebook")
        self.work = work

    def wish(self) -> dict[str, Any]:
        return {"transform": self.front}

    def inputs(self, shop: Workshop) -> dict[str, Any]:
        return {**self.wish(), "data": shop.shelf.train(self.work).sha256}

    @property
    def front(self) -> dict[str, Any]:
        """The transform as the config wishes for it."""
        assert self.work.config.transform is not None
        return dict(self.work.config.transform)

    def file(self, shop: Workshop) -> Path:
        return shop.out / self.work.place / "codebook.json"

    def pieces(self, shop: Workshop) -> list[Path]:
        return [self.file(shop)]

    def run(self, shop: Workshop, watch: Watch) -> None:
        images = shop.shelf.train(self.work)
        wish = self.front
        book = fit_transform(wish["class"], images, wish["fit"], wish["settings"], source=self.work.config.recipe)
        book.save(self.file(shop))

    def filled(self, shop: Workshop) -> dict[str, Any]:
        """The transform with the codes that were fitted in place of the wish."""
        book = FixedCodebook.load(self.file(shop))
        return {"class": "FixedCodebook", "settings": {**book.settings(), **self.front["settings"]}}


class Model(Step):
    """A step that leaves DIR/PLACE/model."""

    def __init__(self, work: Work, title: str, *needs: Step):
        super().__init__(f"{work.place}/model", title, needs)
        self.work = work

    @property
    def codebook(self) -> FitCodebook | None:
        return next((need for need in self.needs if isinstance(need, FitCodebook)), None)

    def folder(self, shop: Workshop) -> Path:
        return shop.out / self.work.place / "model"

    def pieces(self, shop: Workshop) -> list[Path]:
        return [self.folder(shop)]

    def wish(self) -> dict[str, Any]:
        fields = self.work.config.to_json()
        return {"config": {name: value for name, value in fields.items() if name not in HOW_NOT_WHAT}}

    def inputs(self, shop: Workshop) -> dict[str, Any]:
        shelf = shop.shelf
        return {**self.wish(), "train": shelf.train(self.work).sha256, "test": shelf.test(self.work).sha256}

    def config(self, shop: Workshop) -> TrainingConfig:
        """The config with the codes that were fitted, where it paints with a fixed codebook."""
        if self.codebook is None:
            return self.work.config
        return replace(self.work.config, transform=self.codebook.filled(shop))


class Train(Model):
    """A network trained by its config; SIGTERM lets the step finish and saves."""

    def __init__(self, work: Work, *needs: Step):
        how = "naturally" if work.config.method == "natural" else "by ATTA"
        epochs = f"{work.config.epochs} epoch{'s' * (work.config.epochs != 1)}"
        super().__init__(work, f"train {work.config.architecture} {how}, {epochs}", *needs)

    def leavings(self, shop: Workshop) -> list[Path]:
        folder = shop.out / self.work.place
        named = [folder / name for name in ("config.json", "log.jsonl", "curves.png", "checkpoints", "tensorboard")]
        return named + list(folder.glob("canvas-*.work"))

    def scaffolding(self, shop: Workshop) -> list[Path]:
        return [shop.out / self.work.place / "checkpoints"]  # gigabytes, at the paper's size

    def can_go_on(self, shop: Workshop) -> bool:
        try:
            held = json.loads((shop.out / self.work.place / "config.json").read_bytes())
        except FileNotFoundError:
            return True  # stopped before its first moment
        except (OSError, ValueError):
            return False
        return isinstance(held, dict) and not self.config(shop).changes(held)

    def is_published(self, shop: Workshop) -> bool:
        """Whether the network can be taken over. The codebook, where it has one, must have been fitted."""
        if shop.published is None:
            return False
        train, test = shop.shelf.train(self.work).sha256, shop.shelf.test(self.work).sha256
        return lies_there(shop.published, self.work.place, self.config(shop), train=train, test=test, free=HOW_NOT_WHAT)

    def run(self, shop: Workshop, watch: Watch) -> None:
        def tell(now: Progress) -> None:
            words = f"epoch {now.epoch + 1} of {self.work.config.epochs}, loss {now.loss:.3f}"
            watch(now.step / now.total_steps, words)

        if shop.published is not None and self.is_published(shop):
            take_over(shop.published, shop.out, self.work.place)
            watch(1.0, TAKEN_OVER)
            return
        images, test = shop.shelf.train(self.work), shop.shelf.test(self.work)
        folder = shop.out / self.work.place
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="dropped the torn last line")  # a kill leaves one; it is no news
            outcome = train(
                self.config(shop), images, folder, test_images=test, device=shop.device, resume=True, watch=tell
            )
        if outcome.signal is not None:
            raise Stopped(outcome.signal)


class PutBefore(Model):
    """A trained network behind a transform that it has not seen in training (the paper's "pretrained")."""

    def __init__(self, work: Work, base: "Model", *needs: Step):
        super().__init__(work, f"put it before the network of {base.work.row}", base, *needs)
        self.base = base

    def run(self, shop: Workshop, watch: Watch) -> None:
        config, source = self.config(shop), self.base.folder(shop)
        before = read_card(source).card
        defended = Defended(rebuilt(config), load(source).model).eval()
        made = origin(config, before.recipe["train_sha256"], shop.device)
        card = replace(
            before,
            recipe={**made, "network_of": before.recipe["recipe"]},
            metrics=measured(defended, shop.shelf.test(self.work), shop.device),
        )
        save(self.folder(shop), defended.cpu(), card)
