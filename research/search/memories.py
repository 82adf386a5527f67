"""Memories of one tenant, searched in memory: their words, vectors, speakers and times, and how they are ranked.

    words     BM25 over a turn's words and its neighbours', a share of the most it can reach           0 to 1
    vectors   cosine, a little of its neighbours' in it                                                0.6 of it
    speaker   the question names who says it                                                           0.2
    time      it was told when the question says                                                       up to 0.1
    asking    it is a question itself                                                                  -0.08

A question about somebody is searched without the name: who speaks of himself says "I". Importance moves the sum by up
to 5 %, what feedback told of it by up to 10 %. In a conversation a sentence is understood with those around it: "How
was the trip?" – "Wonderful, we saw dolphins." So the words of the turns around it count for a turn, too, at a share of
their own, added to how often a word stands in it before BM25 weighs that. Measured on LoCoMo's development half, all
of it lies flat around these numbers (tests/bench/RETRIEVAL.md, `make bench ONLY=locomo`).

A memory that was superseded never stands before the one that says it anew, which is found with it. Nor does a short
one before a newer one that fits the question nearly as well and is nearer to it than to anything else that was told:
"Tim lives in Kiel" comes behind "Tim moved to Bonn". That is a guess, and orders only: 42 of 44 such pairs stand so
(data/memory_updates.jsonl) among as many newer memories of other facts of the same persons, of which it puts two first.

A view never changes: what was told since makes a new one, which shares what stayed. Views are kept by tenant and
encoder, the last used; what another tenant has is in another view, so no search, count or comparison can meet it.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from research.memories import Within
from research.search.calibration import POOL, Evidence, calibrate
from research.search.dates import nearness, times_in
from research.store import (
    Reader,
    SearchedRow,
    TenantState,
    analyze,
    cosines,
    normalize,
    stem,
)

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


# What a turn's words count for another, by how many turns that comes after it. Half or one and a half of these do
# nearly as well.
NEIGHBOURS = {1: 0.6, 2: 0.3, -1: 0.3, -2: 0.15}

_K1, _B = 1.0, 0.5
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


def _norms_of(lengths: Floats, earlier: Rows, later: Rows) -> Floats:
    """What BM25 divides by, from how many words a memory has, its neighbours' share included."""
    whole = lengths.copy()
    for steps, share in NEIGHBOURS.items():
        other = _step(np.arange(len(lengths)), earlier if steps > 0 else later, abs(steps))
        whole += share * np.where(other >= 0, lengths[other], 0.0)
    mean = whole.mean() if len(whole) else 1.0
    return _K1 * (1.0 - _B + _B * whole / (mean or 1.0))


def _step(rows: Rows, links: Rows, steps: int) -> Rows:
    """The rows so many links further; -1 where there is none."""
    for _ in range(steps):
        rows = np.where(rows >= 0, links[rows], -1)
    return rows


def _spread(view: View, rows: Rows) -> tuple[Rows, Floats]:
    """The rows where a word counts, its neighbours' included, and how often it stands there."""
    places, shares = [rows], [np.ones(len(rows))]
    for steps, share in NEIGHBOURS.items():
        other = _step(rows, view.later if steps > 0 else view.earlier, abs(steps))
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


_MOST_ROWS = 250_000  # of all views together; about 400 MB. One tenant with more is held nevertheless
_MOST_PARTS = 8  # segments or blocks of a view, before small ones are put together
_LARGE = 4  # times as large as all the others: one that is left as it is

P = TypeVar("P", bound=Sized)


@dataclass(frozen=True, slots=True)
class Block:
    """Vectors of some memories: their rows, and (n, dim)."""

    rows: Rows
    vectors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def together(cls, blocks: Sequence[Block]) -> Block:
        return cls(np.concatenate([b.rows for b in blocks]), np.concatenate([b.vectors for b in blocks]))


