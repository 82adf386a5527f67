"""Searching the items of one kind by words and vectors: what is held of them, and how it follows the catalog."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from research.errors import CtxError
from research.search.calibration import POOL, Evidence, calibrate
from research.store import (
    KindState,
    Scalar,
    StoredItem,
    WordWeights,
    asked_words,
    fitting_parts,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders import TextEncoder
    from research.store import Reader

Floats: TypeAlias = "NDArray[np.float64]"

_BLOCK = 8192  # vectors that are widened at once


@dataclass(frozen=True, slots=True)
class View:
    """The items of a kind, ready to be searched. A row is a place in the order of their numbers. It never changes."""

    state: KindState
    numbers: NDArray[np.int64]
    lengths: NDArray[np.float64]  # words
    title_lengths: NDArray[np.float64]
    priors: NDArray[np.float64]
    owners: NDArray[np.int64]  # of each vector, its row; in order
    vectors: NDArray[np.float16]  # (n, dim)
    columns: dict[str, NDArray[np.object_]] = field(default_factory=dict)  # metadata that was asked for

    def __len__(self) -> int:
        return len(self.numbers)

    def places(self, numbers: Sequence[int] | NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The rows of those that are there, and which these are."""
        wanted = np.asarray(numbers, np.int64)
        if not len(self):
            return wanted[:0], np.zeros(len(wanted), bool)
        rows = np.minimum(np.searchsorted(self.numbers, wanted), len(self) - 1)
        here = self.numbers[rows] == wanted
        return rows[here], here

    @property
    def without_vectors(self) -> NDArray[np.int64]:
        missing = np.ones(len(self), bool)
        missing[self.owners] = False
        return np.flatnonzero(missing)

    def with_vectors(self, numbers: Sequence[int], vectors: NDArray[Any]) -> View:
        """Also with these, of items that have none yet; those of items that are not there are left out."""
        rows, here = self.places(numbers)
        new = np.isin(rows, self.without_vectors)
        if not new.any():
            return self
        rows, more = rows[new], vectors[here][new].astype(np.float16)
        if not len(self.owners):
            return replace(self, owners=rows, vectors=more)
        if self.vectors.shape[1] != more.shape[1]:
            return self
        owners = np.concatenate([self.owners, rows])
        order = np.argsort(owners, kind="stable")
        return replace(self, owners=owners[order], vectors=np.concatenate([self.vectors, more])[order])

    def cosines(self, asked: NDArray[np.float32], *, heading: bool) -> dict[str, Floats]:
        """With a unit vector, of the best part of each item, and of its first; 0 without a vector. `heading`: the first
        is none of the others, unless it is the only one."""
        found, first = np.zeros(len(self)), np.zeros(len(self))
        if not len(self.owners) or self.vectors.shape[1] != len(asked):
            return {"vectors": found, "heading": first}
        each = np.empty(len(self.owners), np.float32)
        for start in range(0, len(each), _BLOCK):
            block = self.vectors[start : start + _BLOCK].astype(np.float32)
            # Not by BLAS: its threads go on spinning for a while, on the core where another source is at work.
            np.einsum("ij,j->i", block, asked, out=each[start : start + _BLOCK])
        firsts = np.flatnonzero(np.diff(self.owners, prepend=-1))
        first[self.owners[firsts]] = each[firsts]
        if heading:
            several = np.diff(np.append(firsts, len(each))) > 1
            each[firsts[several]] = -1.0
        found[self.owners[firsts]] = np.maximum.reduceat(each, firsts)
        return {"vectors": found, "heading": first}


def read_view(reader: Reader, kind: str, state: KindState, before: View | None) -> View:
    """Numbers and lengths are read anew; vectors of items that did not change are taken over."""
    rows = reader.items.measures(kind)
    numbers = np.array([row[0] for row in rows], np.int64)
    lengths, title_lengths, priors = np.array([row[1:] for row in rows], float).reshape(-1, 3).T
    view = View(
        state,
        numbers,
        lengths,
        np.maximum(1.0, title_lengths),
        priors,
        np.zeros(0, np.int64),
        np.zeros((0, 0), np.float16),
    )
    if before is None or before.state.catalog != state.catalog or not len(before.owners):
        return view
    changed = reader.items.changed_after(kind, before.state.last_seq)
    owners = before.numbers[before.owners]
    kept = ~np.isin(owners, np.array(changed, np.int64))
    places, here = view.places(owners[kept])
    return replace(view, owners=places, vectors=before.vectors[kept][here])


EMBED_SECONDS = 1.0  # that a question may spend on items without vectors; the next one goes on
_A_BATCH = 32
_MOST_WORDS = 48  # of a question; of a longer one the rarest
# FTS5's own, with which its shares are undone; and its share of a word that stands everywhere is never 1.
_FTS_K1, _FTS_B = 1.2, 0.75
_ALMOST = 1.0 - 1e-6
_OF_WORDS = ("words", "title")  # signals that need no vector

