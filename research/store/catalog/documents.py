"""Documents and the files they came from: looking them up, and which of their pages a question may be answered from."""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from research.errors import NothingFoundError
from research.records import DocumentInfo
from research.store.catalog.pages import places_of, rows_in
from research.store.catalog.reader import Reader

if TYPE_CHECKING:
    from research.filters import Filters, PageRange
    from research.store.catalog.document_names import KnownDocument
    from research.store.catalog.reader import Reader


# As `DocumentInfo` has them, in its order.
_INFO = ["doc_id", "filename", "extension", "title", "num_pages", "timestamp", "source_path", "size_bytes", "sha256"]


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
    rows = rows_in(reader.connection, "SELECT * FROM documents WHERE doc_id IN", doc_ids)
    found = {str(row["doc_id"]): _info(row) for row in rows}
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
    fields: list[Any] = [*(row[name] for name in _INFO), tuple(json.loads(row["warnings"])), row["file_id"]]
    return DocumentInfo(*fields)


@dataclass(frozen=True, slots=True)
class Scope:
    """Documents by their ids, None for all; and ranges of physical pages, in order, none for all."""

    documents: frozenset[str] | None = None
    pages: tuple[PageRange, ...] = ()

    def count(self, reader: Reader) -> int:
        """How many pages there are."""
        from research.store.catalog.document_names import known_documents

        known = known_documents(reader)
        chosen = [d for d in known if self.documents is None or d.doc_id in self.documents]
        return sum(pages_in(document, self.pages) for document in chosen)

    def page_ids(self, reader: Reader) -> list[int]:
        """All of them."""
        rows: Iterable[tuple[int, int]] = (
            reader.connection.execute(
                "SELECT page_id, page FROM pages WHERE page >= ? AND page <= ?", (self.pages[0][0], self.pages[-1][1])
            )
            if self.documents is None
            else rows_in(reader.connection, "SELECT page_id, page FROM pages WHERE doc_id IN", sorted(self.documents))
        )
        return sorted(page_id for page_id, page in rows if self._has(page))

    def keep(self, reader: Reader, page_ids: Collection[int]) -> set[int]:
        """Those of these pages that are inside."""
        return {
            page_id
            for page_id, (_, page, doc_id) in places_of(reader, list(page_ids)).items()
            if (self.documents is None or doc_id in self.documents) and self._has(page)
        }

    def _has(self, page: int) -> bool:
        if not self.pages:
            return True
        before = bisect_right(self.pages, page, key=lambda span: span[0])
        return before > 0 and page <= self.pages[before - 1][1]


def pages_in(document: KnownDocument, ranges: Sequence[PageRange]) -> int:
    """How many pages of a document lie in these ranges."""
    if not ranges:
        return document.num_pages
    return sum(max(0, min(last, document.num_pages) - first + 1) for first, last in ranges)


def select(reader: Reader, filters: Sequence[Filters], folder: str = "") -> Scope:
    """What all of these leave; only the first has pages. Raises NothingFoundError, and names the filter, where that is
    nothing.

    `folder`: what relative paths and folders are relative to.
    """
    from research.store.catalog.document_names import known_documents, shown

    known = known_documents(reader)
    ranges = filters[0].pages_read()
    left = {document.doc_id: document for document in known}
    so_far: list[str] = []
    for what, chosen in (choice for each in filters for choice in _choices(reader, each, folder, known)):
        so_far.append(what)
        left = {doc_id: document for doc_id, document in left.items() if doc_id in chosen}
        if not left:
            raise NothingFoundError(
                f"no document is left by {' and '.join(so_far)}", hint="ask without one of them; see: ctx list"
            )
    if ranges and not any(pages_in(document, ranges) for document in left.values()):
        longest = max(left.values(), key=lambda document: document.num_pages)
        of = f" of those left by {' and '.join(so_far)}" if so_far else ""
        raise NothingFoundError(
            f"no document{of} has pages {shown(filters[0].pages)}",
            hint=f"the longest, {longest.filename}, has {longest.num_pages}",
        )
    return Scope(None if len(left) == len(known) else frozenset(left), ranges)


