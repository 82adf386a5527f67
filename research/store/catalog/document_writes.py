"""Writing documents: adding, replacing, moving and removing them, and what OCR and drawing add to their pages.

One document is one transaction: it is there whole, or not at all. What takes time is done before it begins.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from research.errors import DocumentError
from research.records import Chunk, DocumentInfo, FailedPage, Line, Page
from research.store.catalog.catalog import Catalog
from research.store.catalog.chunk_vectors import touch_vectors
from research.store.catalog.document_names import hand_over, inheritance, new_file_id
from research.store.catalog.documents import FileStamp, document_at_path, get_document, paths_of
from research.store.catalog.edge_writes import outdate_document, outdate_namesakes
from research.store.catalog.labels import content_changed, leave_document
from research.store.catalog.ledger import (
    STAGE_IMAGES,
    STAGE_OCR,
    STAGE_VECTORS,
    add_tries,
    close_ocr,
    failures_of,
    forget,
    open_stage,
    record,
    waits,
)
from research.store.catalog.packages import leave_packages
from research.store.catalog.page_vectors import pack_lines, write_lines
from research.store.catalog.session_turns import leave_sessions
from research.store.files import images, uploads
from research.store.fulltext.search import PageWords, forget_document, forget_words, index_name, write_words
from research.units import pack_units, split


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page's rows, packed and analysed before the transaction that writes them begins."""

    page: Page
    words: PageWords
    markdown: bytes
    units: bytes
    chunks: list[tuple[object, ...]]

    @classmethod
    def of(cls, page: Page, chunks: Sequence[Chunk]) -> PreparedPage:
        words = PageWords.of(page.markdown, page.section_path)
        markdown, units = zlib.compress(page.markdown.encode()), pack_units(split(page.markdown), page.signals)
        return cls(page, words, markdown, units, [_chunk_row(chunk) for chunk in chunks])


def insert_pages(connection: sqlite3.Connection, doc_id: str, pages: Sequence[PreparedPage]) -> None:
    """New pages with their words and chunks; part of the caller's transaction."""
    last = connection.execute("SELECT COALESCE(MAX(page_id), 0) FROM pages").fetchone()[0]
    numbered = list(enumerate(pages, start=int(last) + 1))
    connection.executemany(
        "INSERT INTO pages (page_id, doc_id, page, label, section_path, parent_heading, num_headings, num_tables,"
        " num_pictures, error, words, markdown, units, needs_ocr, ocr_engine)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(page_id, doc_id, page.number, page.label, page.section_path, page.parent_heading),
                *(page.num_headings, page.num_tables, page.num_pictures, page.error),
                *(made.words.count, made.markdown, made.units, int(page.needs_ocr), page.ocr_engine),
            )
            for page_id, made in numbered
            for page in [made.page]
        ],
    )
    _insert_text(connection, numbered)


def _insert_text(connection: sqlite3.Connection, pages: Sequence[tuple[int, PreparedPage]]) -> None:
    write_words(connection, "page_words", [(page_id, made.words.columns) for page_id, made in pages])
    connection.executemany(
        "INSERT INTO chunks (page_id, ordinal, text, context, tokens, box, regions) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(page_id, *chunk) for page_id, made in pages for chunk in made.chunks],
    )


def _chunk_row(chunk: Chunk) -> tuple[object, ...]:
    rows = [[region.start, *(round(edge, 4) for edge in region.box)] for region in chunk.regions]
    regions = json.dumps(rows, separators=(",", ":"))
    text = zlib.compress(chunk.text.encode())
    return chunk.ordinal, text, chunk.context, chunk.tokens, json.dumps(chunk.box), regions


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
            "UPDATE pages SET markdown = ?, units = ?, words = ?, num_headings = ?, num_tables = ?, needs_ocr = 0,"
            " ocr_engine = ? WHERE page_id = ?",
            (made.markdown, made.units, made.words.count, page.num_headings, page.num_tables, page.ocr_engine, page_id),
        )
        leave_packages(connection, [f"page:{doc_id}"])
        forget_words(connection, "page_words", [page_id])
        connection.execute("DELETE FROM chunks WHERE page_id = ?", (page_id,))
        _insert_text(connection, [(page_id, made)])
        write_lines(connection, page_id, packed)
        outdate_document(connection, doc_id)
        open_stage(connection, [doc_id], STAGE_VECTORS)
        forget(connection, doc_id, STAGE_OCR, [page.number])
        close_ocr(connection, doc_id)


