"""Counts that every question asks for, made so that they hardly grow with the index.

Counting a table walks its smallest index, which is quick; a condition on a column that no index holds would read the
rows themselves, with the text and vectors in them.
"""

from __future__ import annotations

from research.store.catalog.catalog import Catalog
from research.store.catalog.ledger import STAGE_VECTORS


def pages(catalog: Catalog) -> int:
    return _one(catalog, "SELECT COUNT(*) FROM pages")


def documents(catalog: Catalog) -> int:
    return _one(catalog, "SELECT COUNT(*) FROM documents")


def pages_without_text(catalog: Catalog) -> int:
    """Pages with no word on them, by full-text search's own table of lengths: a few bytes a page, the body's first."""
    return _one(catalog, "SELECT COUNT(*) FROM page_words_docsize WHERE substr(sz, 1, 1) = x'00'")


def finished_pages(catalog: Catalog) -> int:
    """Pages of documents whose chunks all have vectors."""
    unfinished = "SELECT COUNT(*) FROM pages WHERE doc_id IN (SELECT doc_id FROM ledger WHERE stage = ?)"
    return pages(catalog) - _one(catalog, unfinished, STAGE_VECTORS)


def pages_without_vectors(catalog: Catalog) -> int:
    """Pages with a chunk that waits for its vector."""
    # CROSS JOIN keeps SQLite to this order: from the few documents of the ledger to their chunks, not back from all.
    return _one(
        catalog,
        "SELECT COUNT(DISTINCT page_id) FROM ledger CROSS JOIN pages USING (doc_id) CROSS JOIN chunks USING (page_id)"
        " LEFT JOIN vectors USING (chunk_id) WHERE stage = ? AND seq IS NULL",
        STAGE_VECTORS,
    )


def vectors(catalog: Catalog) -> int:
    return _one(catalog, "SELECT COUNT(*) FROM vectors")


def vectors_after(catalog: Catalog, sequence: int) -> int:
    """Vectors written after a sequence number."""
    return _one(catalog, "SELECT COUNT(*) FROM vectors WHERE seq > ?", sequence)


def _one(catalog: Catalog, query: str, *values: object) -> int:
    figures = catalog.figures()
    if (query, values) not in figures:
        figures[query, values] = int(catalog.connection.execute(query, values).fetchone()[0])
    return figures[query, values]
