"""Ranks the pages of filings by the lines that a ratio is computed from.

What to look for is data (finance.toml, and the user's own tables). The plain question chooses the documents. If it
names a ratio, and documents among the first hold such statements, the pages of each of these are ranked by the longer
question among themselves (`Reranking`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from research.models import Rewrite
from research.search.legs import Ranked, Reranking
from research.search.rewriters.base import may_name_a_ratio
from research.search.rewriters.vocabulary import Entry, Table, read_table
from research.store.catalog.reader import Reader
from research.store.fulltext.search import documents_holding

NAME = "finance"
TABLE = Path(__file__).with_name("finance.toml")

# Documents after these are hardly what the question is about, and all of their pages are scored again.
_DOCUMENTS = 5
_BETWEEN = re.compile(r"[^\w&]+")


def expand(question: str, reader: Reader, ranked: Sequence[Ranked], own_tables: Sequence[str] = ()) -> Reranking | None:
    """The question with the lines of every ratio it names, for the documents to look for them in."""
    table = _table(own_tables)
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
    done = Rewrite(NAME, question, f"{question} {' '.join(added)}", why, documents)
    return Reranking(done.after, documents, keep_best=True, rewrite=done)


def row_names(question: str, own_tables: Sequence[str] = ()) -> list[str]:
    """What the rows are called that a question for a ratio or a line of a statement is answered by."""
    if not may_name_a_ratio(question, own_tables):
        return []
    return [row for _, entry in matches(question, _table(own_tables)) for row in (entry.rows or entry.lines)]


def _table(own_tables: Sequence[str]) -> Table:
    table = read_table(TABLE)
    for path in own_tables:
        table = table.extended(read_table(Path(path), known=table.statements))
    return table


def matches(question: str, table: Table) -> Iterator[tuple[str, Entry]]:
    """Each entry that the question names, with the name it used."""
    text = f" {_BETWEEN.sub(' ', question)} "
    lower = text.lower()
    shouted = question.isupper() and len(re.findall(r"[A-Z]{2,}", question)) > 1  # capitals tell nothing then
    for entry in table.entries:
        named = next((name for name in entry.names if f" {name} " in lower or f" {name}s " in lower), None)
        if named is None and not shouted:
            named = next((name for name in entry.capitals if f" {name} " in text), None)
        if named is not None:
            yield named, entry
