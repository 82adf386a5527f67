"""The lexical leg: BM25 over words and word pairs of a page, and question words in the file name.

    words = BM25(words) / Σ idf                    at most 1
    pairs = 0.2 · BM25(adjacent words) / Σ idf     at most 0.2
    name  = Σ idf(words in file name or title) / Σ idf  at most 0.5
    score = (words + pairs + name) / 1.7           0 to 1

Σ idf over the question's words is the most BM25 can reach, so scores of different questions are on one scale. The
name is capped: a question made of a file's name would otherwise rank that file's pages by nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from research.search.legs import Hit, Hits
from research.store import lexical
from research.store.catalog import Catalog
from research.store.lexical import Term
from research.store.pages import get_pages, page_ids_of
from research.store.words import name_words, words

_PAIR_WEIGHT = 0.2
_MOST_NAME = 0.5
_SCALE = 1.0 + _PAIR_WEIGHT + _MOST_NAME
# A pasted page as a question is searched by its rarest words.
_MOST_WORDS = 48


class LexicalLeg:
    name = "lexical"

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def find(self, question: str, depth: int) -> Hits:
        terms, ordered = self._terms(question)
        pages = lexical.find_words(self._catalog, terms, limit=depth)
        pages |= set(lexical.score_pairs(self._catalog, ordered, limit=depth))
        if not pages:  # words that stand on no page may still name a document
            pages = set(sorted(page_ids_of(self._catalog, self._named(question)))[:depth])
        return self._score(question, terms, ordered, sorted(pages))

    def score(self, question: str, page_ids: Sequence[int]) -> Hits:
        terms, ordered = self._terms(question)
        return self._score(question, terms, ordered, page_ids)

    def _terms(self, question: str) -> tuple[list[Term], list[str]]:
        """The question's words with their weights, and the words in order for pairs."""
        ordered = words(question)
        terms = lexical.term_statistics(self._catalog, ordered)
        if len(terms) > _MOST_WORDS:
            terms = sorted(terms, key=lambda term: -term.idf)[:_MOST_WORDS]
        kept = {term.word for term in terms}
        return terms, [word for word in ordered if word in kept]

    def _score(self, question: str, terms: list[Term], ordered: list[str], page_ids: Sequence[int]) -> Hits:
        most = sum(term.idf for term in terms)
        if most <= 0 or not page_ids:
            return {}
        by_words = lexical.score_words(self._catalog, terms, page_ids)
        by_pairs = lexical.score_pairs(self._catalog, ordered, limit=0, only=page_ids)
        by_name = self._name_scores(question, page_ids)
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
        """doc_id → weight of the question's words in its file name."""
        plain = name_words(question)
        # "Best Buy" in a question names BESTBUY_2023.pdf.
        joined = [a + b for a, b in pairwise(plain)]
        return lexical.name_matches(self._catalog, [*plain, *joined])

    def _name_scores(self, question: str, page_ids: Sequence[int]) -> dict[int, float]:
        documents = self._named(question)
        if not documents:
            return {}
        pages = get_pages(self._catalog, list(page_ids))
        return {page_id: documents.get(page.doc_id, 0.0) for page_id, page in pages.items()}
