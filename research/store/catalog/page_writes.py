"""Writing pages: new ones, and what OCR and drawing add to them later."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from research.records import Chunk, FailedPage, Line, Page
from research.store.catalog.catalog import Catalog
from research.store.catalog.failures import WHOLE, add_tries, failures_of, forget, record, waits
from research.store.catalog.ledger import STAGE_IMAGES, STAGE_OCR, STAGE_READ, STAGE_VECTORS, open_stage
from research.store.catalog.page_vectors import pack_lines, write_lines
from research.store.catalog.reader import Reader
from research.store.catalog.vectors import touch_vectors
from research.store.fulltext.write import PageWords, forget_pages, index_pages


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page's rows, packed and analysed before the transaction that writes them begins."""

    page: Page
    words: PageWords
    markdown: bytes
    chunks: list[tuple[object, ...]]

    @classmethod
    def of(cls, page: Page, chunks: Sequence[Chunk]) -> PreparedPage:
        words = PageWords.of(page.markdown, page.section_path)
        return cls(page, words, zlib.compress(page.markdown.encode()), [_chunk_row(chunk) for chunk in chunks])


def insert_pages(connection: sqlite3.Connection, doc_id: str, pages: Sequence[PreparedPage]) -> None:
    """New pages with their words and chunks; part of the caller's transaction."""
    last = connection.execute("SELECT COALESCE(MAX(page_id), 0) FROM pages").fetchone()[0]
    numbered = list(enumerate(pages, start=int(last) + 1))
    connection.executemany(
        "INSERT INTO pages (page_id, doc_id, page, label, section_path, parent_heading, num_headings, num_tables,"
        " num_pictures, error, words, markdown, needs_ocr, ocr_engine)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                page_id,
                doc_id,
                made.page.number,
                made.page.label,
                made.page.section_path,
                made.page.parent_heading,
                made.page.num_headings,
                made.page.num_tables,
                made.page.num_pictures,
                made.page.error,
                made.words.count,
                made.markdown,
                int(made.page.needs_ocr),
                made.page.ocr_engine,
            )
            for page_id, made in numbered
        ],
    )
    _insert_text(connection, numbered)


def _insert_text(connection: sqlite3.Connection, pages: Sequence[tuple[int, PreparedPage]]) -> None:
    index_pages(connection, [(page_id, made.words) for page_id, made in pages])
    connection.executemany(
        "INSERT INTO chunks (page_id, ordinal, text, context, tokens, box, regions) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(page_id, *chunk) for page_id, made in pages for chunk in made.chunks],
    )


def _chunk_row(chunk: Chunk) -> tuple[object, ...]:
    rows = [[region.start, *(round(edge, 4) for edge in region.box)] for region in chunk.regions]
    regions = json.dumps(rows, separators=(",", ":"))
    text = zlib.compress(chunk.text.encode())
    return chunk.ordinal, text, chunk.context, chunk.tokens, json.dumps(chunk.box), regions


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


def write_ocr(catalog: Catalog, doc_id: str, page: Page, chunks: list[Chunk], lines: Sequence[Line]) -> None:
    """Put what OCR read in place of the page's text; its vectors are then due again."""
    made, packed = PreparedPage.of(page, chunks), pack_lines(lines)
    with catalog.transaction() as connection:
        row = connection.execute(
            "SELECT page_id FROM pages WHERE doc_id = ? AND page = ?", (doc_id, page.number)
        ).fetchone()
        if row is None:  # the document was removed meanwhile
            return
        page_id = int(row[0])
        connection.execute(
            "UPDATE pages SET markdown = ?, words = ?, num_headings = ?, num_tables = ?, needs_ocr = 0,"
            " ocr_engine = ? WHERE page_id = ?",
            (made.markdown, made.words.count, page.num_headings, page.num_tables, page.ocr_engine, page_id),
        )
        forget_pages(connection, [page_id])
        connection.execute("DELETE FROM chunks WHERE page_id = ?", (page_id,))
        _insert_text(connection, [(page_id, made)])
        write_lines(connection, page_id, packed)
        open_stage(connection, [doc_id], STAGE_VECTORS)
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
            "INSERT INTO ledger SELECT doc_id, ? FROM pages GROUP BY doc_id HAVING MAX(image) = 0"
            " AND COUNT(*) > (SELECT COUNT(DISTINCT page) FROM failed_pages f WHERE f.doc_id = pages.doc_id"
            " AND stage IN (?, ?)) AND NOT EXISTS (SELECT 1 FROM failed_pages f WHERE f.doc_id = pages.doc_id"
            " AND stage = ? AND page = ?) ON CONFLICT DO NOTHING",
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
            touch_vectors(connection, doc_id)


def _first_vector(connection: sqlite3.Connection, doc_id: str) -> int | None:
    row = connection.execute(
        "SELECT MIN(seq) FROM vectors JOIN chunks USING (chunk_id) JOIN pages USING (page_id) WHERE doc_id = ?",
        (doc_id,),
    ).fetchone()
    return None if row[0] is None else int(row[0])


def _close_ocr(connection: sqlite3.Connection, doc_id: str) -> None:
    connection.execute(
        "DELETE FROM ledger WHERE doc_id = ? AND stage = ?"
        " AND NOT EXISTS (SELECT 1 FROM pages WHERE pages.doc_id = ledger.doc_id AND needs_ocr = 1)",
        (doc_id, STAGE_OCR),
    )
