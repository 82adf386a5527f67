"""Searching items of one kind: their words by BM25, their vectors by exact comparison.

    words     BM25 over title, text and further words, a share of the most it can reach     0 to 1
    vectors   cosine of the best part                                                       `Ranking.vectors` of it
    heading   cosine of the first part, for kinds whose first part is a name or a subject   `Ranking.heading` of it
    title     how much of the title's words the question has                                `Ranking.title` of it
    prior     what an item brings along, whatever is asked

What is held in memory of a kind, vectors above all, follows the catalog: it is read again where something came or
went, and only that. An item without a vector is found by its words; a question embeds what it can in a second.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.store.catalog.items import (
    Scalar,
    StoredItem,
    fitting_parts,
    get_items,
    item_metadata,
    item_vectors,
    kind_state,
    mean_length,
    pending_items,
)
from research.store.fulltext.item_words import WordWeights, asked_words, item_terms, score_words, titled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders import TextEncoder
    from research.search.item_view import Floats, View
    from research.store.catalog.reader import Reader

EMBED_SECONDS = 1.0  # that a question may spend on items without vectors; the next one goes on
_A_BATCH = 32
_MOST_WORDS = 48  # of a question; of a longer one the rarest
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
    heading: float = 0.0  # 0: the first part is one like the others
    title: float = 0.0
    # score = 1 / (1 + exp(-(sum · first - ln(rank) · second + third))): how often an item with this sum at this rank is
    # the right one.
    hybrid: tuple[float, float, float] = (4.9, 1.15, -3.9)
    lexical: tuple[float, float, float] = (4.4, 1.15, -3.0)


@dataclass(frozen=True, slots=True)
class FoundItem:
    item: StoredItem
    score: float  # calibrated: how likely it is that this answers, 0 to 1
    total: float
    parts: Mapping[str, float]  # words, vectors, heading, title


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
        if limit < 1 or not kind_state(reader, self.kind).count:
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

    def _view(self, reader: Reader, encoder: str) -> View:
        """The kind's items as this reader sees them, with the vectors of this encoder."""
        from research.search.item_view import read_view  # which needs numpy

        state = kind_state(reader, self.kind)
        with self._turn:
            known = self._views.get(encoder)
        view = known if known is not None and known.state == state else read_view(reader, self.kind, state, known)
        missing = view.without_vectors
        if encoder and len(missing):  # what is stored by now, by this process or another
            wanted = view.numbers[missing].tolist() if len(view.owners) else None
            view = view.with_vectors(*item_vectors(reader, self.kind, encoder, wanted))
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

    def _words(self, reader: Reader, view: View, text: str) -> dict[str, Floats]:
        """BM25 of each item as a share of the most it could reach, 0 to 1; and how much of its title was asked for."""
        import numpy as np

        terms = sorted(item_terms(reader, self.kind, asked_words(text)), key=lambda term: -term.idf)[:_MOST_WORDS]
        scores, most = np.zeros(len(view)), sum(term.idf for term in terms) or 1.0
        # FTS5 measures an item's length against items of all kinds: undone, and measured against those of its own.
        theirs = _FTS_K1 * (1.0 - _FTS_B + _FTS_B * view.lengths / max(1e-9, mean_length(reader)))
        norms = self.ranking.k1 * (1.0 - self.ranking.b + self.ranking.b * view.lengths / (view.lengths.mean() or 1.0))
        for term, found in score_words(reader, self.kind, terms, self.ranking.words):
            rows, here = view.places([number for number, _ in found])
            shares = np.minimum(np.array([share for _, share in found])[here], _ALMOST)
            counts = shares * theirs[rows] / (1.0 - shares)
            scores[rows] += term.idf * counts / (counts + norms[rows])
        signals = {"words": scores / most}
        if self.ranking.title:
            rows, _ = view.places(titled(reader, self.kind, terms))
            signals["title"] = np.minimum(1.0, np.bincount(rows, minlength=len(view)) / view.title_lengths)
        return signals

    def _allowed(self, reader: Reader, view: View, where: Where | None) -> NDArray[np.bool_]:
        import numpy as np

        flags = np.ones(len(view), bool)
        wanted = dict(where or {})
        unknown = [name for name in wanted if name not in view.columns]
        if unknown:
            found = {name: np.empty(len(view), object) for name in unknown}
            for row, (_, metadata) in enumerate(item_metadata(reader, self.kind)):
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
        best = rows[np.lexsort((rows, -totals[rows]))][:limit]
        slope, fall, start = ranking.hybrid if hybrid else ranking.lexical
        chosen: list[tuple[int, FoundItem]] = []
        for rank, row in enumerate(best.tolist(), start=1):
            total = float(totals[row])
            score = 1.0 / (1.0 + math.exp(-(total * slope - math.log(rank) * fall + start)))
            parts = {name: float(signal[row]) for name, signal in signals.items() if weights[name]}
            chosen.append((int(view.numbers[row]), FoundItem(_NOBODY, score, total, parts)))
        return chosen


_NOBODY = StoredItem(0, "", "", "", "", "", "")
