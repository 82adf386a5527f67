"""Searching items of one kind: their words by BM25, their vectors by exact comparison.

    words     BM25 over title, text and further words, a share of the most it can reach     0 to 1
    vectors   cosine of the best part                                                       `Ranking.vectors` of it

What is held in memory of a kind, vectors above all, follows the catalog: it is read again where something came or
went, and only that. An item without a vector is found by its words; a question embeds what it can in a second.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from research.errors import CtxError
from research.store.catalog.items import (
    KindState,
    PendingItem,
    Scalar,
    StoredItem,
    changed_after,
    get_items,
    item_lengths,
    item_metadata,
    item_vectors,
    kind_state,
    mean_length,
    pending_items,
)
from research.store.fulltext.item_words import WordWeights, asked_words, item_terms, score_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders.base import TextEncoder
    from research.store.catalog.reader import Reader

EMBED_SECONDS = 1.0  # that a question may spend on items without vectors; the next one goes on
_A_BATCH = 32
_MOST_WORDS = 48  # of a question; of a longer one the rarest
_BLOCK = 8192  # vectors that are widened at once
# FTS5's own, with which its shares are undone; and its share of a word that stands everywhere is never 1.
_FTS_K1, _FTS_B = 1.2, 0.75
_ALMOST = 1.0 - 1e-6

Where = Mapping[str, Scalar | Sequence[Scalar]]
"""Metadata that an item must have: a value, or one of several."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How items of a kind are ranked. Measured for each kind (tests/bench/RETRIEVAL.md)."""

    words: WordWeights = field(default_factory=WordWeights)
    k1: float = 1.2
    b: float = 0.75
    vectors: float = 0.5
    # score = 1 / (1 + exp(-(sum · first - ln(rank) · second + third))): how often an item with this sum at this rank is
    # the right one.
    hybrid: tuple[float, float, float] = (4.9, 1.15, -3.9)
    lexical: tuple[float, float, float] = (4.4, 1.15, -3.0)


@dataclass(frozen=True, slots=True)
class FoundItem:
    item: StoredItem
    score: float  # calibrated: how likely it is that this answers, 0 to 1
    total: float
    parts: Mapping[str, float]  # words, vectors


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


