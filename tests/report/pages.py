"""A page as a tree that tests can ask."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

EMPTY = {"meta", "img", "input", "br", "wbr", "link", "hr"}


@dataclass
class Element:
    """An element with its attributes and children, text among them."""

    name: str
    attributes: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    def all(self, name: str | None = None, **wanted: str) -> Iterator["Element"]:
        """The elements below that have this name and these attributes (class_ asks for one class)."""
        for child in self.children:
            if isinstance(child, Element):
                if name in (None, child.name) and child._has(wanted):
                    yield child
                yield from child.all(name, **wanted)

    def first(self, name: str | None = None, **wanted: str) -> "Element":
        return next(self.all(name, **wanted))

    @property
    def text(self) -> str:
        """All text below, with single spaces."""
        return " ".join(" ".join(c if isinstance(c, str) else c.text for c in self.children).split())

    def _has(self, wanted: dict[str, str]) -> bool:
        for key, value in wanted.items():
            held = self.attributes.get(key.rstrip("_").replace("_", "-"))
            if held is None or (value not in held.split() if key == "class_" else held != value):
                return False
        return True


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = [Element("page", {})]

    def handle_starttag(self, tag, attrs):
        made = Element(tag, {key: value or "" for key, value in attrs})
        self.open[-1].children.append(made)
        if tag not in EMPTY:
            self.open.append(made)

    def handle_endtag(self, tag):
        closed = self.open.pop()
        assert closed.name == tag, f"</{tag}> closes <{closed.name}>"

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read(text: str) -> Element:
    """The tree of a page; an element that is not closed in its place fails."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, f"left open: {[element.name for element in reader.open[1:]]}"
    return reader.open[0]
