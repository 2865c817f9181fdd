"""The demonstration page stands by itself, and says what was measured."""

import html
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="the photographs come with scikit-learn: pip install 'linocut[data]'")

from linocut.recipes import demo, demo_photographs
from linocut.recipes.reproduce.stamps import State

from .reproduce.conftest import Notes
from .reproduce.tiny import shorten, tiny


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    undo = shorten()
    reproduction = demo.prepare_demo(tmp_path_factory.mktemp("demo"), scale=tiny, rows=("baseline", "acab-retrained"))
    assert set(reproduction.states.values()) == {State.DUE}
    reproduction.carry_out(Notes())
    text = demo.write_page(reproduction).read_text(encoding="utf-8")
    undo()
    return text


class Reader(HTMLParser):
    """Collects every address the page names, and whether its tags close."""

    def __init__(self):
        super().__init__()
        self.addresses, self.open, self.pictures = [], [], 0

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "action")]
        self.pictures += tag == "img"
        if tag not in ("img", "meta", "input", "link", "br"):
            self.open.append(tag)
        if tag == "img":
            assert dict(attributes).get("alt")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_names_no_address_but_its_own_pictures(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.pictures >= 14
    own = [address for address in reader.addresses if not address.startswith("data:image/")]
    assert own == ["report/report.html"]
    assert "http:" not in page
    assert "https:" not in page
    assert "@import" not in page
    assert not re.search(r"url\((?!['\"]?data:)", page)


def test_nothing_is_left_to_fill_in(page):
    text = re.sub(r"base64,[A-Za-z0-9+/=]+", "", page)
    assert "$" not in text
    assert len(page) < 5_000_000


def test_the_page_shows_a_command_that_checks_it(page):
    told = html.unescape(re.search(r"<code>(linocut verify .*?)</code>", page)[1])
    ledger = Path(shlex.split(told)[-1])
    assert ledger.is_absolute()
    assert (ledger / "header.json").exists()


def test_what_scrolls_can_be_reached_by_keyboard(page):
    assert re.search(r"<div class=.scroll. tabindex=.0. role=.region. aria-label=.[^'\"]+.>", page)


def test_the_page_says_the_catch(page):
    assert "empirical defence" in page
    assert "worst case" in page
    assert "The verdict" in page


def test_the_table_has_a_row_a_network_with_intervals_and_checks(page):
    table = re.search(r"<table>(.*)</table>", page, re.S)[1]
    assert table.count("<tr>") == 3
    assert "ATTA + AC+AB, retrained" in table
    assert len(re.findall(r"<small>[\d.]+–[\d.]+</small>", table)) == 2 * len(re.findall(r"<td[^>]*>\d", table)) / 2
    assert "checks<br>that fail" in table


def test_the_number_of_colours_is_that_of_the_transform(page):
    shown = [int(n) for n in re.findall(r"after: (\d+) colours", page)]
    assert len(shown) == 2
    assert [page.count(f"The {n} colours") for n in shown] == [shown.count(n) for n in shown]


def test_without_scikit_learn_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(demo_photographs.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(demo_photographs.InputError, match="pip install"):
        demo_photographs.photographs()
