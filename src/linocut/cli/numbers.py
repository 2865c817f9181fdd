"""Numbers as people type them: 8/255, and lists with commas."""

import math
from fractions import Fraction

import typer


def fraction(text: str | float) -> float:
    """'8/255', '0.031' -> a float."""
    told = str(text).replace(" ", "")
    try:
        number = float(Fraction(told)) if "/" in told else float(told)  # a Fraction of 1e99999999 is never done
        if not math.isfinite(number):
            raise ValueError
        return number
    except (ValueError, ZeroDivisionError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a finite number or a fraction such as 8/255") from None


def whole_numbers(text: str) -> list[int]:
    """'5,3,1' -> [5, 3, 1]."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of whole numbers such as 5,3,1") from None


def numbers(text: str) -> list[float]:
    """'20,40' -> [20.0, 40.0]; an empty text is an empty list."""
    return [fraction(part) for part in text.split(",")] if text.strip() else []
