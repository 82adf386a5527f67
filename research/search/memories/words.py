"""What a tenant's memories are found by besides vectors: columns of properties, words with BM25 over them, and times
that a question names.

In a conversation a sentence is understood with those around it: "How was the trip?" – "Wonderful, we saw dolphins."
So the words of the turns before and after count for a turn, too, at a share of their own (`NEIGHBOURS`); asked for the
trip, the dolphins are found. Shares are added to how often a word stands in the turn before BM25 weighs it, so a word
that all three have does not count three times.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from research.store import SearchedRow

if TYPE_CHECKING:
    from research.search.memories.view import View

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]

_CODED = ("session", "persona", "namespace", "type", "speaker")


@dataclass(frozen=True, slots=True)
class Columns:
    """A row is a place in the order of arrival. Columns never change; more rows or other values make new ones."""

    numbers: Rows
    live: Flags  # found as itself, not as another that says the same
    created: Floats  # seconds since 1970
    told: Floats
    expires: Floats  # infinite without a time
    importance: Floats
    feedback: Floats  # -1 to 1: how much more often it helped than not
    asks: Flags  # ends with a question mark: it wants to know something and tells little
    newer: Rows  # the number of the memory that supersedes it; 0 without one
    lengths: Floats  # words
    codes: Mapping[str, Rows] = field(default_factory=dict)  # session, persona …: places in `values`
    values: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tags: Mapping[int, frozenset[str]] = field(default_factory=dict)  # of rows that have any

    @classmethod
    def of(cls, rows: Sequence[SearchedRow], before: Columns | None = None) -> Columns:
        """Of these rows alone; their codes are those of `before`, and new ones after them."""
        values = {name: dict(before.values[name]) if before is not None else {} for name in _CODED}
        codes = {}
        for name, places in values.items():
            coded = (places.setdefault(getattr(row, name), len(places)) for row in rows)
            codes[name] = np.fromiter(coded, np.int64, len(rows))
        return cls(
            numbers=np.array([row.memory_no for row in rows], np.int64),
            live=np.array([row.joined_to is None and row.body is not None for row in rows], bool),
            created=_seconds([row.created_at for row in rows]),
            told=_seconds([row.told_at for row in rows]),
            expires=_seconds([row.expires_at for row in rows]),
            importance=np.array([row.importance for row in rows], float),
            feedback=np.array([_balance(row.helped, row.not_helped) for row in rows], float),
            asks=np.array([row.ending in "?？" for row in rows], bool),
            newer=np.array([row.superseded_by or 0 for row in rows], np.int64),
            lengths=np.array([row.body.count(" ") + 1 if row.body else 0 for row in rows], float),
            codes=codes,
            values=values,
            tags={place: frozenset(json.loads(row.tags)) for place, row in enumerate(rows) if row.tags != "[]"},
        )

    def followed(self, changed: Sequence[SearchedRow], new: Sequence[SearchedRow]) -> Columns:
        """With other values of some rows, and more rows."""
        other = Columns.of(changed, self)
        more = Columns.of(new, other)
        places = np.searchsorted(self.numbers, other.numbers)

        def column(name: str) -> NDArray[np.generic]:
            values = np.concatenate([getattr(self, name), getattr(more, name)])
            values[places] = getattr(other, name)
            return values

        codes = {name: np.concatenate([self.codes[name], more.codes[name]]) for name in _CODED}
        for name in _CODED:
            codes[name][places] = other.codes[name]
        tags = {row: found for row, found in self.tags.items() if row not in set(places.tolist())}
        tags |= {int(places[row]): found for row, found in other.tags.items()}
        tags |= {row + len(self.numbers): found for row, found in more.tags.items()}
        arrays = [name for name in self.__slots__ if name not in ("codes", "values", "tags")]
        return Columns(**{name: column(name) for name in arrays}, codes=codes, values=more.values, tags=tags)  # type: ignore[arg-type]

    @property
    def weighed(self) -> bool:
        """Whether any memory is more important than another, or has feedback."""
        return bool(self.feedback.any() or (self.importance != 0.5).any())

    def one_of(self, column: str, wanted: Iterable[str]) -> Flags:
        """Whether the value of each row is one of these."""
        codes = [self.values[column][each] for each in wanted if each in self.values[column]]
        return np.isin(self.codes[column], codes)

    def tagged(self, wanted: Iterable[str]) -> Flags:
        """Whether each row has all of these tags."""
        flags, asked = np.zeros(len(self.numbers), bool), frozenset(wanted)
        flags[[row for row, tags in self.tags.items() if asked <= tags]] = True
        return flags

    def rows_of(self, numbers: Sequence[int]) -> Rows:
        """The rows of memories that are there."""
        wanted = np.asarray(numbers, np.int64)
        if not len(self.numbers):
            return wanted[:0]
        places = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        found: Rows = places[self.numbers[places] == wanted]
        return found

    def neighbours(self) -> tuple[Rows, Rows]:
        """The turn before and the one after each in its session, by their times and then in the order of arrival; -1
        without one."""
        earlier = np.full(len(self.numbers), -1, np.int64)
        later, sessions = earlier.copy(), self.codes["session"]
        turns = np.flatnonzero(self.live & (sessions != self.values["session"].get("", -1)))
        ordered = turns[np.lexsort((turns, self.created[turns], sessions[turns]))]
        beside = sessions[ordered[1:]] == sessions[ordered[:-1]]
        later[ordered[:-1][beside]] = ordered[1:][beside]
        earlier[ordered[1:][beside]] = ordered[:-1][beside]
        return earlier, later


def _balance(helped: int, not_helped: int) -> float:
    """Never quite 1: one that helped once is worth less than one that helped ten times."""
    return (helped - not_helped) / (helped + not_helped + 2)


def _seconds(times: Sequence[str]) -> Floats:
    known = {time: datetime.fromisoformat(time).timestamp() if time else math.inf for time in set(times)}
    return np.array([known[time] for time in times], float)


# What a turn's words count for another, by how many turns that comes after it. Measured on LoCoMo's development half,
# where half or one and a half of these do nearly as well (tests/bench/RETRIEVAL.md).
NEIGHBOURS = {1: 0.6, 2: 0.3, -1: 0.3, -2: 0.15}

_K1 = 1.0
_B = 0.5
_SPARSE = 50
_MOST_WORDS = 48  # of a question; of a longer one the rarest


@dataclass(frozen=True, slots=True)
class Segment:
    """An inverted index over some memories: word → rows, one for each time it stands there, in order."""

    numbers: dict[str, int]  # word → its place in `starts`
    starts: Rows
    rows: Rows

    @classmethod
    def of(cls, rows: Sequence[int], bodies: Sequence[str]) -> Segment:
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        words = [body.split() for body in bodies]
        flat = [word for each in words for word in each]
        ids = np.fromiter(map(numbers.__getitem__, flat), np.int64, len(flat))
        return cls._sorted(numbers, ids, np.repeat(np.asarray(rows, np.int64), [len(each) for each in words]))

    @classmethod
    def together(cls, segments: Sequence[Segment]) -> Segment:
        """All that these hold, in one."""
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        ids = [
            np.repeat(np.fromiter((numbers[word] for word in each.numbers), np.int64), np.diff(each.starts))
            for each in segments
        ]
        return cls._sorted(numbers, np.concatenate(ids), np.concatenate([each.rows for each in segments]))

    @classmethod
    def _sorted(cls, numbers: dict[str, int], ids: Rows, rows: Rows) -> Segment:
        order = np.argsort(ids, kind="stable")
        starts = np.searchsorted(ids[order], np.arange(len(numbers) + 1))
        return cls(dict(numbers), starts.astype(np.int64), rows[order])

    def __len__(self) -> int:
        return len(self.rows)

    def find(self, word: str) -> Rows:
        place = self.numbers.get(word)
        if place is None:
            return self.rows[:0]
        return self.rows[self.starts[place] : self.starts[place + 1]]


def score_words(view: View, words: Sequence[str]) -> Floats:
    """BM25 of each memory as a share of the most it could reach, 0 to 1. (rows,)"""
    found: list[tuple[float, Rows]] = []
    total = int(np.count_nonzero(view.columns.live))
    for word in dict.fromkeys(words):
        rows, holders = view.find(word)
        found.append((math.log(1.0 + (total - holders + 0.5) / (holders + 0.5)), rows))
    found = sorted(found, key=lambda each: -each[0])[:_MOST_WORDS]
    most = sum(idf for idf, _ in found)
    scores = np.zeros(len(view))
    for idf, rows in found:
        if len(rows):
            places, counts = _spread(view, rows)
            scores[places] += idf / most * counts / (counts + view.norms[places])
    return scores


def norms_of(lengths: Floats, earlier: Rows, later: Rows) -> Floats:
    """What BM25 divides by, from how many words a memory has, its neighbours' share included."""
    whole = lengths.copy()
    for steps, share in NEIGHBOURS.items():
        other = step(np.arange(len(lengths)), earlier if steps > 0 else later, abs(steps))
        whole += share * np.where(other >= 0, lengths[other], 0.0)
    mean = whole.mean() if len(whole) else 1.0
    return _K1 * (1.0 - _B + _B * whole / (mean or 1.0))


def step(rows: Rows, links: Rows, steps: int) -> Rows:
    """The rows so many links further; -1 where there is none."""
    for _ in range(steps):
        rows = np.where(rows >= 0, links[rows], -1)
    return rows


def _spread(view: View, rows: Rows) -> tuple[Rows, Floats]:
    """The rows where a word counts, its neighbours' included, and how often it stands there."""
    places, shares = [rows], [np.ones(len(rows))]
    for steps, share in NEIGHBOURS.items():
        other = step(rows, view.later if steps > 0 else view.earlier, abs(steps))
        other = other[other >= 0]
        places.append(other)
        shares.append(np.full(len(other), share))
    where, weights = np.concatenate(places), np.concatenate(shares)
    if len(where) * _SPARSE < len(view):  # sorting so few is less than a pass over all rows
        held, where = np.unique(where, return_inverse=True)
        return held, np.bincount(where, weights, len(held)).astype(np.float64, copy=False)
    counts = np.bincount(where, weights, len(view)).astype(np.float64, copy=False)
    touched: Rows = np.flatnonzero(counts).astype(np.int64, copy=False)
    return touched, counts[touched]


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


def nearness(times: list[Asked], created: Floats) -> Floats:
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