def give_up_ocr(catalog: Catalog, doc_id: str, failed: Sequence[FailedPage]) -> None:
    """Note pages that OCR cannot read; `failures.reopen` says which of them are tried again."""
    earlier = failures_of(catalog, doc_id)
    with catalog.transaction() as connection:
        connection.executemany(
            "UPDATE pages SET needs_ocr = 0, error = ? WHERE doc_id = ? AND page = ?",
            [(ocr_error(page.reason), doc_id, page.page) for page in failed],
        )
        record(connection, doc_id, [add_tries(page, earlier) for page in failed])
        close_ocr(connection, doc_id)


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
        close_ocr(connection, doc_id)


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


def add_document(
    catalog: Catalog,
    info: DocumentInfo,
    stamp: FileStamp,
    pages: Iterable[tuple[Page, list[Chunk]]],
    *,
    reader_version: int,
    images: bool = False,
    failed: Sequence[FailedPage] = (),
) -> None:
    """Write a document whole, in one transaction, in place of whatever stood at its path before.

    `images`: its pages are to be drawn later in the run. `failed`: pages of it that were given up.
    """
    made = [PreparedPage.of(page, chunks) for page, chunks in pages]
    if [entry.page.number for entry in made] != list(range(1, info.num_pages + 1)):
        raise DocumentError(f"only {len(made)} of {info.num_pages} pages arrived", code="incomplete")
    stages = {STAGE_VECTORS} | ({STAGE_IMAGES} if images else set())
    if any(entry.page.needs_ocr for entry in made):
        stages.add(STAGE_OCR)
    with catalog.transaction() as connection:
        copies = connection.execute(
            "SELECT path, size, mtime_ns, ctime_ns, inode FROM files WHERE doc_id = ? AND path <> ?",
            (info.doc_id, stamp.path),
        ).fetchall()
        left = inheritance(connection, info.doc_id, stamp.path)
        _forget_path(connection, stamp.path)
        _delete(connection, info.doc_id)
        connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(info.doc_id, info.sha256, info.filename, info.extension, info.title, info.num_pages),
                *(left.added or info.timestamp, info.source_path, info.size_bytes, reader_version),
                *(json.dumps(info.warnings), left.file_id or new_file_id(connection, info.doc_id)),
            ),
        )
        for path, *rest in copies:
            _note_file(connection, info.doc_id, FileStamp(path, *rest))
        _note_file(connection, info.doc_id, stamp)
        hand_over(connection, info.doc_id, left)
        leave_sessions(connection, left.former_ids, heir=info.doc_id)
        index_name(connection, info.doc_id, info.filename, info.title)
        record(connection, info.doc_id, failed)
        connection.execute("DELETE FROM failed_files WHERE path = ?", (stamp.path,))
        insert_pages(connection, info.doc_id, made)
        for stage in sorted(stages):
            open_stage(connection, [info.doc_id], stage)


def note_file(catalog: Catalog, doc_id: str, stamp: FileStamp) -> None:
    """Remember that a path holds this document; what stood there before loses the path."""
    with catalog.transaction() as connection:
        _take_path(connection, doc_id, stamp)


