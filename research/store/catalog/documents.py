"""Documents and the files they came from: looking them up."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from research.records import DocumentInfo
from research.store.catalog.pages import batched, placeholders
from research.store.catalog.reader import Reader


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


def get_documents(reader: Reader, doc_ids: Sequence[str]) -> list[DocumentInfo]:
    """Those of these documents that exist, in the order given."""
    found: dict[str, DocumentInfo] = {}
    for part in batched(doc_ids):
        rows = reader.connection.execute(f"SELECT * FROM documents WHERE doc_id IN ({placeholders(part)})", part)
        found.update((str(row["doc_id"]), _info(row)) for row in rows)
    return [found[doc_id] for doc_id in doc_ids if doc_id in found]


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


def paths_below(reader: Reader, folder: str) -> list[str]:
    """Every path below a folder at which a document was seen."""
    start = folder.rstrip("/") + "/"
    rows = reader.connection.execute(
        "SELECT path FROM files WHERE substr(path, 1, ?) = ? ORDER BY path", (len(start), start)
    )
    return [str(row[0]) for row in rows]


def paths_of(reader: Reader, doc_id: str) -> list[str]:
    rows = reader.connection.execute("SELECT path FROM files WHERE doc_id = ? ORDER BY path", (doc_id,))
    return [str(row[0]) for row in rows]


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
        file_id=row["file_id"],
    )