@dataclass(frozen=True, slots=True)
class View:
    """A tenant's memories, ready to be searched."""

    tenant: str
    state: TenantState
    columns: Columns
    segments: tuple[Segment, ...]
    blocks: tuple[Block, ...]
    earlier: Rows
    later: Rows
    norms: Floats
    without_vectors: Rows  # those that are searched and have none

    def __len__(self) -> int:
        return len(self.columns.numbers)

    def find(self, word: str) -> tuple[Rows, int]:
        """The rows where a word stands, once for each time, and in how many."""
        found = [segment.find(word) for segment in self.segments]
        rows = found[0] if len(found) == 1 else np.concatenate([*found, np.zeros(0, np.int64)])
        rows = rows[self.columns.live[rows]]
        # A memory's words are all in one segment, and there in order.
        return rows, int(np.count_nonzero(np.diff(rows))) + 1 if len(rows) else 0

    def named(self, words: Iterable[str]) -> dict[str, set[str]]:
        """Speaker → the words of the name that are among these, for those that are named."""
        asked = set(words)
        found = {name: set(analyze(name)) & asked for name in self.columns.values["speaker"] if name}
        return {name: own for name, own in found.items() if own}

    def vector(self, row: int) -> NDArray[np.float32]:
        """Of a row that has one."""
        return next(block.vectors[block.rows == row][0] for block in self.blocks if row in block.rows)

    def together(self, one: int, other: int) -> bool:
        """Whether they are turns of one conversation."""
        session = self.columns.codes["session"]
        alone = self.columns.values["session"].get("", -1)
        return bool(session[one] == session[other] != alone)

    def cosines(self, asked: NDArray[np.float32]) -> Floats:
        """With a unit vector, of each row; 0 without a vector."""
        found = np.zeros(len(self))
        for block in self.blocks:
            if block.vectors.shape[1] == len(asked):
                found[block.rows] = cosines(block.vectors, asked)
        return found

    def with_vectors(self, numbers: Sequence[int], vectors: NDArray[np.float32]) -> View:
        """Also with these; those of memories that are not searched are left out."""
        held = {int(number) for number in self.columns.numbers[self.without_vectors]}
        kept = [place for place, number in enumerate(numbers) if number in held]
        if not kept:
            return self
        rows = self.columns.rows_of([numbers[place] for place in kept])
        block = Block(rows, vectors if len(kept) == len(numbers) else vectors[kept])
        blocks = _few((*self.blocks, block), Block.together)
        return replace(self, blocks=blocks, without_vectors=_missing(self.columns, blocks))

    def close_pairs(
        self, numbers: Sequence[int], vectors: NDArray[np.float32], least: float, most: int
    ) -> list[tuple[int, int]]:
        """(number, number of one told before it) of memories whose vectors have a cosine of `least` or more, and that
        are of one speaker and kind; the closest first, `most` of each."""
        found: list[tuple[int, int]] = []
        same = ("speaker", "persona", "namespace", "type")
        for number, vector in zip(numbers, vectors, strict=True):
            rows = self.columns.rows_of([number])
            if not len(rows):
                continue
            cosines = self.cosines(vector)
            cosines[rows[0] :] = 0.0
            close = np.flatnonzero(self.columns.live & (cosines >= least))
            close = close[np.argsort(-cosines[close], kind="stable")]
            alike = [
                row for row in close if all(self.columns.codes[c][row] == self.columns.codes[c][rows[0]] for c in same)
            ]
            found += [(number, int(self.columns.numbers[row])) for row in alike[:most]]
        return found


class Views:
    """The views of an open index. Many threads may ask for them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], View] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, reader: Reader, tenant: str, encoder: str) -> View | None:
        """The tenant's memories as this reader sees them; None if there are none. `encoder`: whose vectors."""
        state = reader.memories.state(tenant)
        if state is None:
            self.drop(tenant)
            return None
        with self._turn:
            known = self._kept.get((tenant, encoder))
        if known is None or known.state.version != state.version or known.state.last_seq > state.last_seq:
            view = _read(reader, tenant, state)
        else:
            view = known if known.state == state else _followed(known, reader, state)
        missing = view.without_vectors
        if encoder and len(missing):  # what is stored by now, by this process or another
            wanted = [int(number) for number in view.columns.numbers[missing]] if view.blocks else None
            view = view.with_vectors(*reader.memories.vectors(tenant, encoder, wanted))
        self.keep(view, encoder)
        return view

    def keep(self, view: View, encoder: str) -> None:
        """In place of the one before."""
        with self._turn:
            key = (view.tenant, encoder)
            self._kept[key] = view
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > _MOST_ROWS:
                self._kept.popitem(last=False)

    def drop(self, tenant: str | None = None) -> None:
        """Let go of a tenant's, or of all."""
        with self._turn:
            for key in [key for key in self._kept if tenant in (None, key[0])]:
                del self._kept[key]


