"""Answers questions for a part of a document: "Summarise the RAPTOR paper", "who wrote it", "references of X".

The words of such a question stand on many pages and seldom on the one that is meant: no abstract says "abstract of
RAPTOR". So the document is found by its name, the part by its headings or its place, and the pages of the part come
first. Nothing is done where words are left that do not name the document: those are about something in it.

A question that is a document's name and no more ("raptor", "what is RAPTOR?") brings its title page among the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from research.models import FoundPart, Question
from research.search.legs import Boosted, Ranked

if TYPE_CHECKING:
    from research.search.boosters.part_questions import PartQuestion
    from research.store.catalog.reader import Reader

NAME = "document-parts"

# What is longer is a pasted text.
_MOST_LETTERS = 400
_MOST_NAME = 4  # words; with more, the pages that hold them say as much
# Where a title page comes that says no more than the title.
_AMONG_THE_FIRST = 3


class DocumentPartsBooster:
    """The booster of the pages that hold the part of a document that is asked for."""

    name = NAME

    def concerns(self, question: str) -> bool:
        return len(question) <= _MOST_LETTERS

    def boost(self, question: Question, reader: Reader, ranked: Sequence[Ranked]) -> Boosted:
        from research.search.boosters.page_references import references_in
        from research.search.boosters.part_questions import NAMED_SECTION, name_question, part_question

        if not ranked or references_in(question.text):
            return Boosted(ranked)
        ranking = list(dict.fromkeys(page.doc_id for page in ranked))
        asked = part_question(question.wording)
        if asked is None:
            return _with_title_page(reader, name_question(question.wording), ranking, ranked)
        if asked.parts == (NAMED_SECTION,):
            return _lifted(_named_section(reader, asked, ranking), ranked)
        return _parts(reader, asked, ranked, question.about)


def _lifted(
    pages: Sequence[tuple[int, str]],
    ranked: Sequence[Ranked],
    place: int = 0,
    parts: Mapping[int, FoundPart] | None = None,
) -> Boosted:
    """The ranking with these pages (page_id, doc_id) at a place, with the score of what stood there."""
    chosen = dict(pages)
    score = ranked[min(place, len(ranked) - 1)].score
    others = [page for page in ranked if page.page_id not in chosen]
    lifted = [Ranked(page_id, doc_id, score) for page_id, doc_id in chosen.items()]
    return Boosted([*others[:place], *lifted, *others[place:]], frozenset(chosen), parts=parts or {})


def _parts(reader: Reader, asked: PartQuestion, ranked: Sequence[Ranked], about: Mapping[str, float]) -> Boosted:
    from research.search.boosters.named_documents import documents_meant
    from research.search.boosters.part_pages import pages_of_parts

    documents = documents_meant(reader, asked, ranked, about)
    parts = {doc_id: pages_of_parts(reader, doc_id, asked) for doc_id in documents}
    found = [[(page_id, doc_id) for page_id in pages] for doc_id, pages in parts.items()]
    # Of several documents that may be meant, first the first page of each.
    pages = [pages[0] for pages in found if pages] + [page for pages in found for page in pages[1:]]
    known = {page_id: part for pages in parts.values() for page_id, part in pages.items() if part is not None}
    return _lifted(pages, ranked, parts=known)


def _named_section(reader: Reader, asked: PartQuestion, ranking: Sequence[str]) -> list[tuple[int, str]]:
    from research.search.boosters.named_documents import documents_with_section
    from research.search.boosters.part_pages import page_of_section

    for doc_id, words, needed in documents_with_section(reader, asked, ranking):
        page_id = page_of_section(reader, doc_id, words, needed)
        if page_id is not None:
            return [(page_id, doc_id)]
    return []


def _with_title_page(reader: Reader, asked: PartQuestion, ranking: Sequence[str], ranked: Sequence[Ranked]) -> Boosted:
    """Where the question is no more than a name: the title page first if it says what the document is about, or else
    among the first."""
    if not 0 < len(asked.rest) <= _MOST_NAME:
        return Boosted(ranked)
    from research.search.boosters.named_documents import documents_called
    from research.store.fulltext.naming import front_pages

    [doc_id, *others] = documents_called(reader, asked.rest, asked.document, ranking) or [""]
    fronts = front_pages(reader, [doc_id]).get(doc_id, []) if not others else []
    if not fronts:
        return Boosted(ranked)
    place = 0 if fronts[0].has_text else _AMONG_THE_FIRST - 1
    if any(page.page_id == fronts[0].page_id for page in ranked[: place + 1]):
        return Boosted(ranked)
    return _lifted([(fronts[0].page_id, doc_id)], ranked, place)
