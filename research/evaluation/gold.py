"""The gold pages of a question file, looked up in the index: what can be measured, and what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from research.evaluation.questions import PageKey, Question, document_key
from research.records import DocumentInfo
from research.store.catalog.documents import all_documents, paths_of
from research.store.catalog.reader import Reader


@dataclass(frozen=True, slots=True)
class Gold:
    """A question with its gold pages under the names that search results carry."""

    question: Question
    pages: frozenset[PageKey]
    doc_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoldCheck:
    """What an index can be asked, and what of the gold it lacks."""

    askable: list[Gold]
    left_out: list[Question]  # no document of their gold is indexed: any ranking would score 0
    missing: dict[str, int]  # name of a gold document that is not indexed → questions that name it
    beyond: list[str]  # gold pages past their document's end, as file:page


def look_up(catalog: Reader, questions: Sequence[Question]) -> GoldCheck:
    """Find each gold document by its file name, or the name of a copy of it."""
    known = _documents_by_key(catalog)
    check = GoldCheck([], [], {}, [])
    for question in questions:
        documents = {name: known.get(document_key(name), []) for name, _ in question.gold}
        for name in (name for name, found in documents.items() if not found):
            check.missing[name] = check.missing.get(name, 0) + 1
        doc_ids = sorted({info.doc_id for found in documents.values() for info in found})
        if not doc_ids:
            check.left_out.append(question)
            continue
        pages: set[PageKey] = set()
        for name, page in question.gold:
            # What is missing stays in the gold: the question can be answered in part only, and scores so.
            pages |= {(document_key(info.filename), page) for info in documents[name]} or {(document_key(name), page)}
            if documents[name] and page > max(info.num_pages for info in documents[name]):
                check.beyond.append(f"{name}:{page}")
        check.askable.append(Gold(question, frozenset(pages), tuple(doc_ids)))
    return check


def _documents_by_key(catalog: Reader) -> dict[str, list[DocumentInfo]]:
    found: dict[str, list[DocumentInfo]] = {}
    copies: dict[str, list[DocumentInfo]] = {}
    for info in all_documents(catalog):
        found.setdefault(document_key(info.filename), []).append(info)
        for path in paths_of(catalog, info.doc_id):
            copies.setdefault(document_key(path), []).append(info)
    return {**copies, **found}