def rename_document(catalog: Catalog, doc_id: str, old_path: str, stamp: FileStamp, filename: str) -> None:
    """The file moved: same id, new path and name."""
    with catalog.transaction() as connection:
        connection.execute("DELETE FROM files WHERE path = ?", (old_path,))
        _take_path(connection, doc_id, stamp)
        _rename(connection, doc_id, stamp.path, filename)


def remove_document(catalog: Catalog, doc_id: str) -> None:
    """With its images, and its file if that was uploaded; files elsewhere are the user's."""
    with catalog.transaction() as connection:
        leave_document(connection, doc_id)
        _delete(connection, doc_id)
        leave_sessions(connection, [doc_id])
    images.remove(catalog.paths, doc_id)
    uploads.remove(catalog.paths, doc_id)


def forget_path(catalog: Catalog, path: str) -> DocumentInfo | None:
    """A file is gone. Its document takes the name of a copy; the one that went with it is returned."""
    known = document_at_path(catalog, path)
    info = None if known is None else get_document(catalog, known[0])
    if info is None:
        return None
    with catalog.transaction() as connection:
        if paths_of(catalog, info.doc_id) == [path]:
            leave_document(connection, info.doc_id)
        _forget_path(connection, path)
        if get_document(catalog, info.doc_id) is None:
            leave_sessions(connection, [info.doc_id])
    if get_document(catalog, info.doc_id) is not None:
        return None
    images.remove(catalog.paths, info.doc_id)
    uploads.remove(catalog.paths, info.doc_id)
    return info


def _take_path(connection: sqlite3.Connection, doc_id: str, stamp: FileStamp) -> None:
    """The document's own path from now on; what stood there before leaves it its ids and tags, if it goes."""
    left = inheritance(connection, doc_id, stamp.path)
    _forget_path(connection, stamp.path, keep=doc_id)
    _note_file(connection, doc_id, stamp)
    hand_over(connection, doc_id, left)
    leave_sessions(connection, left.former_ids, heir=doc_id)


def _forget_path(connection: sqlite3.Connection, path: str, keep: str = "") -> None:
    """Detach a path from its document, which takes the name of a copy; without any path left it goes."""
    row = connection.execute("SELECT doc_id FROM files WHERE path = ?", (path,)).fetchone()
    if row is None or row[0] == keep:
        return
    connection.execute("DELETE FROM files WHERE path = ?", (path,))
    left = connection.execute("SELECT path FROM files WHERE doc_id = ? ORDER BY path", (row[0],)).fetchone()
    if left is None:
        _delete(connection, row[0])
        return
    named = connection.execute("SELECT source_path FROM documents WHERE doc_id = ?", (row[0],)).fetchone()
    if named[0] == path:
        _rename(connection, row[0], left[0], PurePath(left[0]).name)


def _rename(connection: sqlite3.Connection, doc_id: str, path: str, filename: str) -> None:
    """New path and name. The document's vectors are stamped anew, so that the collections take the name."""
    connection.execute("UPDATE documents SET filename = ?, source_path = ? WHERE doc_id = ?", (filename, path, doc_id))
    title = connection.execute("SELECT title FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()[0]
    index_name(connection, doc_id, filename, title)
    outdate_document(connection, doc_id)
    touch_vectors(connection, doc_id)
    content_changed(connection)


def _delete(connection: sqlite3.Connection, doc_id: str) -> None:
    outdate_namesakes(connection, doc_id)
    forget_document(connection, doc_id)
    leave_packages(connection, [f"page:{doc_id}"])
    connection.execute("DELETE FROM documents WHERE doc_id = ?", (doc_id,))


def _note_file(connection: sqlite3.Connection, doc_id: str, stamp: FileStamp) -> None:
    connection.execute(
        "INSERT INTO files (path, doc_id, size, mtime_ns, ctime_ns, inode) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (path) DO UPDATE SET doc_id = excluded.doc_id, size = excluded.size,"
        " mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns, inode = excluded.inode",
        (stamp.path, doc_id, stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode),
    )
