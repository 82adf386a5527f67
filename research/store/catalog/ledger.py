"""The ledger: what a document still needs, stage by stage. A finished document is not in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from research.store.catalog.catalog import Catalog
from research.store.catalog.reader import Reader

STAGE_READ = "read"
STAGE_VECTORS = "vectors"
STAGE_IMAGES = "images"
STAGE_OCR = "ocr"
STAGE_VISUAL = "visual"

WHOLE = 0  # the page number that stands for all pages of a document

STAGES = frozenset({STAGE_READ, STAGE_VECTORS, STAGE_IMAGES, STAGE_OCR, STAGE_VISUAL})

# Chunks without a vector, with `STAGE_VECTORS` as its one value. Subqueries, not joins: from the few documents of the
# ledger to their chunks, never back from all chunks there are.
PENDING_CHUNKS = (
    "SELECT chunks.chunk_id, chunks.page_id FROM chunks LEFT JOIN vectors ON vectors.chunk_id = chunks.chunk_id"
    " WHERE chunks.page_id IN (SELECT page_id FROM pages WHERE doc_id IN (SELECT doc_id FROM ledger WHERE stage = ?))"
    " AND vectors.seq IS NULL"
)


def open_stage(connection: sqlite3.Connection, doc_ids: Iterable[str], stage: str) -> None:
    """The stage is due for these documents; part of the caller's transaction."""
    connection.executemany(
        "INSERT INTO ledger (doc_id, stage) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(doc_id, stage) for doc_id in doc_ids],
    )


def unfinished(reader: Reader) -> dict[str, list[str]]:
    """Outstanding work: stage → document ids."""
    found: dict[str, list[str]] = {}
    for row in reader.connection.execute("SELECT doc_id, stage FROM ledger"):
        found.setdefault(str(row["stage"]), []).append(str(row["doc_id"]))
    return found


def count_pending(reader: Reader) -> int:
    row = reader.connection.execute(f"SELECT COUNT(*) FROM ({PENDING_CHUNKS}) AS pending", (STAGE_VECTORS,)).fetchone()
    return int(row[0])


def close_ledger(catalog: Catalog) -> None:
    """Strike off every document whose chunks all have vectors."""
    with catalog.transaction() as connection:
        connection.execute(
            "DELETE FROM ledger WHERE stage = ? AND doc_id NOT IN"
            f" (SELECT doc_id FROM pages WHERE page_id IN (SELECT page_id FROM ({PENDING_CHUNKS}) AS pending))",
            (STAGE_VECTORS, STAGE_VECTORS),
        )


def pages_for_ocr(reader: Reader, doc_id: str) -> list[int]:
    query = "SELECT page FROM pages WHERE doc_id = ? AND needs_ocr = 1 ORDER BY page"
    rows = reader.connection.execute(query, (doc_id,))
    return [int(row[0]) for row in rows]


def count_for_ocr(reader: Reader) -> int:
    """Pages that wait for OCR, looked for in the documents of the ledger: all pages would be the whole index read."""
    row = reader.connection.execute(
        "SELECT COUNT(*) FROM pages WHERE needs_ocr = 1 AND doc_id IN (SELECT doc_id FROM ledger WHERE stage = ?)",
        (STAGE_OCR,),
    ).fetchone()
    return int(row[0])


def ask_for_images(catalog: Catalog) -> None:
    """Put every document without a single image on the ledger, unless all of its pages were given up."""
    with catalog.transaction() as connection:
        connection.execute(
            "INSERT INTO ledger SELECT doc_id, ? FROM pages GROUP BY doc_id HAVING MAX(image) = 0"
            " AND COUNT(*) > (SELECT COUNT(DISTINCT page) FROM failed_pages f WHERE f.doc_id = pages.doc_id"
            " AND stage IN (?, ?)) AND NOT EXISTS (SELECT 1 FROM failed_pages f WHERE f.doc_id = pages.doc_id"
            " AND stage = ? AND page = ?) ON CONFLICT DO NOTHING",
            (STAGE_IMAGES, STAGE_READ, STAGE_IMAGES, STAGE_IMAGES, WHOLE),
        )


def close_ocr(connection: sqlite3.Connection, doc_id: str) -> None:
    connection.execute(
        "DELETE FROM ledger WHERE doc_id = ? AND stage = ?"
        " AND NOT EXISTS (SELECT 1 FROM pages WHERE pages.doc_id = ledger.doc_id AND needs_ocr = 1)",
        (doc_id, STAGE_OCR),
    )
