"""What searching knows of each memory besides its words and vectors, as columns: one array a property."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from research.store.catalog.memories import SearchedRow

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
