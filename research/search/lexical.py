"""The lexical leg: BM25 over words and word pairs of a page, and question words in the file name.

    words = BM25(words) / Σ idf                    at most 1; of rare words at least what search/rare.py says
    pairs = 0.2 · BM25(adjacent words) / Σ idf     at most 0.2
    name  = Σ idf(words in file name or title) / Σ idf  at most 0.5
    score = (words + pairs + name) / 1.7           0 to 1

Σ idf over the question's words is the most BM25 can reach, so scores of different questions are on one scale. The
name is capped: a question made of a file's name would otherwise rank that file's pages by nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from research.search import rare
from research.search.legs import Hit, Hits
from research.store.catalog.catalog import Catalog
from research.store.catalog.pages import documents_of, page_ids_of
from research.store.fulltext import search
from research.store.fulltext.analyzer import name_words, words
from research.store.fulltext.search import Floors, Term

_PAIR_WEIGHT = 0.2
_MOST_NAME = 0.5
_SCALE = 1.0 + _PAIR_WEIGHT + _MOST_NAME
# A pasted page as a question is searched by its rarest words.
_MOST_WORDS = 48


@dataclass(slots=True)
class _Question:
    """A question as this leg sees it."""

    text: str
    terms: list[Term]  # its words with their weights
    ordered: list[str]  # the same words as they stand in it, for pairs
    documents: dict[str, float]  # doc_id → weight of its words in the file name
    floors: Floors  # the least that its rare words count
    pairs: dict[int, float] | None = None  # page_id → score of its pairs, where all of them are known


class LexicalLeg:
    name = "lexical"

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._last: _Question | None = None

    def find(self, question: str, depth: int) -> Hits:
        pages = self.find_pages(question, depth)
        return self.score(question, sorted(pages))

    def find_pages(self, question: str, depth: int) -> set[int]:
        """`find` without the scores, which cost more than the finding."""
        # Statistics are taken anew with every question, and kept for the scores that are asked for after it.
        asked = self._last = self._read(question)
        pages = search.find_words(self._catalog, asked.terms, limit=depth)
        paired, complete = search.find_pairs(self._catalog, asked.ordered, limit=depth)
        pages |= set(islice(paired, depth))
        # Short pages with the question's other words may be more than the depth, and each before the one that is meant.
        pages.update(page_id for least in asked.floors.values() for page_id in least)
        asked.pairs = paired if complete else None
        if not pages:  # words that stand on no page may still name a document
            pages = set(sorted(page_ids_of(self._catalog, asked.documents))[:depth])
        return pages

    def score(self, question: str, page_ids: Sequence[int]) -> Hits:
        last = self._last
        return self._score(last if last is not None and last.text == question else self._read(question), page_ids)

    def _read(self, question: str) -> _Question:
        ordered = words(question)
        terms = search.term_statistics(self._catalog, ordered)
        if len(terms) > _MOST_WORDS:
            terms = sorted(terms, key=lambda term: -term.idf)[:_MOST_WORDS]
        kept = {term.word for term in terms}
        floors = rare.floors(self._catalog, question, terms)
        return _Question(question, terms, [word for word in ordered if word in kept], self._named(question), floors)

    def _score(self, asked: _Question, page_ids: Sequence[int]) -> Hits:
        most = sum(term.idf for term in asked.terms)
        if most <= 0 or not page_ids:
            return {}
        by_words = search.score_words(self._catalog, asked.terms, page_ids, asked.floors)
        by_pairs = asked.pairs
        if by_pairs is None:
            by_pairs = search.score_pairs(self._catalog, asked.ordered, page_ids)
        by_name = self._name_scores(asked, page_ids)
        hits: Hits = {}
        for page_id in page_ids:
            parts = {
                "words": by_words.get(page_id, 0.0) / most / _SCALE,
                "pairs": _PAIR_WEIGHT * min(1.0, by_pairs.get(page_id, 0.0) / most) / _SCALE,
                "name": min(_MOST_NAME, by_name.get(page_id, 0.0) / most) / _SCALE,
            }
            total = sum(parts.values())
            if total > 0:
                hits[page_id] = Hit(total, parts)
        return hits

    def _named(self, question: str) -> dict[str, float]:
        plain = name_words(question)
        # "Best Buy" in a question names BESTBUY_2023.pdf.
        joined = [a + b for a, b in pairwise(plain)]
        return search.name_matches(self._catalog, [*plain, *joined])

    def _name_scores(self, asked: _Question, page_ids: Sequence[int]) -> dict[int, float]:
        if not asked.documents:
            return {}
        owners = documents_of(self._catalog, page_ids)
        return {page_id: asked.documents.get(doc_id, 0.0) for page_id, doc_id in owners.items()}