def _read(reader: Reader, tenant: str, state: TenantState) -> View:
    rows = reader.memories.rows_after(tenant, 0)
    return _view(tenant, state, Columns.of(rows), _segments((), 0, rows), ())


def _followed(view: View, reader: Reader, state: TenantState) -> View:
    """With what was told or changed since."""
    rows = reader.memories.rows_after(view.tenant, view.state.last_seq)
    known = set(view.columns.numbers[view.columns.rows_of([row.memory_no for row in rows])].tolist())
    changed = [row for row in rows if row.memory_no in known]
    new = [row for row in rows if row.memory_no not in known]
    segments = _segments(view.segments, len(view), new)
    return _view(view.tenant, state, view.columns.followed(changed, new), segments, view.blocks)


def _view(
    tenant: str, state: TenantState, columns: Columns, segments: tuple[Segment, ...], blocks: tuple[Block, ...]
) -> View:
    earlier, later = columns.neighbours()
    norms = _norms_of(columns.lengths, earlier, later)
    return View(tenant, state, columns, segments, blocks, earlier, later, norms, _missing(columns, blocks))


def _missing(columns: Columns, blocks: tuple[Block, ...]) -> Rows:
    missing = columns.live.copy()
    for block in blocks:
        missing[block.rows] = False
    return np.flatnonzero(missing).astype(np.int64)


def _segments(before: tuple[Segment, ...], first: int, new: Sequence[SearchedRow]) -> tuple[Segment, ...]:
    held = [(place, row.body) for place, row in enumerate(new, start=first) if row.body]
    if not held:
        return before
    segment = Segment.of([place for place, _ in held], [body for _, body in held])
    return _few((*before, segment), Segment.together)


def _few(parts: tuple[P, ...], together: Callable[[Sequence[P]], P]) -> tuple[P, ...]:
    """Each part costs every search something. A large one is not copied for the sake of small ones."""
    if len(parts) <= _MOST_PARTS:
        return parts
    first, *others = sorted(parts, key=len, reverse=True)
    if len(first) > _LARGE * sum(map(len, others)):
        return first, together(others)
    return (together(parts),)


VECTORS = 0.6
SPEAKER = 0.2
TIME = 0.1
ASKING = 0.08
_BEFORE, _AFTER = 0.25, 0.15  # of a neighbour's cosine
_IMPORTANCE = 0.1  # of the distance from the middle: 5 % either way
_FEEDBACK = 0.1
# Of two that tell the same of the same: their cosine, at least, and its share of that of whatever is nearest to either;
# how much the newer one fits the question beside the older; and words at most: what is longer tells several things.
_NEAR, _NEAREST, _FITS, _A_FACT = 0.45, 0.9, 0.5, 12
_NEWER = 0.7  # of the chances of both: it is never quite sure which of them holds

_NAME = re.compile(r"(?<=\s)[A-Z]\w+|\d+")  # what the older and the newer one must both have, or neither
_WORD = re.compile(r"[^\W\d_]+(?:['’]s\b)?")


@dataclass(frozen=True, slots=True)
class Asking:
    """A question to a tenant's memories, as they are searched."""

    words: tuple[str, ...]  # without names of speakers
    speakers: tuple[str, ...]  # that it names
    embedded: str  # the text that is compared by vectors


@dataclass(frozen=True, slots=True)
class Ranked:
    row: int
    total: float
    score: float
    parts: dict[str, float]
    evidence: Evidence  # its own, or that of the one whose place it has
    newer: int = 0  # the number of the one that seems to tell it anew