@dataclass(frozen=True, slots=True)
class _View:
    """The items of a kind, ready to be searched. A row is a place in the order of their numbers. It never changes."""

    state: KindState
    numbers: NDArray[np.int64]
    lengths: NDArray[np.float64]  # words
    owners: NDArray[np.int64]  # of each vector, its row; in order
    vectors: NDArray[np.float16]  # (n, dim)
    columns: dict[str, NDArray[np.object_]] = field(default_factory=dict)  # metadata that was asked for

    def __len__(self) -> int:
        return len(self.numbers)

    def places(self, numbers: Sequence[int] | NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The rows of those that are there, and which these are."""
        import numpy as np

        wanted = np.asarray(numbers, np.int64)
        if not len(self):
            return wanted[:0], np.zeros(len(wanted), bool)
        rows = np.minimum(np.searchsorted(self.numbers, wanted), len(self) - 1)
        here = self.numbers[rows] == wanted
        return rows[here], here

    @property
    def without_vectors(self) -> NDArray[np.int64]:
        import numpy as np

        missing = np.ones(len(self), bool)
        missing[self.owners] = False
        return np.flatnonzero(missing)

    def with_vectors(self, numbers: Sequence[int], vectors: NDArray[Any]) -> _View:
        """Also with these, of items that have none yet; those of items that are not there are left out."""
        import numpy as np

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

    def cosines(self, asked: NDArray[np.float32]) -> NDArray[np.float64]:
        """With a unit vector, of the best part of each item; 0 without a vector."""
        import numpy as np

        found = np.zeros(len(self))
        if not len(self.owners) or self.vectors.shape[1] != len(asked):
            return found
        each = np.empty(len(self.owners), np.float32)
        for start in range(0, len(each), _BLOCK):
            block = self.vectors[start : start + _BLOCK].astype(np.float32)
            # Not by BLAS: its threads go on spinning for a while, on the core where another source is at work.
            np.einsum("ij,j->i", block, asked, out=each[start : start + _BLOCK])
        firsts = np.flatnonzero(np.diff(self.owners, prepend=-1))
        found[self.owners[firsts]] = np.maximum.reduceat(each, firsts)
        return found


class ItemSearch:
    """Searches the items of one kind. Kept as long as an index is open; many threads may use it."""

    def __init__(self, kind: str, encoder: Callable[[Reader], TextEncoder], ranking: Ranking | None = None) -> None:
        self.kind = kind
        self.ranking = ranking or Ranking()
        self._encoder = encoder
        self._views: dict[str, _View] = {}
        self._turn = threading.Lock()

    def find(self, reader: Reader, text: str, limit: int, *, where: Where | None = None) -> FoundItems:
        """The best `limit` items for a text, of those that `where` leaves. Without an encoder that works the words
        answer alone, and a note tells."""
        import numpy as np

        if limit < 1 or not kind_state(reader, self.kind).count:
            return FoundItems()
        encoder, notes = self._usable(reader)
        view = self._view(reader, encoder.name if encoder else "")
        cosines, fresh = np.zeros(len(view)), None
        try:
            if encoder is not None:
                asked = encoder.embed_query(text)
                view, fresh = self._embed_missing(reader, view, encoder, EMBED_SECONDS)
                cosines = view.cosines(asked)
        except CtxError as error:  # at an address that does not answer
            encoder, notes = None, (self._words_only(error),)
        words = self._words(reader, view, text)
        allowed = self._allowed(reader, view, where)
        chosen = self._rank(view, words, cosines, allowed, limit, hybrid=encoder is not None)
        stored = get_items(reader, [number for number, _ in chosen])
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
        if not kind_state(reader, self.kind).count:
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

    def _view(self, reader: Reader, encoder: str) -> _View:
        """The kind's items as this reader sees them, with the vectors of this encoder."""
        state = kind_state(reader, self.kind)
        with self._turn:
            known = self._views.get(encoder)
        view = known if known is not None and known.state == state else _read(reader, self.kind, state, known)
        missing = view.without_vectors
        if encoder and len(missing):  # what is stored by now, by this process or another
            wanted = view.numbers[missing].tolist() if len(view.owners) else None
            view = view.with_vectors(*item_vectors(reader, self.kind, encoder, wanted))
        self._keep(encoder, view)
        return view

    def _keep(self, encoder: str, view: _View) -> None:
        """One encoder at a time: another one's vectors are of no use any more."""
        with self._turn:
            self._views = {encoder: view}

    def _embed_missing(
        self, reader: Reader, view: _View, encoder: TextEncoder, seconds: float
    ) -> tuple[_View, EmbeddedItems | None]:
        import numpy as np

        waiting = view.numbers[view.without_vectors].tolist()
        until = time.monotonic() + seconds
        numbers: list[int] = []
        made: list[NDArray[np.float32]] = []
        for start in range(0, len(waiting), _A_BATCH):
            pending = pending_items(reader, waiting[start : start + _A_BATCH])
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

    def _words(self, reader: Reader, view: _View, text: str) -> NDArray[np.float64]:
        """BM25 of each item as a share of the most it could reach, 0 to 1. (rows,)"""
        import numpy as np

        terms = sorted(item_terms(reader, self.kind, asked_words(text)), key=lambda term: -term.idf)[:_MOST_WORDS]
        scores, most = np.zeros(len(view)), sum(term.idf for term in terms)
        # FTS5 measures an item's length against items of all kinds: undone, and measured against those of its own.
        theirs = _FTS_K1 * (1.0 - _FTS_B + _FTS_B * view.lengths / max(1e-9, mean_length(reader)))
        mean = view.lengths.mean() or 1.0
        norms = self.ranking.k1 * (1.0 - self.ranking.b + self.ranking.b * view.lengths / mean)
        for term, found in score_words(reader, self.kind, terms, self.ranking.words):
            rows, here = view.places([number for number, _ in found])
            shares = np.minimum(np.array([share for _, share in found])[here], _ALMOST)
            counts = shares * theirs[rows] / (1.0 - shares)
            scores[rows] += term.idf * counts / (counts + norms[rows])
        return scores / most if most else scores

    def _allowed(self, reader: Reader, view: _View, where: Where | None) -> NDArray[np.bool_]:
        import numpy as np

        flags = np.ones(len(view), bool)
        wanted = dict(where or {})
        unknown = [name for name in wanted if name not in view.columns]
        if unknown:
            found: dict[str, list[Scalar]] = {name: [] for name in unknown}
            for _, metadata in item_metadata(reader, self.kind):
                for name in unknown:
                    found[name].append(metadata.get(name))
            # Threads may read the same at once; what they find is the same.
            view.columns.update((name, np.array(values, object)) for name, values in found.items())
        for name, value in wanted.items():
            several = value if isinstance(value, (list, tuple, set, frozenset)) else (value,)
            flags &= np.logical_or.reduce(
                [np.zeros(len(view), bool), *(view.columns[name] == each for each in several)]
            )
        return flags

    def _rank(
        self,
        view: _View,
        words: NDArray[np.float64],
        cosines: NDArray[np.float64],
        allowed: NDArray[np.bool_],
        limit: int,
        *,
        hybrid: bool,
    ) -> list[tuple[int, FoundItem]]:
        """(number, found) of the best; what has no word and no vector of the question's is not among them."""
        import numpy as np

        totals = words + self.ranking.vectors * cosines
        rows = np.flatnonzero(allowed & (totals > 0.0))
        best = rows[np.lexsort((rows, -totals[rows]))][:limit]
        slope, fall, start = self.ranking.hybrid if hybrid else self.ranking.lexical
        chosen: list[tuple[int, FoundItem]] = []
        for rank, row in enumerate(best.tolist(), start=1):
            total = float(totals[row])
            score = 1.0 / (1.0 + math.exp(-(total * slope - math.log(rank) * fall + start)))
            parts = {"words": float(words[row]), "vectors": float(cosines[row])}
            chosen.append((int(view.numbers[row]), FoundItem(_NOBODY, score, total, parts)))
        return chosen


def fitting_parts(pending: Sequence[PendingItem], encoder: TextEncoder) -> tuple[list[str], list[int]]:
    """What is embedded of these items, and the number of the item that each text is of."""
    from research.encoders.base import split_to_fit

    parts, numbers = list[str](), list[int]()
    for item in pending:
        fitting = [each for part in item.parts for each in split_to_fit(part, encoder)]
        parts += fitting
        numbers += [item.item_no] * len(fitting)
    return parts, numbers


_NOBODY = StoredItem(0, "", "", "", "", "", "")


def _read(reader: Reader, kind: str, state: KindState, before: _View | None) -> _View:
    """Numbers and lengths are read anew; vectors of items that did not change are taken over."""
    import numpy as np

    rows = item_lengths(reader, kind)
    numbers = np.array([number for number, _ in rows], np.int64)
    lengths = np.array([length for _, length in rows], float)
    view = _View(state, numbers, lengths, np.zeros(0, np.int64), np.zeros((0, 0), np.float16))
    if before is None or before.state.catalog != state.catalog or not len(before.owners):
        return view
    changed = changed_after(reader, kind, before.state.last_seq)
    owners = before.numbers[before.owners]
    kept = ~np.isin(owners, np.array(changed, np.int64))
    places, here = view.places(owners[kept])
    return replace(view, owners=places, vectors=before.vectors[kept][here])