Where = Mapping[str, Scalar | Sequence[Scalar]]
"""Metadata that an item must have: a value, or one of several."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How items of a kind are ranked. Measured for each kind (tests/bench/RETRIEVAL.md)."""

    words: WordWeights = field(default_factory=WordWeights)
    k1: float = 1.2
    b: float = 0.75
    vectors: float = 0.5
    heading: float = 0.0  # 0: the first part is one like the others
    title: float = 0.0
    curve: str = "experiences"  # that makes scores of sums


@dataclass(frozen=True, slots=True)
class FoundItem:
    item: StoredItem
    score: float  # calibrated: how likely it is that this answers, 0 to 1
    total: float
    parts: Mapping[str, float]  # words, vectors, heading, title; vectors not of what has none yet


@dataclass(frozen=True, slots=True)
class EmbeddedItems:
    """Vectors that were made for a question and are not stored yet: `write_item_vectors` takes them."""

    encoder: str
    numbers: Sequence[int]  # one a vector
    vectors: NDArray[np.float32]  # (n, dim)


@dataclass(frozen=True, slots=True)
class FoundItems:
    """Items, best first, and how it went."""

    items: Sequence[FoundItem] = ()
    searched: int = 0
    without_vectors: int = 0
    notes: tuple[str, ...] = ()
    fresh: EmbeddedItems | None = None


