"""The ledger: what a document still needs, stage by stage. A finished document is not in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

STAGE_READ = "read"
STAGE_VECTORS = "vectors"
STAGE_IMAGES = "images"
STAGE_OCR = "ocr"
STAGE_VISUAL = "visual"

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
