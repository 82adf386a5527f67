"""Answers a question for documents by documents, with a page of each, the best documents first.

A document belongs to the answer if a page of it holds all of the topic's words, or if it is nearly as good as the best
without them. Where documents are to be about the topic, and not only to mention it, those far behind the best are left
out, and one that has the words in its name or on its first page is shown by that: it says what the document is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from research.models import Question
from research.search.legs import Boosted, Ranked
from research.search.rewriters.base import may_ask_for_documents

if TYPE_CHECKING:
    from research.search.collection_questions import CollectionQuestion
    from research.store.catalog.reader import Reader

NAME = "collection"

# How much of the best document's score one must have without the words, and with them where it is to be about them.
_NEARLY = 0.75
_ABOUT = 0.5
_SHOWN = 100  # more are hardly looked at


class CollectionBooster:
    """The booster of documents, where a question asks for documents."""

    name = NAME

    def concerns(self, question: str) -> bool:
        if not may_ask_for_documents(question):
            return False
        from research.search.collection_questions import collection_question

        return collection_question(question) is not None

    def boost(self, question: Question, reader: Reader, ranked: Sequence[Ranked]) -> Boosted:
        from research.search.collection_questions import collection_question
        from research.store.fulltext.documents_about import pages_with_all

        asked = collection_question(question.text)
        if asked is None or not ranked:
            return Boosted(ranked)
        holding = pages_with_all(reader, asked.topic)
        named = list(_documents(asked, ranked, holding))
        if not asked.mentions:
            named = _by_first_page(reader, asked, named)
        # Those without the words are near, and no more: nobody shall take them for what was asked for.
        sure = frozenset(page.page_id for page in named if page.doc_id in holding)
        return Boosted(named, sure, "documents")


def _documents(asked: CollectionQuestion, ranked: Sequence[Ranked], holding: Mapping[str, int]) -> Iterator[Ranked]:
    """The best page of each document of the answer. `holding`: doc_id → the best page with all words of the topic."""
    best: dict[str, Ranked] = {}
    for page in ranked:
        best.setdefault(page.doc_id, page)
    top = ranked[0].score
    for doc_id, page in best.items():
        share = (0.0 if asked.mentions else _ABOUT) if doc_id in holding else _NEARLY
        if page.score >= share * top:
            yield page
    if asked.mentions:  # one with a thousand better pages may leave no place for others that speak of it once
        least = min(page.score for page in ranked)
        yield from (Ranked(page_id, doc_id, least) for doc_id, page_id in holding.items() if doc_id not in best)


def _by_first_page(reader: Reader, asked: CollectionQuestion, named: Sequence[Ranked]) -> list[Ranked]:
    from research.store.fulltext.analyzer import analyze
    from research.store.fulltext.naming import front_pages, named_words, words_on

    words = set(analyze(asked.topic))
    called = named_words(reader, words)
    fronts = front_pages(reader, [page.doc_id for page in named[:_SHOWN]])
    first = {doc_id: pages[0].page_id for doc_id, pages in fronts.items() if pages[0].words}
    held = words_on(reader, list(first.values()), words)

    def shown(page: Ranked) -> Ranked:
        front = first.get(page.doc_id, page.page_id)
        fits = held.get(front, set()) >= words or called.get(page.doc_id, set()) >= words
        return page._replace(page_id=front) if fits else page

    return [shown(page) for page in named]
