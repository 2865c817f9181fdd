"""Paths told so that they mean something elsewhere: no folder of the machine on which a result was made is left."""

import html
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path, PurePath

OUT, DATA, RESULTS = "OUT", "DATA", "RESULTS"


class Wording:
    """Tells what lies below the folders of a reproduction from the folder of results, and data roots as DATA.

    outs: every name of the reproduction's folder, and of the folder of results; roots: those of data folders;
    sources: those of results whose networks were taken over.
    """

    def __init__(self, outs: Iterable[Path | str], roots: Iterable[Path | str], sources: Iterable[Path | str] = ()):
        kinds = (outs, OUT), (roots, DATA), (sources, RESULTS)
        names = [(str(place), told) for places, told in kinds for place in places]
        wider = [(str(Path(name).resolve()), told) for name, told in names]
        # The longest first: one of them may lie below another.
        self.names = sorted({pair for pair in names + wider if len(pair[0]) > 1}, key=lambda pair: -len(pair[0]))

    def text(self, text: str) -> str:
        """A text with every such path retold."""
        for name, told in self.names:
            for written in dict.fromkeys((name, html.escape(name))):
                below = "" if told == OUT else f"{told}/"
                text = text.replace(f"{written}/", below).replace(written, told)
        return text

    def word(self, word: str) -> str:
        """One word of a command; of a path that lies anywhere else only its last part is left."""
        option, equals, value = word.partition("=")
        if option.startswith("--") and equals:
            return f"{option}={self.word(value)}"
        for name, told in self.names:
            if word == name:
                return told
            if word.startswith(f"{name}/"):
                return word[len(name) + 1 :] if told == OUT else f"{told}/{word[len(name) + 1 :]}"
        return PurePath(word).name or word if PurePath(word).is_absolute() else word

    def command(self, typed: Sequence[str]) -> list[str]:
        """A command as it was typed, its program told by name alone; what it took over are the results themselves."""
        words = [RESULTS if before == "--published" else self.word(word) for before, word in pairwise(typed)]
        return ["linocut", *words]


def sources_of(commands: Iterable[Sequence[str] | None]) -> set[str]:
    """The folders of results that commands took networks from; what is no whole path names no machine's folder."""
    typed = [list(words or []) for words in commands]
    named = {after for words in typed for word, after in pairwise(words) if word == "--published"}
    named |= {word.partition("=")[2] for words in typed for word in words if word.startswith("--published=")}
    return {name for name in named if PurePath(name).is_absolute()}


def roots_of(repeats: Iterable[Sequence[str] | None]) -> set[str]:
    """The data folders that commands name."""
    commands = [list(words or []) for words in repeats]
    return {after for words in commands for word, after in pairwise(words) if word == "--root"}