def read_question(view: View, text: str) -> Asking:
    words = analyze(text)
    named = view.named(words)
    names = {word for found in named.values() for word in found}
    return Asking(tuple(word for word in words if word not in names), tuple(named), _as_speaker(text, names))


def _as_speaker(text: str, names: set[str]) -> str:
    """As whoever is named would say it: "What did Anna paint?" asks for what "I" painted."""

    def said(match: re.Match[str]) -> str:
        word = match.group()
        bare = re.sub(r"['’]s$", "", word)
        return ("my" if bare != word else "I") if stem(normalize(bare)) in names else word

    return _WORD.sub(said, text) if names else text


def allowed(view: View, within: Within, now: float) -> Flags:
    """The rows that may be found."""
    columns = view.columns
    flags = columns.live & (columns.expires > now)
    for column, wanted in (("session", within.session), ("namespace", within.namespace)):
        if wanted is not None:
            flags &= columns.one_of(column, [wanted])
    if within.persona is not None:
        flags &= columns.one_of("persona", ["", within.persona])
    if within.types:
        flags &= columns.one_of("type", within.types)
    if within.tags:
        flags &= columns.tagged(within.tags)
    return flags


def rank(
    view: View,
    asking: Asking,
    vector: NDArray[np.float32] | None,
    found: Flags,
    limit: int,
    *,
    text: str,
    now: datetime,
    session: str = "",
) -> list[Ranked]:
    """The best of the rows in `found`. `vector` is that of `asking.embedded`; None: words alone. What fits equally well
    comes in the order of `session` first, then the newest."""
    columns, parts = view.columns, parts_of(view, asking, vector, text, now)
    total = sum(parts.values(), np.zeros(len(view)))
    if columns.weighed:
        total *= 1.0 + _IMPORTANCE * (columns.importance - 0.5) + _FEEDBACK * columns.feedback
    rows = _best(total, found, max(limit, POOL))
    here = columns.one_of("session", [session]) if session else np.zeros(len(view), bool)
    rows = sorted(rows, key=lambda row: (-round(float(total[row]), 9), not here[row], -columns.told[row], -row))
    ordered = _newest_first(view, rows, found)[: max(limit, POOL)]
    own = dict(zip(rows, _evidence(view, rows, parts), strict=True))
    # What stands somewhere for being newer has the chances of the one whose place it took.
    places = zip(ordered, [*rows, *rows[-1:] * (len(ordered) - len(rows))], strict=False)
    evidence = [max(own.get(row, own[other]), own[other], key=lambda each: each.total) for row, other in places]
    ranked = []
    for row, each, score in zip(ordered, evidence, calibrate("memories", evidence, int(found.sum())), strict=True):
        shares = {name: round(float(values[row]), 6) for name, values in parts.items() if values[row]}
        ranked.append(Ranked(row, float(total[row]), score, shares, each))
    if "vectors" in parts and "time" not in parts:  # who names a time asks for what held then
        ranked = _newer_first(
            view, ranked, _told_anew(view, rows, text, total=total, fits=parts["vectors"], found=found)
        )
    return ranked[:limit]


def _evidence(view: View, rows: Sequence[int], parts: Mapping[str, Floats]) -> list[Evidence]:
    """Of words and vectors alone: who spoke and when it was says which memory is meant, not that one is."""
    vectors, bare = parts.get("vectors"), set(view.without_vectors.tolist())
    found = []
    for row in rows:
        cosine = None if vectors is None or row in bare else float(vectors[row]) / VECTORS
        found.append(Evidence(float(parts["words"][row]) + VECTORS * (cosine or 0.0), cosine))
    return found


