"""The times that a question names, and how near to them something was told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

_MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
_NAMES = rf"(?:{'|'.join(_MONTHS)}|sept|{'|'.join(month[:3] for month in _MONTHS)})\b\.?"
_DAY = r"(?P<day{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year{0}>(?:19|20)\d\d)"
# "may" alone is a verb more often than a month, and "march" one.
_BEFORE = r"\b(?:in|on|of|during|since|by|until|before|after|early|mid|late|this|last|next)\s+"
_WRITTEN = re.compile(
    rf"\b{_DAY.format(1)}(?:\s+of)?\s+(?P<month1>{_NAMES})(?:,?\s+{_YEAR.format(1)}\b)?"
    rf"|\b(?P<month2>{_NAMES})\s+{_DAY.format(2)}(?!\d)(?:,?\s+{_YEAR.format(2)})?"
    rf"|\b(?P<month3>{_NAMES}),?\s+{_YEAR.format(3)}\b"
    rf"|{_BEFORE}(?P<month4>{_NAMES})(?![.,]*\s+\d)"
    rf"|\b(?P<year5>(?:19|20)\d\d)-(?P<month5>0\d|1[0-2])(?:-(?P<day5>[0-3]\d))?\b"
    rf"|\b(?P<day6>[0-3]?\d)\.(?P<month6>[01]?\d)\.(?P<year6>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple of": 2, "few": 3}
_AGO = re.compile(rf"\b(?P<count>\d{{1,3}}|(?:a )?(?:{'|'.join(_COUNTS)})) (?P<unit>day|week|month|year)s? ago\b", re.I)
_NAMED = re.compile(
    r"\b(?P<day>today|yesterday|tonight|this morning|last night)\b|\b(?P<which>this|last) (?P<unit>week|month|year)\b",
    re.IGNORECASE,
)
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

NEAR = 7  # days
_MOST = 8  # times that are looked at; a question names one or two


@dataclass(frozen=True, slots=True)
class Asked:
    """A time that a question names: a day, a month, or a stretch of days."""

    month: int = 0
    year: int = 0
    day: int = 0
    first: date | None = None
    last: date | None = None


def times_in(question: str, now: datetime) -> list[Asked]:
    """The times it names; `now` is what "yesterday" is counted from."""
    found = [*_written(question), *_relative(question, now.astimezone(UTC).date())]
    return found[:_MOST]


def nearness(times: Sequence[Asked], created: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each memory by its time, 0 to 1: 1 for the time itself, less for a week around a day and for its month."""
    best = np.zeros(len(created))
    days = (created // 86_400).astype("int64").astype("datetime64[D]")
    months = days.astype("datetime64[M]").astype("int64")
    for asked in times:
        if asked.first is not None and asked.last is not None:
            inside = (days >= np.datetime64(asked.first)) & (days <= np.datetime64(asked.last))
            best = np.maximum(best, inside)
            continue
        years = months // 12 + 1970
        same_month = (months % 12 + 1 == asked.month) & ((asked.year == 0) | (years == asked.year))
        if not asked.day:
            best = np.maximum(best, same_month)
            continue
        best = np.maximum(best, 0.3 * same_month)
        for year in {asked.year} if asked.year else set(np.unique(years).tolist()):
            day = _date(year, asked.month, asked.day)
            if day is not None:
                gap = np.abs((days - np.datetime64(day)).astype("int64"))
                best = np.maximum(best, np.where(gap <= 1, 1.0, np.where(gap <= NEAR, 0.6, 0.0)))
    return best


def _written(question: str) -> Iterator[Asked]:
    for match in _WRITTEN.finditer(question):
        named = {name[:-1]: value for name, value in match.groupdict().items() if value}
        month = named["month"]
        number = int(month) if month.isdigit() else 1 + [name[:3] for name in _MONTHS].index(month[:3].lower())
        if 1 <= number <= 12 and int(named.get("day", 0)) <= 31:
            yield Asked(number, int(named.get("year", 0)), int(named.get("day", 0)))


def _relative(question: str, today: date) -> Iterator[Asked]:
    for match in _AGO.finditer(question):
        said = match["count"].lower().removeprefix("a ")
        number = int(said) if said.isdigit() else _COUNTS.get(said, 1)
        unit = _UNIT_DAYS[match["unit"].lower()]
        middle = _before(today, number * unit)
        yield Asked(first=_before(middle, unit // 2), last=_before(middle, -(unit // 2)))
    for match in _NAMED.finditer(question):
        if match["day"]:
            gone = 1 if match["day"].lower() in ("yesterday", "last night") else 0
            yield Asked(first=_before(today, gone), last=_before(today, gone))
        else:
            yield _stretch(match["unit"].lower(), today, before=match["which"].lower() == "last")


def _stretch(unit: str, today: date, *, before: bool) -> Asked:
    """This week, month or year, or the one before."""
    starts = {
        "week": _before(today, today.weekday()),
        "month": today.replace(day=1),
        "year": today.replace(month=1, day=1),
    }
    start = starts[unit]
    if not before:
        return Asked(first=start, last=today)
    end = _before(start, 1)
    started = {"week": _before(start, 7), "month": end.replace(day=1), "year": end.replace(month=1, day=1)}
    return Asked(first=started[unit], last=end)


def _before(day: date, days: int) -> date:
    try:
        return day - timedelta(days=days)
    except OverflowError:
        return date.min


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
