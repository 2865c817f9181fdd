"""Which files are read and which are written: settled, and checked for clashes, before any work starts."""

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from linocut.data.images import image_suffixes
from linocut.errors import InputError

PANEL_FOLDER = "explained"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One picture: where it is read, where its output goes, and its explaining panel where one is wanted."""

    source: Path
    target: Path
    panel: Path | None = None


def plan(inputs: Sequence[str], out: Path, *, explain: bool = False) -> list[Job]:
    """One job for each file that the inputs name; folders and globs keep their structure below `out`.

    Two sources that would get one name keep their own suffix in it (a.jpg.png, a.bmp.png); if that does not tell
    them apart the whole plan is refused, as it is when `out` lies where inputs are read.
    """
    found: dict[Path, Path] = {}
    for source, relative in _expand(inputs):
        # By its own name, not by what a link of that name points to: both are somebody's files.
        found.setdefault(source.parent.resolve() / source.name, relative)
    names = _distinct(found)
    _refuse_input_folder(out, names, [folder for given in inputs for folder in _folders(given)])
    if explain and any(name.parts[0].casefold() == PANEL_FOLDER for name in names.values() if len(name.parts) > 1):
        raise InputError(f"the inputs hold a folder {PANEL_FOLDER!r}, which is where panels go: rename it")
    return [
        Job(source=source, target=out / name, panel=out / PANEL_FOLDER / name if explain else None)
        for source, name in sorted(names.items(), key=lambda item: item[1])
    ]


def as_one_line(name: str) -> str:
    """A file's name as it can be printed or drawn: line breaks, control codes and stray bytes become '?'."""
    return "".join(character if character.isprintable() else "?" for character in name)


def find(inputs: Sequence[str]) -> list[Path]:
    """The image files that these files, folders and patterns name, each once."""
    return list(dict.fromkeys(source for source, _ in _expand(inputs)))


def passed_over(inputs: Sequence[str]) -> list[Path]:
    """The other files of the folders that are named: by their suffix no images that can be read."""
    folders = dict.fromkeys(folder for given in inputs for folder in _folders(given))
    return list(dict.fromkeys(path for folder in folders for path in _visible_below(folder) if not _is_image(path)))


def unfollowed(inputs: Sequence[str]) -> list[Path]:
    """The links to folders, below those that are named, that are not followed and lead to what is not read anyway."""
    folders = dict.fromkeys(folder for given in inputs for folder in _folders(given))
    links = dict.fromkeys(link for folder in folders for link in _links_below(folder))
    return [link for link in links if not any(link.resolve().is_relative_to(folder) for folder in folders)]


def told_of(links: Sequence[Path]) -> str:
    """A line on links that were not followed, and what to do; at most five are named."""
    names = ", ".join(as_one_line(str(link)) for link in links[:5])
    rest = f" and {len(links) - 5} more" if len(links) > 5 else ""
    return f"links to folders are not followed: {names}{rest}; name such a folder itself to read it"


def _expand(inputs: Sequence[str]) -> list[tuple[Path, Path]]:
    """(file, its path below what was given) of all inputs together; at least one."""
    found = [pair for given in inputs for pair in _expand_one(given)]
    if not found:
        raise InputError(f"no image files in {', '.join(inputs)} (looked for {', '.join(sorted(image_suffixes()))})")
    return found


def _expand_one(given: str) -> Iterator[tuple[Path, Path]]:
    """(file, its path below what was given) for a file, a folder or a glob."""
    path = Path(given)
    if path.is_dir():
        yield from ((file, file.relative_to(path)) for file in _files_below(path))
    elif path.exists():
        yield path, Path(path.name)
    elif glob.has_magic(given):
        base = _folder_before_the_pattern(path)
        matches = [Path(match) for match in sorted(glob.glob(given, recursive=True))]
        if not matches:
            raise InputError(f"{given}: nothing matches this pattern")
        for match in matches:
            for file in _files_below(match) if match.is_dir() else [match]:
                yield file, file.relative_to(base)
    else:
        raise InputError(f"{given}: no such file, folder or pattern")


def _folders(given: str) -> list[Path]:
    """The folders that are read with all below them."""
    named = [given] if Path(given).exists() else glob.glob(given, recursive=True)
    return [Path(name).resolve() for name in named if Path(name).is_dir()]


def _files_below(folder: Path) -> list[Path]:
    """The image files of a folder and all folders in it, by suffix, in a fixed order; hidden ones are left out."""
    return [path for path in _visible_below(folder) if _is_image(path)]


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in image_suffixes()


def _visible_below(folder: Path) -> Iterator[Path]:
    for place, names, contents in os.walk(folder):
        names[:] = sorted(name for name in names if not name.startswith("."))
        yield from (Path(place, name) for name in sorted(contents) if not name.startswith("."))


def _links_below(folder: Path) -> Iterator[Path]:
    for place, names, _ in os.walk(folder):
        names[:] = sorted(name for name in names if not name.startswith("."))
        yield from (link for name in names if (link := Path(place, name)).is_symlink())


def _folder_before_the_pattern(path: Path) -> Path:
    plain = []
    for part in path.parts[:-1]:
        if glob.has_magic(part):
            break
        plain.append(part)
    return Path(*plain)


def _refuse_input_folder(out: Path, names: dict[Path, Path], given_folders: list[Path]) -> None:
    """Outputs never land beside inputs, nor where the next run would take them for inputs."""
    there = out.resolve()
    inside = next((folder for folder in given_folders if folder in (there, *there.parents)), None)
    read = {source.parent for source in names}
    beside = next((place for name in names.values() if (place := (there / name).parent.resolve()) in read), None)
    if inside or beside:
        raise InputError(f"--out {out} would write into {inside or beside}, where inputs are read: give another folder")


def _distinct(found: dict[Path, Path]) -> dict[Path, Path]:
    """Each source's path below the output folder. Names that differ only in case count as one: some disks say so."""
    short = {source: relative.with_suffix(".png") for source, relative in found.items()}
    clash = {key for key, n in Counter(_key(path) for path in short.values()).items() if n > 1}
    names = {
        source: found[source].with_name(found[source].name + ".png") if _key(path) in clash else path
        for source, path in short.items()
    }
    owner: dict[str, Path] = {}
    for source, name in names.items():
        other = owner.setdefault(_key(name), source)
        if other != source:
            raise InputError(
                f"{other} and {source} would both be written as {name}: "
                "rename one, give a folder that holds both apart, or run twice with two output folders"
            )
    return names


def _key(path: Path) -> str:
    return str(path).casefold()
