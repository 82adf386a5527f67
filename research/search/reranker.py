"""A reranker: a model that reads a question and a page's passages together, and orders the first pages by that.

It is the user's own choice and off by default. It changes the order of the first pages and nothing else: each place
keeps the score it had, so that a score goes on meaning how likely the page in this place is to answer. Whatever goes
wrong costs only itself: the order is then as it was, and a note in `coverage` says so.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from research.addresses import is_reranker_address
from research.errors import CtxError
from research.models import Item, LegScore, Question, Ref
from research.search.legs import Ranked, Reranked
from research.store.catalog.pages import get_pages_with_text
from research.text import embedding_text

if TYPE_CHECKING:
    from research.search.highlights import Highlighter
    from research.store.catalog.pages import StoredPage
    from research.store.catalog.reader import Reader

DEPTH = 30  # pages that are looked at
_LONGEST = 1000  # characters of a page without passages


class Reranker(Protocol):
    """Implementations: one file each, chosen by `load_reranker`."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers, on a scale of its own: the higher the better. Raises `CtxError`."""
        ...


def load_reranker(name: str, timeout: int = 0) -> Reranker:
    """By what the user wrote: an address, or a cross-encoder's folder or hub name. Raises `CtxError` if it is not on
    this machine; nothing is fetched. An address is not asked yet; `timeout` is how many seconds it may take."""
    if is_reranker_address(name):
        from research.search.rerank_api import RerankApi

        return RerankApi(name, timeout=timeout)
    from research.search.cross_encoder import CrossEncoderReranker

    return CrossEncoderReranker(name)


def describe(name: str, timeout: int = 0) -> str:
    """What the reranker makes of two texts, in words. Raises `CtxError` if it cannot be had."""
    started = time.monotonic()
    reranker = load_reranker(name, timeout)
    right, wrong = _scores(reranker, "What do boats need?", ["Boats need water.", "Herring is a fish."])
    seconds = time.monotonic() - started
    return f"{name} answers in {1000 * seconds:.0f} ms: {right:.3f} for a text that answers, {wrong:.3f} for another"


class PageReranker:
    """Orders the first pages of a ranking. Loads its model with the first question."""

    name = "reranker"

    def __init__(self, model: str, highlighter: Highlighter, timeout: int = 0) -> None:
        self._model = model
        self._highlighter = highlighter
        self._timeout = timeout
        self._loaded: Reranker | None = None
        self._loading = threading.Lock()

    def rerank(self, reader: Reader, question: Question, ranked: Sequence[Ranked], keep: Collection[int]) -> Reranked:
        try:
            return self._reranked(reader, question, ranked, keep)
        except CtxError as error:
            reason = error.message
        except Exception as error:  # noqa: BLE001  whatever a model's library raises: the answer stands without it
            from research.observe.log import log_failure

            log_failure("search", "the reranker failed", error)
            reason = f"{type(error).__name__}: {error}"
        question.notes.append(f"the reranker failed ({reason}); the pages stand in their order without it")
        return Reranked(ranked)

    def _reranked(
        self, reader: Reader, question: Question, ranked: Sequence[Ranked], keep: Collection[int]
    ) -> Reranked:
        texts = self._texts(reader, question, [page for page in ranked[:DEPTH] if page.page_id not in keep])
        if len(texts) < 2:
            return Reranked(ranked)
        scores = dict(zip(texts, _scores(self._reranker(), question.text, list(texts.values())), strict=True))
        places = [place for place, page in enumerate(ranked[:DEPTH]) if page.page_id in scores]
        best = sorted(places, key=lambda place: -scores[ranked[place].page_id])  # of equals the one that stood first
        ordered = list(ranked)
        for place, chosen in zip(places, best, strict=True):
            ordered[place] = ranked[chosen]._replace(score=ranked[place].score)
        ranks = {ranked[place].page_id: rank for rank, place in enumerate(best, start=1)}
        return Reranked(ordered, {page_id: LegScore(ranks[page_id], score) for page_id, score in scores.items()})

    def _permitted(self, question: Question, items: Sequence[Item]) -> set[str]:
        """Refs of those whose text the model may be sent, if it is at an address; the others keep their places."""
        from research.addresses import is_reranker_address

        refs = [str(item.ref) for item in items]
        unbound = question.sendable is None or not is_reranker_address(self._model)
        return set(refs) if unbound or question.sendable is None else set(question.sendable(refs))

    def _texts(self, reader: Reader, question: Question, pages: Sequence[Ranked]) -> dict[int, str]:
        """page_id → what the model reads of it; a page without text is left out, and so keeps its place."""
        known = get_pages_with_text(reader, [page.page_id for page in pages])
        stored = {page.page_id: known[page.page_id] for page in pages if known[page.page_id][1].text.strip()}
        worth = {page.page_id: page.score for page in pages}
        items = [
            Item(Ref("page", page.doc_id, str(page.page)), page.title, found.text, worth[page_id], structure=found)
            for page_id, (page, found) in stored.items()
        ]
        permitted = self._permitted(question, items)
        read = self._highlighter.passages(reader, question, items, list(stored))
        return {
            page_id: _read(page, [each.text for each in item.passages] or [item.text[:_LONGEST]])
            for (page_id, (page, _)), item in zip(stored.items(), read, strict=True)
            if str(item.ref) in permitted
        }

    def _reranker(self) -> Reranker:
        with self._loading:
            if self._loaded is None:
                self._loaded = load_reranker(self._model, self._timeout)
            return self._loaded


def _read(page: StoredPage, passages: Sequence[str]) -> str:
    """Passages under the names of their document and section, as an encoder is given them: of twenty annual reports,
    only that says whose revenue it is."""
    context = " > ".join(name for name in (page.title or page.filename, page.section_path) if name)
    return embedding_text(context, "\n".join(passages))


def _scores(reranker: Reranker, question: str, texts: Sequence[str]) -> list[float]:
    """One finite number a text, or `CtxError`."""
    scores = reranker.score(question, texts)
    if len(scores) != len(texts):
        raise CtxError(f"it gives {len(scores)} scores for {len(texts)} texts")
    if not all(math.isfinite(score) for score in scores):
        raise CtxError("it gives a score that is no number")
    return scores
