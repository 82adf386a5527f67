"""Documents and the files they came from: look-ups, adding, replacing, removing."""

from __future__ import annotations

import fnmatch
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath

from research.errors import DocumentError, NothingFoundError, UsageError
from research.records import Chunk, DocumentInfo, FailedPage, Page
from research.store.catalog.catalog import Catalog
from research.store.catalog.failures import record
from research.store.catalog.ledger import STAGE_IMAGES, STAGE_OCR, STAGE_VECTORS, open_stage
from research.store.catalog.page_writes import PreparedPage, insert_pages
from research.store.catalog.reader import Reader
from research.store.catalog.tags import write_tags
from research.store.catalog.vectors import touch_vectors
from research.store.files import images
from research.store.fulltext.write import forget_document, index_name

_MOST_NAMED = 10  # documents in a message


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file as last seen: the same path with the same stamp holds the same bytes."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def all_documents(reader: Reader) -> list[DocumentInfo]:
    rows = reader.connection.execute("SELECT * FROM documents ORDER BY filename, doc_id")
    return [_info(row) for row in rows]


def get_document(reader: Reader, doc_id: str) -> DocumentInfo | None:
    row = reader.connection.execute("SELECT * FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()
    return None if row is None else _info(row)


def find_documents(reader: Reader, wanted: str) -> list[DocumentInfo]:
    """Documents named by id, id prefix, file name (with or without ending) or a pattern. Raises if none."""
    known = all_documents(reader)
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


def select_documents(reader: Reader, names: Iterable[str]) -> list[DocumentInfo]:
    """All that these names, patterns and ids mean, each document once. Raises for one that means none."""
    chosen: dict[str, DocumentInfo] = {}
    for name in names:
        if not name.strip():
            raise UsageError("a document's name is empty", hint="see them all with: ctx list")
        chosen.update((document.doc_id, document) for document in find_documents(reader, name))
    return list(chosen.values())


def select_one(reader: Reader, name: str) -> DocumentInfo:
    """The one document that is meant. Raises if several are."""
    found = select_documents(reader, [name])
    if len(found) > 1:
        raise ambiguous(name, found)
    return found[0]


def ambiguous(name: str, found: Sequence[DocumentInfo]) -> UsageError:
    known = ", ".join(f"{document.filename} ({document.doc_id})" for document in found[:_MOST_NAMED])
    more = " …" if len(found) > _MOST_NAMED else ""
    return UsageError(f"{name!r} matches {len(found)} documents: {known}{more}", hint="name one by its id")


def is_pattern(name: str, found: Sequence[DocumentInfo]) -> bool:
    """Whether these were found because the name is a pattern; a file may be called `notes [1].pdf`."""
    return any(mark in name for mark in "*?[") and not any(name in {d.filename, d.source_path} for d in found)


def document_of_hash(reader: Reader, sha256: str) -> tuple[DocumentInfo, int] | None:
    """The document with this content and the reader version that read it."""
    row = reader.connection.execute("SELECT * FROM documents WHERE sha256 = ?", (sha256,)).fetchone()
    return None if row is None else (_info(row), int(row["reader_version"]))


def reader_version_of(reader: Reader, doc_id: str) -> int | None:
    """The version of the reader that read this document."""
    row = reader.connection.execute("SELECT reader_version FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()
    return None if row is None else int(row[0])


def document_at_path(reader: Reader, path: str) -> tuple[str, FileStamp] | None:
    """The document last seen at a path, and the file's stamp then."""
    row = reader.connection.execute("SELECT * FROM files WHERE path = ?", (path,)).fetchone()
    if row is None:
        return None
    stamp = FileStamp(path, row["size"], row["mtime_ns"], row["ctime_ns"], row["inode"])
    return str(row["doc_id"]), stamp


def paths_of(reader: Reader, doc_id: str) -> list[str]:
    rows = reader.connection.execute("SELECT path FROM files WHERE doc_id = ? ORDER BY path", (doc_id,))
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
        # Tags are the user's: they stay when a document is read again, and go over to what its file holds now.
        tags = _tags_at(connection, info.doc_id, stamp.path)
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
        for path, *rest in copies:
            _note_file(connection, info.doc_id, FileStamp(path, *rest))
        _note_file(connection, info.doc_id, stamp)
        write_tags(connection, info.doc_id, tags)
        index_name(connection, info.doc_id, info.filename, info.title)
        record(connection, info.doc_id, failed)
        connection.execute("DELETE FROM failed_files WHERE path = ?", (stamp.path,))
        insert_pages(connection, info.doc_id, made)
        for stage in sorted(stages):
            open_stage(connection, [info.doc_id], stage)


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


def unfinished(reader: Reader) -> dict[str, list[str]]:
    """Outstanding work: stage → document ids."""
    found: dict[str, list[str]] = {}
    for row in reader.connection.execute("SELECT doc_id, stage FROM ledger"):
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
    left = connection.execute("SELECT path FROM files WHERE doc_id = ? ORDER BY path", (row[0],)).fetchone()
    if left is None:
        _delete(connection, row[0])
        return
    named = connection.execute("SELECT source_path FROM documents WHERE doc_id = ?", (row[0],)).fetchone()
    if named[0] == path:
        _rename(connection, row[0], left[0], PurePath(left[0]).name)


def _tags_at(connection: sqlite3.Connection, doc_id: str, path: str) -> list[str]:
    """The tags of a document, and of the one at a path that has no other path."""
    rows = connection.execute(
        "SELECT DISTINCT tag FROM tags WHERE doc_id = ? OR doc_id IN (SELECT doc_id FROM files WHERE path = ?"
        " AND NOT EXISTS (SELECT 1 FROM files other WHERE other.doc_id = files.doc_id AND other.path <> files.path))",
        (doc_id, path),
    )
    return [str(row[0]) for row in rows]


def _rename(connection: sqlite3.Connection, doc_id: str, path: str, filename: str) -> None:
    """New path and name. The document's vectors are stamped anew, so that the collections take the name."""
    connection.execute("UPDATE documents SET filename = ?, source_path = ? WHERE doc_id = ?", (filename, path, doc_id))
    title = connection.execute("SELECT title FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()[0]
    index_name(connection, doc_id, filename, title)
    touch_vectors(connection, doc_id)


def _delete(connection: sqlite3.Connection, doc_id: str) -> None:
    forget_document(connection, doc_id)
    connection.execute("DELETE FROM documents WHERE doc_id = ?", (doc_id,))


def _note_file(connection: sqlite3.Connection, doc_id: str, stamp: FileStamp) -> None:
    connection.execute(
        "INSERT INTO files (path, doc_id, size, mtime_ns, ctime_ns, inode) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (path) DO UPDATE SET doc_id = excluded.doc_id, size = excluded.size,"
        " mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns, inode = excluded.inode",
        (stamp.path, doc_id, stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode),
    )
