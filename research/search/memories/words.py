"""The words of a tenant's memories as an inverted index, and BM25 over them.

In a conversation a sentence is understood with those around it: "How was the trip?" – "Wonderful, we saw dolphins."
So the words of the turns before and after count for a turn, too, at a share of their own (`NEIGHBOURS`); asked for the
trip, the dolphins are found. Shares are added to how often a word stands in the turn before BM25 weighs it, so a word
that all three have does not count three times.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from research.search.memories.columns import Floats, Rows

if TYPE_CHECKING:
    from research.search.memories.view import View

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
