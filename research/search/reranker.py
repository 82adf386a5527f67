"""A reranker: a model that reads a question and a page's passages together, and has a say in the order of the first
pages.

Its scores are mixed with ours: a model that ranks prose well puts tables and lists in disorder. What a page number, a
part of a document or a ratio in the question chose keeps its place, and a named document its pages'. It is the user's
own choice and off by default. It changes the order of the first pages and nothing else: each place keeps the score it
had, so that a score goes on meaning how likely the page in this place is to answer. Whatever goes wrong costs only
itself: the order is then as it was, and a note in `coverage` says so.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from research.addresses import is_reranker_address
from research.errors import CtxError
from research.models import Item, LegScore, Question, Ref
from research.search.legs import Chosen, Ranked, Reranked
from research.store.catalog.pages import get_pages_with_text
from research.text import embedding_text

if TYPE_CHECKING:
    from research.search.highlights import Highlighter
    from research.store.catalog.pages import StoredPage
    from research.store.catalog.reader import Reader

DEPTH = 12  # pages that are looked at
WEIGHT = 0.3  # of the model's scores beside ours, both from 0 to 1 among the pages that are looked at
_WINDOW = 75  # words: a model that was trained on passages reads no more than that as well, and long ones cost most
_WINDOWS = 3  # of a page, its best passages first


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
    from research.search.cross_encoder import CrossEncoderReranker, OnnxReranker, find_onnx

    model = find_onnx(name)
    return OnnxReranker(model, name) if model is not None else CrossEncoderReranker(name)


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

    def rerank(self, reader: Reader, question: Question, ranked: Sequence[Ranked], chosen: Chosen) -> Reranked:
        """The pages in their new order; those that a booster or the lines of a ratio chose keep their places, and a
        place that a page of a named document has goes to such a page."""
        try:
            return self._reranked(reader, question, ranked, chosen)
        except CtxError as error:
            reason = error.message
        except Exception as error:  # noqa: BLE001  whatever a model's library raises: the answer stands without it
            from research.observe import log_failure

            log_failure("search", "the reranker failed", error)
            reason = f"{type(error).__name__}: {error}"
        question.notes.append(f"the reranker failed ({reason}); the pages stand in their order without it")
        return Reranked(ranked)

    def _reranked(self, reader: Reader, question: Question, ranked: Sequence[Ranked], chosen: Chosen) -> Reranked:
        keep = chosen.boosted | chosen.by_lines
        texts = self._texts(reader, question, [page for page in ranked[:DEPTH] if page.page_id not in keep])
        if len(texts) < 2:
            return Reranked(ranked)
        scores = self._best(question.text, texts)
        places = [place for place, page in enumerate(ranked) if page.page_id in scores]
        # A place is worth what it is, whatever the page that a name or a booster put there had scored.
        own = _scaled(sorted((ranked[place].score for place in places), reverse=True))
        its = _scaled([scores[ranked[place].page_id] for place in places])
        mixed = {place: a + WEIGHT * b for place, a, b in zip(places, own, its, strict=True)}
        ordered = list(ranked)
        for of_named in (True, False):
            among = [place for place in places if (ranked[place].doc_id in chosen.documents) is of_named]
            best = sorted(among, key=lambda place: -mixed[place])  # of equals the one that stood first
            for place, other in zip(among, best, strict=True):
                ordered[place] = ranked[other]._replace(score=ranked[place].score)
        ranks = {ordered[place].page_id: rank for rank, place in enumerate(places, start=1)}
        return Reranked(ordered, {page_id: LegScore(ranks[page_id], score) for page_id, score in scores.items()})

    def _best(self, question: str, texts: Mapping[int, Sequence[str]]) -> dict[int, float]:
        """page_id → the score of its best window."""
        windows = [(page_id, text) for page_id, windows in texts.items() for text in windows]
        scores: dict[int, float] = {}
        for (page_id, _), score in zip(
            windows, _scores(self._reranker(), question, [text for _, text in windows]), strict=True
        ):
            scores[page_id] = max(score, scores.get(page_id, score))
        return scores

    def _permitted(self, question: Question, items: Sequence[Item]) -> set[str]:
        """Refs of those whose text the model may be sent, if it is at an address; the others keep their places."""
        from research.addresses import is_reranker_address

        refs = [str(item.ref) for item in items]
        unbound = question.sendable is None or not is_reranker_address(self._model)
        return set(refs) if unbound or question.sendable is None else set(question.sendable(refs))

    def _texts(self, reader: Reader, question: Question, pages: Sequence[Ranked]) -> dict[int, list[str]]:
        """page_id → the windows that the model reads of it; a page without text is left out, and so keeps its place."""
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
            page_id: _windows(page, [each.text for each in item.passages] or [item.text])
            for (page_id, (page, _)), item in zip(stored.items(), read, strict=True)
            if str(item.ref) in permitted
        }

    def _reranker(self) -> Reranker:
        with self._loading:
            if self._loaded is None:
                self._loaded = load_reranker(self._model, self._timeout)
            return self._loaded


def _windows(page: StoredPage, passages: Sequence[str]) -> list[str]:
    """Windows of passages under the names of their document and section, as an encoder is given them: of twenty annual
    reports, only that says whose revenue it is."""
    context = " > ".join(name for name in (page.title or page.filename, page.section_path) if name)
    cut = (words[at : at + _WINDOW] for words in map(str.split, passages) for at in range(0, len(words), _WINDOW))
    return [embedding_text(context, " ".join(words)) for words in islice(cut, _WINDOWS)]


def _scaled(scores: Sequence[float]) -> list[float]:
    """From 0, the lowest, to 1, the highest."""
    least, most = min(scores), max(scores)
    return [(score - least) / (most - least or 1.0) for score in scores]


def _scores(reranker: Reranker, question: str, texts: Sequence[str]) -> list[float]:
    """One finite number a text, or `CtxError`."""
    scores = reranker.score(question, texts)
    if len(scores) != len(texts):
        raise CtxError(f"it gives {len(scores)} scores for {len(texts)} texts")
    if not all(math.isfinite(score) for score in scores):
        raise CtxError("it gives a score that is no number")
    return scores
