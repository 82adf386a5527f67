"""Writing pages: new ones, and what OCR and drawing add to them later."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence

from research.records import Chunk, FailedPage, Line, Page
from research.store.catalog.catalog import Catalog
from research.store.catalog.failures import WHOLE, add_tries, failures_of, forget, record, waits
from research.store.catalog.ledger import STAGE_IMAGES, STAGE_OCR, STAGE_READ, STAGE_VECTORS
from research.store.catalog.page_vectors import write_lines
from research.store.catalog.revision import revise
from research.store.fulltext.analyzer import words


def insert_page(connection: sqlite3.Connection, doc_id: str, page: Page, chunks: list[Chunk]) -> None:
    """A new page with its words and chunks."""
    found = words(page.markdown)
    cursor = connection.execute(
        "INSERT INTO pages (doc_id, page, label, section_path, parent_heading, num_headings, num_tables,"
        " num_pictures, error, words, markdown, needs_ocr, ocr_engine)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            doc_id,
            page.number,
            page.label,
            page.section_path,
            page.parent_heading,
            page.num_headings,
            page.num_tables,
            page.num_pictures,
            page.error,
            len(found),
            zlib.compress(page.markdown.encode()),
            page.needs_ocr,
            page.ocr_engine,
        ),
    )
    page_id = cursor.lastrowid
    assert page_id is not None
    _insert_text(connection, page_id, page, found, chunks)


def _insert_text(
    connection: sqlite3.Connection, page_id: int, page: Page, found: list[str], chunks: list[Chunk]
) -> None:
    connection.execute(
        "INSERT INTO page_words (rowid, body, section) VALUES (?, ?, ?)",
        (page_id, " ".join(found), " ".join(words(page.section_path))),
    )
    connection.executemany(
        "INSERT INTO chunks (page_id, ordinal, text, context, tokens, box, regions) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (page_id, c.ordinal, zlib.compress(c.text.encode()), c.context, c.tokens, json.dumps(c.box), _regions(c))
            for c in chunks
        ],
    )


def _regions(chunk: Chunk) -> str:
    rows = [[region.start, *(round(edge, 4) for edge in region.box)] for region in chunk.regions]
    return json.dumps(rows, separators=(",", ":"))


def restamp_vectors(connection: sqlite3.Connection, doc_id: str) -> None:
    """Number a document's vectors anew, so that the collections take its changed metadata."""
    rows = connection.execute(
        "SELECT v.chunk_id, v.vector FROM vectors v JOIN chunks USING (chunk_id) JOIN pages USING (page_id)"
        " WHERE doc_id = ?",
        (doc_id,),
    ).fetchall()
    connection.executemany("DELETE FROM vectors WHERE chunk_id = ?", [(row[0],) for row in rows])
    connection.executemany("INSERT INTO vectors (chunk_id, vector) VALUES (?, ?)", [tuple(r) for r in rows])
    revise(connection)  # a document without text has no vector to tell by


def pages_for_ocr(catalog: Catalog, doc_id: str) -> list[int]:
    rows = catalog.connection.execute("SELECT page FROM pages WHERE doc_id = ? AND needs_ocr ORDER BY page", (doc_id,))
    return [int(row[0]) for row in rows]


def count_for_ocr(catalog: Catalog) -> int:
    """Pages that wait for OCR, looked for in the documents of the ledger: all pages would be the whole index read."""
    row = catalog.connection.execute(
        "SELECT COUNT(*) FROM ledger CROSS JOIN pages USING (doc_id) WHERE stage = ? AND needs_ocr", (STAGE_OCR,)
    ).fetchone()
    return int(row[0])


def write_ocr(catalog: Catalog, doc_id: str, page: Page, chunks: list[Chunk], lines: Sequence[Line]) -> None:
    """Put what OCR read in place of the page's text; its vectors are then due again."""
    with catalog.transaction() as connection:
        row = connection.execute(
            "SELECT page_id FROM pages WHERE doc_id = ? AND page = ?", (doc_id, page.number)
        ).fetchone()
        if row is None:  # the document was removed meanwhile
            return
        found = words(page.markdown)
        connection.execute(
            "UPDATE pages SET markdown = ?, words = ?, num_headings = ?, num_tables = ?, needs_ocr = 0,"
            " ocr_engine = ? WHERE page_id = ?",
            (
                zlib.compress(page.markdown.encode()),
                len(found),
                page.num_headings,
                page.num_tables,
                page.ocr_engine,
                row[0],
            ),
        )
        connection.execute("DELETE FROM page_words WHERE rowid = ?", (row[0],))
        connection.execute("DELETE FROM chunks WHERE page_id = ?", (row[0],))
        _insert_text(connection, row[0], page, found, chunks)
        write_lines(connection, row[0], lines)
        connection.execute("INSERT OR IGNORE INTO ledger VALUES (?, ?)", (doc_id, STAGE_VECTORS))
        forget(connection, doc_id, STAGE_OCR, [page.number])
        _close_ocr(connection, doc_id)


