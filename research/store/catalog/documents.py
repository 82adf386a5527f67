"""Documents and the files they came from: look-ups, adding, replacing, removing."""

from __future__ import annotations

import fnmatch
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath

from research.errors import DocumentError, NothingFoundError
from research.records import Chunk, DocumentInfo, FailedPage, Page
from research.store.catalog.catalog import Catalog
from research.store.catalog.failures import record
from research.store.catalog.ledger import STAGE_IMAGES, STAGE_OCR, STAGE_VECTORS
from research.store.catalog.page_writes import insert_page, restamp_vectors
from research.store.files import images
from research.store.fulltext.analyzer import name_words, words


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file as last seen: the same path with the same stamp holds the same bytes."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def all_documents(catalog: Catalog) -> list[DocumentInfo]:
    rows = catalog.connection.execute("SELECT * FROM documents ORDER BY filename, doc_id")
    return [_info(row) for row in rows]


def get_document(catalog: Catalog, doc_id: str) -> DocumentInfo | None:
    row = catalog.connection.execute("SELECT * FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()
    return None if row is None else _info(row)


def find_documents(catalog: Catalog, wanted: str) -> list[DocumentInfo]:
    """Documents named by id, id prefix, file name (with or without ending) or a pattern. Raises if none."""
    known = all_documents(catalog)
    lower = wanted.casefold()
    stem = lower.removesuffix(".pdf")
    tests = (
        lambda d: d.doc_id == lower,
        lambda d: wanted in {d.filename, d.source_path},
        lambda d: d.filename.casefold().removesuffix(".pdf") == stem,
        lambda d: len(lower) >= 6 and d.doc_id.startswith(lower),
        lambda d: fnmatch.fnmatchcase(d.filename.casefold(), lower),
        lambda d: bool(stem) and stem in d.filename.casefold(),
    )
    for test in tests:
        found = [document for document in known if test(document)]
        if found:
            return found
    names = [document.filename for document in known]
    close = get_close_matches(wanted, names, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise NothingFoundError(f"no document matches {wanted!r}", hint=f"{meant}see them all with: ctx list")


def document_of_hash(catalog: Catalog, sha256: str) -> tuple[DocumentInfo, int] | None:
    """The document with this content and the reader version that read it."""
    row = catalog.connection.execute("SELECT * FROM documents WHERE sha256 = ?", (sha256,)).fetchone()
    return None if row is None else (_info(row), int(row["reader_version"]))


def document_at_path(catalog: Catalog, path: str) -> tuple[str, FileStamp] | None:
    """The document last seen at a path, and the file's stamp then."""
    row = catalog.connection.execute("SELECT * FROM files WHERE path = ?", (path,)).fetchone()
    if row is None:
        return None
    stamp = FileStamp(path, row["size"], row["mtime_ns"], row["ctime_ns"], row["inode"])
    return str(row["doc_id"]), stamp


def paths_of(catalog: Catalog, doc_id: str) -> list[str]:
    rows = catalog.connection.execute("SELECT path FROM files WHERE doc_id = ? ORDER BY rowid", (doc_id,))
    return [str(row[0]) for row in rows]


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
    with catalog.transaction() as connection:
        copies = connection.execute(
            "SELECT * FROM files WHERE doc_id = ? AND path <> ? ORDER BY rowid", (info.doc_id, stamp.path)
        ).fetchall()
        _forget_path(connection, stamp.path)
        _delete(connection, info.doc_id)
        connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                info.doc_id,
                info.sha256,
                info.filename,
                info.extension,
                info.title,
                info.num_pages,
                info.timestamp,
                info.source_path,
                info.size_bytes,
                reader_version,
                json.dumps(info.warnings),
            ),
        )
        connection.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)", [tuple(copy) for copy in copies])
        _note_file(connection, info.doc_id, stamp)
        index_name(connection, info.doc_id, info.filename, info.title)
        record(connection, info.doc_id, failed)
        connection.execute("DELETE FROM failed_files WHERE path = ?", (stamp.path,))
        numbers, stages = [], {STAGE_VECTORS} | ({STAGE_IMAGES} if images else set())
        for page, chunks in pages:
            insert_page(connection, info.doc_id, page, chunks)
            numbers.append(page.number)
            if page.needs_ocr:
                stages.add(STAGE_OCR)
        if numbers != list(range(1, info.num_pages + 1)):
            raise DocumentError("incomplete", f"only {len(numbers)} of {info.num_pages} pages arrived")
        connection.executemany("INSERT INTO ledger VALUES (?, ?)", [(info.doc_id, stage) for stage in sorted(stages)])


