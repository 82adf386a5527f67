"""Whether a text states the number or the date that a claim does."""

from __future__ import annotations

import math

from research.answer.numbers import Number
from research.answer.wording import Quantity, Reading


def fit(quantity: Quantity, reading: Reading, scales: frozenset[float]) -> int:
    """2 if the reading states the same number or date, 1 if a longer one that is rounded to it, 0 if neither."""
    number, best = quantity.number, 0
    for other in reading.quantities:
        if number.dates:
            same = any(_same_date(one, two) for one in number.dates for two in other.number.dates)
            best = max(best, 2 if same else 0)
        elif other.number.dates:
            parts = {float(part) for date in other.number.dates for part in (date[0], date[2]) if part}
            best = max(best, 2 if parts & number.values else 0)
        else:
            best = max(best, _same_number(number, other.number, scales))
        if best == 2:
            return 2
    if number.dates and _date_in_parts(number, reading):
        return 2
    return best


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


def _same_number(number: Number, other: Number, scales: frozenset[float]) -> int:
    for value in number.values:
        for stated in other.values:
            for scale in (1.0, *scales):
                if math.isclose(value, stated * scale, rel_tol=1e-9):
                    return 2
                if other.precision > number.precision >= 2 and _rounds_to(stated * scale, value, number.precision):
                    return 1
    return 0


def _rounds_to(stated: float, value: float, precision: int) -> bool:
    if value <= 0 or stated <= 0:
        return False
    step = 10.0 ** (math.floor(math.log10(value)) - precision + 1)
    return abs(stated - value) <= 0.5 * step * (1 + 1e-9)


def is_same(one: Quantity, two: Quantity) -> bool:
    return bool(one.number.values & two.number.values) or bool(one.number.dates & two.number.dates)