def parts_of(
    view: View, asking: Asking, vector: NDArray[np.float32] | None, text: str, now: datetime
) -> dict[str, Floats]:
    columns = view.columns
    parts = {"words": score_words(view, asking.words)}
    if vector is not None:
        parts["vectors"] = VECTORS * _with_neighbours(view, np.maximum(view.cosines(vector), 0.0))
    if asking.speakers:
        parts["speaker"] = SPEAKER * columns.one_of("speaker", asking.speakers).astype(np.float64)
    times = times_in(text, now)
    if times:
        parts["time"] = TIME * nearness(times, columns.created)
    parts["asking"] = -ASKING * columns.asks.astype(np.float64)
    return parts


def _with_neighbours(view: View, cosines: Floats) -> Floats:
    """The mean of a turn's cosine and its neighbours', weighed; a turn without neighbours keeps its own."""
    padded = np.append(cosines, 0.0)  # what -1 means
    total = cosines + _BEFORE * padded[view.earlier] + _AFTER * padded[view.later]
    total /= 1.0 + _BEFORE * (view.earlier >= 0) + _AFTER * (view.later >= 0)
    return total


def _best(total: Floats, found: Flags, limit: int) -> list[int]:
    """The rows of the greatest sums, all that are as good as the last of them included."""
    sums = np.where(found, total, 0.0)
    least = float(np.partition(sums, -limit)[-limit]) if len(sums) > limit else 0.0
    return [int(row) for row in np.flatnonzero(sums >= least if least > 0.0 else sums > 0.0)]


def _newest_first(view: View, rows: Sequence[int], found: Flags) -> list[int]:
    """Each one that was superseded comes right after whatever says it anew."""
    ordered: dict[int, None] = {}
    for row in rows:
        for each in reversed(_newer(view, row)):
            if found[each]:
                ordered.setdefault(each)
        ordered.setdefault(row)
    return list(ordered)


def _newer(view: View, row: int) -> list[int]:
    """What supersedes it, and what that; the newest last."""
    chain: list[int] = []
    while number := int(view.columns.newer[row]):
        following = view.columns.rows_of([number])
        if not len(following) or int(following[0]) in chain:
            break
        row = int(following[0])
        chain.append(row)
    return chain


def _told_anew(
    view: View, rows: Sequence[int], text: str, *, total: Floats, fits: Floats, found: Flags
) -> dict[int, int]:
    """Each of the first rows with the newest one that seems to tell the same of the same anew, where there is one."""
    columns, nearest = view.columns, dict[int, Floats]()
    has = [np.isin(rows[:POOL], view.find(word)[0]) for name in _NAME.findall(text) for word in analyze(name)]
    named = dict(zip(rows, np.array(has).T.tolist(), strict=False)) if has else {}

    def near(one: int, other: int) -> bool:
        for row in (one, other):
            if row not in nearest:
                nearest[row] = np.where(found, view.cosines(view.vector(row)), 0.0)
                nearest[row][row] = 0.0
        return bool(nearest[one][other] >= max(_NEAR, _NEAREST * max(nearest[one].max(), nearest[other].max())))

    out = {*view.without_vectors.tolist(), *np.flatnonzero((columns.newer != 0) | (columns.lengths > _A_FACT)).tolist()}
    facts, newer = [row for row in rows[:POOL] if row not in out], dict[int, int]()
    for old in facts:
        anew = [
            new
            for new in facts
            if columns.told[new] > columns.told[old] and total[new] != total[old] and fits[new] >= _FITS * fits[old]
            if named.get(new) == named.get(old) and not view.together(old, new) and near(old, new)
        ]
        if anew:
            newer[old] = max(anew, key=lambda row: columns.told[row])
    return newer


def _newer_first(view: View, ranked: Sequence[Ranked], anew: Mapping[int, int]) -> list[Ranked]:
    """With the chances of each older one and the newer one, most of them the newer one's."""
    known = {each.row: each for each in ranked}
    for old, new in sorted(anew.items(), key=lambda pair: float(view.columns.told[pair[0]])):
        if old in known and new in known:
            both = min(1.0, known[old].score + known[new].score)
            known[old] = replace(known[old], score=(1.0 - _NEWER) * both, newer=int(view.columns.numbers[new]))
            known[new] = replace(known[new], score=_NEWER * both)
    return sorted(known.values(), key=lambda each: -each.score)