def give_up_ocr(catalog: Catalog, doc_id: str, failed: Sequence[FailedPage]) -> None:
    """Note pages that OCR cannot read; `failures.reopen` says which of them are tried again."""
    earlier = failures_of(catalog, doc_id)
    with catalog.transaction() as connection:
        connection.executemany(
            "UPDATE pages SET needs_ocr = 0, error = ? WHERE doc_id = ? AND page = ?",
            [(ocr_error(page.reason), doc_id, page.page) for page in failed],
        )
        record(connection, doc_id, [add_tries(page, earlier) for page in failed])
        _close_ocr(connection, doc_id)


def ocr_error(reason: str) -> str:
    """What stands as the error of a page that OCR gave up."""
    return f"OCR failed: {reason}"


def needs_no_ocr(catalog: Catalog, doc_id: str, pages: Sequence[int]) -> None:
    """OCR has passed over these pages: there is nothing on them for it."""
    with catalog.transaction() as connection:
        connection.executemany(
            "UPDATE pages SET needs_ocr = 0, error = '' WHERE doc_id = ? AND page = ?",
            [(doc_id, page) for page in pages],
        )
        forget(connection, doc_id, STAGE_OCR, pages)
        _close_ocr(connection, doc_id)


def ask_for_images(catalog: Catalog) -> None:
    """Put every document without a single image on the ledger, unless all of its pages were given up."""
    with catalog.transaction() as connection:
        connection.execute(
            "INSERT OR IGNORE INTO ledger SELECT doc_id, ? FROM pages GROUP BY doc_id HAVING MAX(image) = 0"
            " AND COUNT(*) > (SELECT COUNT(DISTINCT page) FROM failed_pages f WHERE f.doc_id = pages.doc_id"
            " AND stage IN (?, ?)) AND NOT EXISTS (SELECT 1 FROM failed_pages f WHERE f.doc_id = pages.doc_id"
            " AND stage = ? AND page = ?)",
            (STAGE_IMAGES, STAGE_READ, STAGE_IMAGES, STAGE_IMAGES, WHOLE),
        )


def mark_drawn(
    catalog: Catalog, doc_id: str, pages: Sequence[int], *, published: int, failed: Sequence[FailedPage] = ()
) -> None:
    """The pages' image files are in place, `failed` were given up. `published`: the last vector that the collections
    have."""
    earlier = failures_of(catalog, doc_id)
    with catalog.transaction() as connection:
        tried = [page.page for page in earlier if page.stage == STAGE_IMAGES and not waits(page)]
        forget(connection, doc_id, STAGE_IMAGES, [*pages, *tried])
        record(connection, doc_id, [add_tries(page, earlier) for page in failed])
        connection.executemany(
            "UPDATE pages SET image = 1 WHERE doc_id = ? AND page = ?", [(doc_id, page) for page in pages]
        )
        connection.execute("DELETE FROM ledger WHERE doc_id = ? AND stage = ?", (doc_id, STAGE_IMAGES))
        first = _first_vector(connection, doc_id)
        if pages and (first is None or first <= published):
            restamp_vectors(connection, doc_id)


def _first_vector(connection: sqlite3.Connection, doc_id: str) -> int | None:
    row = connection.execute(
        "SELECT MIN(seq) FROM vectors JOIN chunks USING (chunk_id) JOIN pages USING (page_id) WHERE doc_id = ?",
        (doc_id,),
    ).fetchone()
    return None if row[0] is None else int(row[0])


def _close_ocr(connection: sqlite3.Connection, doc_id: str) -> None:
    connection.execute(
        "DELETE FROM ledger WHERE doc_id = ? AND stage = ?"
        " AND NOT EXISTS (SELECT 1 FROM pages WHERE pages.doc_id = ledger.doc_id AND needs_ocr)",
        (doc_id, STAGE_OCR),
    )
