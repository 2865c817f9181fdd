"""Numbers as people type them."""

import pytest
import typer

from linocut.cli.numbers import fraction, numbers


@pytest.mark.parametrize(("typed", "meant"), [("8/255", 8 / 255), ("8 / 255", 8 / 255), ("0.031", 0.031), (0.5, 0.5)])
def test_fractions_and_decimals(typed, meant):
    assert fraction(typed) == meant


@pytest.mark.parametrize(
    "typed", ["1e400", "1e99999999", "-1e400", "nan", "inf", "1/0", "x", "", "8//255", "1e5/3", f"{10**400}/1"]
)
def test_what_is_no_number_is_refused_at_once(typed):
    with pytest.raises(typer.BadParameter, match="finite number or a fraction such as 8/255"):
        fraction(typed)
    with pytest.raises(typer.BadParameter):
        numbers(f"1,{typed},2")
