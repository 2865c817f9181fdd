"""The page in a real browser: loads quietly, sorts, filters, toggles; and without scripts it is all there."""

import chromium
import pytest
from report_cases import card, made_up

from linocut.report import write

pytestmark = pytest.mark.skipif(chromium.executable() is None, reason="no Chromium on this machine")

NAMES = "[...document.querySelectorAll('#overview tbody tr')].filter(r => !r.hidden).map(r => r.dataset.model)"
LEDGERS = "[...document.querySelectorAll('details.ledger')].filter(d => !d.hidden).length"


def choose(control, value):
    return (
        f"(c => {{ c.value = {value!r}; c.dispatchEvent(new Event('input')); c.dispatchEvent(new Event('change')); }})"
        f"(document.getElementById({control!r}))"
    )


def click(column):
    return f"document.querySelectorAll('#overview th[data-sort] button')[{column}].click()"


@pytest.fixture(scope="module")
def address(ledgers, tmp_path_factory):
    """A page of the two real ledgers and three made-up ones of another data set."""
    folder = tmp_path_factory.mktemp("browser")
    for name, stands in (("z", 70), ("a", 5), ("m", 30)):
        counts = {"linf": stands}
        made_up(folder / name, published=counts, worst=counts, the_card=card(name, None), data="mnist")
    return write([ledgers, *(folder / name for name in "zam")], folder / "out").as_uri()


def test_loads_without_errors_or_requests_then_sorts_filters_and_toggles(address):
    with chromium.Page(address) as page:
        assert page.requests() == [address]
        assert page.value(NAMES) == ["test/defended", "test/plain", "z", "a", "m"]

        page.value(click(0))  # by model
        assert page.value(NAMES) == ["a", "m", "test/defended", "test/plain", "z"]
        page.value(click(0))
        assert page.value(NAMES) == ["z", "test/plain", "test/defended", "m", "a"]
        page.value(click(5))  # L-inf worst case: numbers begin with the largest
        values = page.value("[...document.querySelectorAll('#overview tbody tr')].map(r => +r.cells[5].dataset.value)")
        assert values == sorted(values, reverse=True)
        page.value(click(7))  # L2 worst case, which three do not have: they come last both ways
        page.value(click(7))
        assert set(page.value(NAMES)[2:]) == {"z", "a", "m"}
        assert page.value("document.querySelectorAll('#overview th[aria-sort]').length") == 1

        page.value(choose("data", "mnist"))
        assert set(page.value(NAMES)) == {"z", "a", "m"}
        assert page.value(LEDGERS) == 3
        assert page.value("document.getElementById('shown').textContent") == "3 of 5 models"
        page.value(choose("model", "A"))
        assert page.value(NAMES) == ["a"]
        page.value(choose("data", "") + "," + choose("model", "") + "," + choose("status", "unfinished"))
        assert page.value(NAMES) == []
        page.value(choose("status", ""))
        assert len(page.value(NAMES)) == 5

        shown = "[...document.querySelectorAll('[data-norm=l2]')].filter(e => !e.hidden).length"
        before = page.value(shown)
        page.value(choose("norm", "linf"))
        assert page.value(shown) == 0
        page.value(choose("norm", ""))
        assert page.value(shown) == before > 0

        width = "document.querySelector('td .interval').offsetWidth"
        assert page.value(width) > 0
        page.value("document.getElementById('intervals').click()")
        assert page.value(width) == 0

        ground = "getComputedStyle(document.body).backgroundColor"
        assert page.value(ground) == "rgb(255, 255, 255)"
        page.value(choose("theme", "dark"))
        assert page.value(ground) == "rgb(20, 22, 26)"

        page.value("location.hash = '#ledger-2'")
        assert page.value("new Promise(r => setTimeout(() => r(document.getElementById('ledger-2').open), 50))") is True
        assert page.complaints() == []
        assert page.requests() == [address]


def test_follows_the_system_and_fits_a_telephone(address):
    with chromium.Page(address, width=390, dark=True) as page:
        assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
        page.value("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.value("document.documentElement.scrollWidth") <= 390
        assert page.complaints() == []


def test_fits_a_sheet_of_a4(address):
    with chromium.Page(address, width=718) as page:  # 210 mm less Chromium's own margins
        page.call("Emulation.setEmulatedMedia", media="print")
        assert page.value("document.documentElement.scrollWidth") <= 718


def test_is_complete_without_scripts(address):
    with chromium.Page(address, scripts=False) as page:
        assert page.value("document.getElementById('controls').offsetHeight") == 0, "no controls that do nothing"
        assert page.value("document.querySelectorAll('th button').length") == 0
        assert len(page.value(NAMES)) == 5
        page.value("document.querySelectorAll('details')[0].open = true")
        assert "What to make of it" in page.value("document.body.innerText")


def test_a_page_that_misbehaves_would_be_noticed(tmp_path):
    (tmp_path / "bad.html").write_text("<script>console.error(1); fetch('file:///nowhere')</script><img src='x.png'>")
    with chromium.Page((tmp_path / "bad.html").as_uri()) as page:
        assert page.complaints()
        assert len(page.requests()) > 1