class ItemSearch:
    """Searches the items of one kind. Kept as long as an index is open; many threads may use it."""

    def __init__(self, kind: str, encoder: Callable[[Reader], TextEncoder], ranking: Ranking | None = None) -> None:
        self.kind = kind
        self.ranking = ranking or Ranking()
        self._encoder = encoder
        self._views: dict[str, View] = {}
        self._turn = threading.Lock()

    def find(
        self, reader: Reader, text: str, limit: int, *, where: Where | None = None, priors: bool = True
    ) -> FoundItems:
        """The best `limit` items for a text, of those that `where` leaves, with what they bring along or without.
        Without an encoder that works the words answer alone, and a note tells."""
        if limit < 1 or not reader.items.state(self.kind).count:
            return FoundItems()
        encoder, notes = self._usable(reader)
        view, fresh = self._view(reader, encoder.name if encoder else ""), None
        signals = self._words(reader, view, text)
        try:
            if encoder is not None:
                asked = encoder.embed_query(text)
                view, fresh = self._embed_missing(reader, view, encoder, EMBED_SECONDS)
                signals |= view.cosines(asked, heading=self.ranking.heading > 0.0)
        except CtxError as error:  # at an address that does not answer
            encoder, notes = None, (self._words_only(error),)
        allowed = self._allowed(reader, view, where)
        view = view if priors else replace(view, priors=0 * view.priors)
        chosen = self._rank(view, signals, allowed, limit, hybrid=encoder is not None)
        stored = reader.items.get([number for number, _ in chosen])
        items = [replace(found, item=stored[number]) for number, found in chosen if number in stored]
        missing = 0 if encoder is None else int(allowed[view.without_vectors].sum())
        return FoundItems(items, int(allowed.sum()), missing, notes, fresh)

    def vectors(self, reader: Reader) -> tuple[list[int], NDArray[np.float32]]:
        """Every vector there is: the item of each, in order, and (n, dim)."""
        import numpy as np

        view = self._view(reader, self._encoder(reader).name)
        return view.numbers[view.owners].tolist(), view.vectors.astype(np.float32)

    def embed(self, reader: Reader, seconds: float) -> EmbeddedItems | None:
        """Vectors for items that have none, as many as can be made in this time."""
        if not reader.items.state(self.kind).count:
            return None
        encoder = self._encoder(reader)
        return self._embed_missing(reader, self._view(reader, encoder.name), encoder, seconds)[1]

    def _usable(self, reader: Reader) -> tuple[TextEncoder | None, tuple[str, ...]]:
        try:
            return self._encoder(reader), ()
        except CtxError as error:
            return None, (self._words_only(error),)

    def _words_only(self, error: CtxError) -> str:
        return f"items of the kind {self.kind} are searched by their words only: {error.message}"

    def _view(self, reader: Reader, encoder: str) -> View:
        """The kind's items as this reader sees them, with the vectors of this encoder."""

        state = reader.items.state(self.kind)
        with self._turn:
            known = self._views.get(encoder)
        view = known if known is not None and known.state == state else read_view(reader, self.kind, state, known)
        missing = view.without_vectors
        if encoder and len(missing):  # what is stored by now, by this process or another
            wanted = view.numbers[missing].tolist() if len(view.owners) else None
            view = view.with_vectors(*reader.items.vectors(self.kind, encoder, wanted))
        self._keep(encoder, view)
        return view

    def _keep(self, encoder: str, view: View) -> None:
        """One encoder at a time: another one's vectors are of no use any more."""
        with self._turn:
            self._views = {encoder: view}

    def _embed_missing(
        self, reader: Reader, view: View, encoder: TextEncoder, seconds: float
    ) -> tuple[View, EmbeddedItems | None]:
        import numpy as np

        waiting = [each for each in view.numbers[view.without_vectors].tolist() if each not in reader.masks.items]
        until = time.monotonic() + seconds
        numbers: list[int] = []
        made: list[NDArray[np.float32]] = []
        for start in range(0, len(waiting), _A_BATCH):
            pending = reader.items.pending(waiting[start : start + _A_BATCH])
            parts, owners = fitting_parts(pending, encoder)
            made.append(encoder.embed(parts))
            numbers += owners
            if time.monotonic() > until:
                break
        if not numbers:
            return view, None
        vectors = np.concatenate(made)
        view = view.with_vectors(numbers, vectors)
        self._keep(encoder.name, view)
        return view, EmbeddedItems(encoder.name, numbers, vectors)

    def _words(self, reader: Reader, view: View, text: str) -> dict[str, Floats]:
        """BM25 of each item as a share of the most it could reach, 0 to 1; and how much of its title was asked for."""
        import numpy as np

        terms = sorted(reader.item_words.terms(self.kind, asked_words(text)), key=lambda term: -term.idf)[:_MOST_WORDS]
        scores, most = np.zeros(len(view)), sum(term.idf for term in terms) or 1.0
        # FTS5 measures an item's length against items of all kinds: undone, and measured against those of its own.
        theirs = _FTS_K1 * (1.0 - _FTS_B + _FTS_B * view.lengths / max(1e-9, reader.items.mean_length()))
        norms = self.ranking.k1 * (1.0 - self.ranking.b + self.ranking.b * view.lengths / (view.lengths.mean() or 1.0))
        for term, found in reader.item_words.score(self.kind, terms, self.ranking.words):
            rows, here = view.places([number for number, _ in found])
            shares = np.minimum(np.array([share for _, share in found])[here], _ALMOST)
            counts = shares * theirs[rows] / (1.0 - shares)
            scores[rows] += term.idf * counts / (counts + norms[rows])
        signals = {"words": scores / most}
        if self.ranking.title:
            rows, _ = view.places(reader.item_words.titled(self.kind, terms))
            signals["title"] = np.minimum(1.0, np.bincount(rows, minlength=len(view)) / view.title_lengths)
        return signals

    def _allowed(self, reader: Reader, view: View, where: Where | None) -> NDArray[np.bool_]:
        import numpy as np

        flags = np.ones(len(view), bool)
        wanted = dict(where or {})
        unknown = [name for name in wanted if name not in view.columns]
        if unknown:
            found = {name: np.empty(len(view), object) for name in unknown}
            for row, (_, metadata) in enumerate(reader.items.metadata(self.kind)):
                for name, column in found.items():
                    column[row] = metadata.get(name)
            # Threads may read the same at once; what they find is the same.
            view.columns.update(found)
        for name, value in wanted.items():
            several = value if isinstance(value, (list, tuple, set, frozenset)) else (value,)
            flags &= np.logical_or.reduce(
                [np.zeros(len(view), bool), *(view.columns[name] == each for each in several)]
            )
        return flags

    def _rank(
        self, view: View, signals: Mapping[str, Floats], allowed: NDArray[np.bool_], limit: int, *, hybrid: bool
    ) -> list[tuple[int, FoundItem]]:
        """(number, found) of the best; what has no word and no vector of the question's is not among them."""
        import numpy as np

        ranking = self.ranking
        weights = {"words": 1.0, "vectors": ranking.vectors, "heading": ranking.heading, "title": ranking.title}
        sums = sum((weights[name] * signal for name, signal in signals.items()), np.zeros(len(view)))
        rows = np.flatnonzero(allowed & (sums > 0.0))
        totals = sums + view.priors
        best = rows[np.lexsort((rows, -totals[rows]))][: max(limit, POOL)].tolist()
        bare = set(view.without_vectors.tolist()) if hybrid else set(best)
        shown = [name for name in signals if weights[name]]
        parts = [
            {name: float(signals[name][row]) for name in shown if row not in bare or name in _OF_WORDS} for row in best
        ]
        evidence = [Evidence(float(totals[row]), own.get("vectors")) for row, own in zip(best, parts, strict=True)]
        scores = calibrate(ranking.curve, evidence, int(allowed.sum()))
        found = zip(best, parts, evidence, scores, strict=True)
        return [(int(view.numbers[row]), FoundItem(_NOBODY, s, each.total, own)) for row, own, each, s in found][:limit]


_NOBODY = StoredItem(0, "", "", "", "", "", "")
