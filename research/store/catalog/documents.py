"""Documents and the files they came from: look-ups, adding, replacing, removing."""

from __future__ import annotations

import fnmatch
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from research.errors import NothingFoundError, UsageError
from research.records import DocumentInfo
from research.store.catalog.reader import Reader

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
