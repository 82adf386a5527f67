"""Whether a text states the number or the date that a claim does."""

from __future__ import annotations

import math
from enum import IntEnum

from research.answer.claims.numbers import Number
from research.answer.claims.reading import Quantity, Reading


class Fit(IntEnum):
    NONE = 0
    UNSCALED = 1  # "1,469 million" for "1,469": the page may say "in millions" elsewhere, or not
    ROUNDED = 2
    SAME = 3


def fit(quantity: Quantity, reading: Reading, scales: frozenset[float]) -> Fit:
    """How well the number or date that fits best does. `scales` are what the figures of tables are multiplied with."""
    number, best = quantity.number, Fit.NONE
    for other in reading.quantities:
        if number.dates:
            same = any(_same_date(one, two) for one in number.dates for two in other.number.dates)
            best = Fit.SAME if same else best
        elif other.number.dates:
            parts = {float(part) for date in other.number.dates for part in (date[0], date[2]) if part}
            best = Fit.SAME if parts & number.values else best
        else:
            best = max(best, _same_number(number, other.number, scales))
        if best == Fit.SAME:
            return best
    return Fit.SAME if number.dates and _date_in_parts(number, reading) else best


def _same_date(one: tuple[int, int, int], two: tuple[int, int, int]) -> bool:
    """A claim may say less than the source; and a year that only the claim names, if the day is right."""
    day_and_month = one[1] == two[1] and one[2] in {0, two[2]}
    return day_and_month and (one[0] in {0, two[0]} or two[0] == 0)


def _date_in_parts(number: Number, reading: Reading) -> bool:
    values = {value for quantity in reading.quantities for value in quantity.number.values}
    return any(
        f"month {month}" in reading.keys and (not day or day in values) and (not year or year in values)
        for year, month, day in number.dates
    )


def _same_number(number: Number, other: Number, scales: frozenset[float]) -> Fit:
    best = Fit.NONE
    for value in number.values:
        for stated in other.values:
            for scale in (1.0, *scales):
                if math.isclose(value, stated * scale, rel_tol=1e-9):
                    return Fit.SAME
                if other.precision > number.precision >= 2 and _rounds_to(stated * scale, value, number.precision):
                    best = Fit.ROUNDED
            if number.scaled and any(math.isclose(value, stated * scale, rel_tol=1e-9) for scale in (1e3, 1e6, 1e9)):
                best = max(best, Fit.UNSCALED)
    return best


def _rounds_to(stated: float, value: float, precision: int) -> bool:
    if value <= 0 or stated <= 0:
        return False
    step = 10.0 ** (math.floor(math.log10(value)) - precision + 1)
    return abs(stated - value) <= 0.5 * step * (1 + 1e-9)


def is_same(one: Quantity, two: Quantity) -> bool:
    return bool(one.number.values & two.number.values) or bool(one.number.dates & two.number.dates)