def note_file(catalog: Catalog, doc_id: str, stamp: FileStamp) -> None:
    """Remember that a path holds this document; what stood there before loses the path."""
    with catalog.transaction() as connection:
        _forget_path(connection, stamp.path, keep=doc_id)
        _note_file(connection, doc_id, stamp)


def rename_document(catalog: Catalog, doc_id: str, old_path: str, stamp: FileStamp, filename: str) -> None:
    """The file moved: same id, new path and name."""
    with catalog.transaction() as connection:
        connection.execute("DELETE FROM files WHERE path = ?", (old_path,))
        _forget_path(connection, stamp.path, keep=doc_id)
        _note_file(connection, doc_id, stamp)
        _rename(connection, doc_id, stamp.path, filename)


def remove_document(catalog: Catalog, doc_id: str) -> None:
    with catalog.transaction() as connection:
        _delete(connection, doc_id)
    images.remove(catalog.paths, doc_id)


def unfinished(catalog: Catalog) -> dict[str, list[str]]:
    """Outstanding work: stage → document ids."""
    found: dict[str, list[str]] = {}
    for row in catalog.connection.execute("SELECT doc_id, stage FROM ledger"):
        found.setdefault(str(row["stage"]), []).append(str(row["doc_id"]))
    return found


def _info(row: sqlite3.Row) -> DocumentInfo:
    return DocumentInfo(
        doc_id=row["doc_id"],
        filename=row["filename"],
        extension=row["extension"],
        title=row["title"],
        num_pages=row["num_pages"],
        timestamp=row["timestamp"],
        source_path=row["source_path"],
        size_bytes=row["size_bytes"],
        sha256=row["sha256"],
        warnings=tuple(json.loads(row["warnings"])),
    )


def _forget_path(connection: sqlite3.Connection, path: str, keep: str = "") -> None:
    """Detach a path from its document, which takes the name of a copy; without any path left it goes."""
    row = connection.execute("SELECT doc_id FROM files WHERE path = ?", (path,)).fetchone()
    if row is None or row[0] == keep:
        return
    connection.execute("DELETE FROM files WHERE path = ?", (path,))
    left = connection.execute("SELECT path FROM files WHERE doc_id = ? ORDER BY rowid", (row[0],)).fetchone()
    if left is None:
        _delete(connection, row[0])
        return
    named = connection.execute("SELECT source_path FROM documents WHERE doc_id = ?", (row[0],)).fetchone()
    if named[0] == path:
        _rename(connection, row[0], left[0], PurePath(left[0]).name)


def _rename(connection: sqlite3.Connection, doc_id: str, path: str, filename: str) -> None:
    """New path and name. The document's vectors are stamped anew, so that the collections take the name."""
    connection.execute("UPDATE documents SET filename = ?, source_path = ? WHERE doc_id = ?", (filename, path, doc_id))
    connection.execute("DELETE FROM name_words WHERE doc_id = ?", (doc_id,))
    title = connection.execute("SELECT title FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()[0]
    index_name(connection, doc_id, filename, title)
    restamp_vectors(connection, doc_id)


def _delete(connection: sqlite3.Connection, doc_id: str) -> None:
    connection.execute("DELETE FROM page_words WHERE rowid IN (SELECT page_id FROM pages WHERE doc_id = ?)", (doc_id,))
    connection.execute("DELETE FROM documents WHERE doc_id = ?", (doc_id,))


def _note_file(connection: sqlite3.Connection, doc_id: str, stamp: FileStamp) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)",
        (stamp.path, doc_id, stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode),
    )


def index_name(connection: sqlite3.Connection, doc_id: str, filename: str, title: str) -> None:
    """Note the words a document can be called by; part of the caller's transaction."""
    found = words_of_name(filename, title)
    connection.executemany("INSERT INTO name_words VALUES (?, ?)", [(word, doc_id) for word in found])


def words_of_name(filename: str, title: str) -> set[str]:
    stem = filename.rsplit(".", 1)[0]
    # BestBuy_2023 answers to "best buy" and to "bestbuy".
    return {*name_words(stem), *words(stem.replace("_", " ")), *words(title)}
