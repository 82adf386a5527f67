"""Ranks the pages of filings by the lines that a ratio is computed from.

What to look for is data (finance.toml, and the user's own tables). The plain question chooses the documents. If it
names a ratio, and documents among the first hold such statements, the pages of each of these are ranked by the longer
question among themselves. They share the places that their document has already: no other document moves. A page that
stands out by the plain question stays, and none of its best falls far.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from research.models import Rewrite
from research.search.legs import Ranked
from research.search.rewriters.vocabulary import Entry, Table, read_table
from research.store.catalog.reader import Reader
from research.store.fulltext.search import documents_holding

NAME = "finance"
TABLE = Path(__file__).with_name("finance.toml")

# Documents after these are hardly what the question is about, and all of their pages are scored again.
_DOCUMENTS = 5
# Up to so many first pages of a document stay, if the score falls by so much after them. On filings, where nearly all
# answers are in the statements, the longer question agrees about such pages.
_STANDING_OUT = 3
_GAP = 0.03
# So many pages of the longer question may come before the best of the plain one; then they take turns.
_AHEAD = 5
_BETWEEN = re.compile(r"[^\w&]+")


def expand(question: str, reader: Reader, ranked: Sequence[Ranked], own_tables: Sequence[str] = ()) -> Rewrite | None:
    """The question with the lines of every ratio it names, and the documents to look for them in."""
    table = read_table(TABLE)
    for path in own_tables:
        table = table.extended(read_table(Path(path), known=table.statements))
    matched = list(matches(question, table))
    if not matched:
        return None
    first = list(dict.fromkeys(page.doc_id for page in ranked))[:_DOCUMENTS]
    kinds = dict.fromkeys(kind for _, entry in matched for kind in entry.statements)
    holding = {kind: documents_holding(reader, first, table.statements[kind]) for kind in kinds}
    acting = [(name, entry) for name, entry in matched if any(holding[kind] for kind in entry.statements)]
    documents = tuple(
        doc_id for doc_id in first if any(doc_id in holding[kind] for _, entry in acting for kind in entry.statements)
    )
    if not documents:
        return None
    added = dict.fromkeys(word for _, entry in acting for word in entry.lines)
    names = ", ".join(dict.fromkeys(name for name, _ in acting))
    why = f"{names}: looked for the lines it is computed from, in documents that hold such statements"
    return Rewrite(NAME, question, f"{question} {' '.join(added)}", why, documents)


def matches(question: str, table: Table) -> Iterator[tuple[str, Entry]]:
    """Each entry that the question names, with the name it used."""
    text = f" {_BETWEEN.sub(' ', question)} "
    lower = text.lower()
    shouted = question.isupper()  # nothing can be told from capitals then
    for entry in table.entries:
        named = next((name for name in entry.names if f" {name} " in lower or f" {name}s " in lower), None)
        if named is None and not shouted:
            named = next((name for name in entry.capitals if f" {name} " in text), None)
        if named is not None:
            yield named, entry


def merge(plain: Sequence[Ranked], expanded: Sequence[Ranked], documents: Sequence[str]) -> list[Ranked]:
    """The plain ranking, in which the pages of each of these documents stand in the order of the expanded one.

    A page takes the score of the place it comes to. Pages that only the expanded question found push the last ones of
    their document to the end.
    """
    order = {doc_id: _order(doc_id, plain, expanded) for doc_id in documents}
    places = {doc_id: iter(pages) for doc_id, pages in order.items()}
    merged = [
        Ranked(next(places[page.doc_id]), page.doc_id, page.score) if page.doc_id in places else page for page in plain
    ]
    least = min((page.score for page in plain), default=0.0)
    merged += [Ranked(page_id, doc_id, least) for doc_id, rest in places.items() for page_id in rest]
    return merged


def _order(doc_id: str, plain: Sequence[Ranked], expanded: Sequence[Ranked]) -> list[int]:
    """The pages of one document: those that stand out, then by the better of two ranks, the plain one with a delay."""
    own = [page for page in plain if page.doc_id == doc_id]
    fall = {n: own[n - 1].score - own[n].score for n in range(1, min(len(own), _STANDING_OUT + 1))}
    staying = max((n for n, gap in fall.items() if gap >= _GAP), default=0)
    rank = {page.page_id: n + _AHEAD - 0.5 for n, page in enumerate(own, start=1)}
    found = (page.page_id for page in expanded if page.doc_id == doc_id)
    rank.update((page_id, min(n, rank.get(page_id, n))) for n, page_id in enumerate(found, start=1))
    rank.update((page.page_id, n - staying) for n, page in enumerate(own[:staying]))
    return sorted(rank, key=lambda page_id: rank[page_id])