def _choices(
    reader: Reader, filters: Filters, folder: str, known: Sequence[KnownDocument]
) -> Iterable[tuple[str, Collection[str]]]:
    """Each filter in words, and the documents it fits. One that fits none by itself raises."""
    from research.store.catalog.document_names import shown

    if filters.documents:
        yield f"doc {' or '.join(map(shown, filters.documents))}", _named(reader, filters.documents, folder, "doc")
    if filters.not_documents:
        without = _named(reader, filters.not_documents, folder, "not_doc")
        yield (
            f"not_doc {' or '.join(map(shown, filters.not_documents))}",
            {document.doc_id for document in known} - without,
        )
    if filters.under:
        below = [_below(known, place, folder) for place in filters.under]
        yield f"under {' or '.join(map(shown, filters.under))}", set().union(*below)
    if filters.since or filters.until:
        yield _added(filters), _in_time(known, filters)
    for tag in filters.tags:
        yield f"tag {shown(tag)}", _tagged(reader, tag)


def _named(reader: Reader, names: Iterable[str], folder: str, key: str) -> set[str]:
    """The documents that any of the names means. Only a pattern of what to leave out may mean none: there may be no
    drafts today."""
    from research.store.catalog.document_names import WILD, find_documents

    found: set[str] = set()
    for name in names:
        try:
            found.update(document.doc_id for document in find_documents(reader, name, folder))
        except NothingFoundError as error:
            if key == "doc" or not any(mark in name for mark in WILD):
                raise NothingFoundError(f"{key}: {error.message}", hint=error.hint) from error
    return found


def _below(known: Sequence[KnownDocument], place: str, folder: str) -> set[str]:
    """The documents with a file below a folder. A relative one that has none there means any folder of that name."""
    import os

    from research.store.catalog.document_names import absolute, fold, shown, stored_text

    text = stored_text(place)
    whole = absolute(text, folder)

    # As it was typed, and where it leads if it is a link; then whatever the case of its letters.
    places = [at.rstrip("/") + "/" for at in dict.fromkeys([whole, os.path.realpath(whole)])] if whole else []
    ways: list[tuple[bool, Callable[[str], bool]]] = [
        *((False, partial(_begins, start)) for start in places),
        *((True, partial(_begins, fold(start))) for start in places),
    ]
    if not text.startswith(("/", "~", ".")):
        inside = f"/{fold(text).strip('/')}/"
        ways.append((True, lambda path: inside in path))
    for folded, test in ways:
        found = {d.doc_id for d in known if any(map(test, d.folded_paths if folded else d.paths))}
        if found:
            return found
    raise NothingFoundError(
        f"no document lies under {shown(whole or place)}",
        hint="see where they lie with: ctx list --json | jq -r '.documents[].source_path'",
    )


def _begins(start: str, path: str) -> bool:
    return path.startswith(start)


def _added(filters: Filters) -> str:
    since = f"since {filters.since}" if filters.since else ""
    until = f"until {filters.until}" if filters.until else ""
    return " ".join(filter(None, (since, until)))


def _in_time(known: Sequence[KnownDocument], filters: Filters) -> set[str]:
    from research.filters import read_time

    since, until = filters.times()
    times = {document.doc_id: read_time(document.timestamp) for document in known}
    found = {doc_id for doc_id, time in times.items() if time is not None and since <= time < until}
    if not found:
        dated = sorted(time for time in times.values() if time is not None)
        hint = f"they were added {dated[0]:%Y-%m-%d} to {dated[-1]:%Y-%m-%d}" if dated else "see: ctx list"
        raise NothingFoundError(f"no document was added {_added(filters)}", hint=hint)
    return found


def _tagged(reader: Reader, tag: str) -> set[str]:
    from research.store.catalog.document_names import close_to, fold, shown
    from research.store.catalog.labels import all_tags

    tags = all_tags(reader)
    wanted = fold(tag.strip())
    found = {doc_id for known, doc_ids in tags.items() if fold(known) == wanted for doc_id in doc_ids}
    if not found:
        close = close_to(tag, tags)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        raise NothingFoundError(f"no document has the tag {shown(tag)}", hint=f"{meant}see the tags with: ctx tag")
    return found
