"""Documents and the files they came from: looking them up, and which of their pages a question may be answered from.

Writing documents: adding, replacing, moving and removing them, and what OCR and drawing add to their pages.

One document is one transaction: it is there whole, or not at all. What takes time is done before it begins.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from research.errors import DocumentError
from research.records import Chunk, DocumentInfo, FailedPage, Line, Page
from research.store.ledger import STAGE_IMAGES, STAGE_OCR, STAGE_VECTORS, add_tries, waits
from research.store.reader import Repository
from research.store.vectors import pack_lines
from research.store.words import PageWords
from research.units import pack_units, split

if TYPE_CHECKING:
    pass


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


def _info(row: sqlite3.Row) -> DocumentInfo:
    fields: list[Any] = [*(row[name] for name in _INFO), tuple(json.loads(row["warnings"])), row["file_id"]]
    return DocumentInfo(*fields)


_PAGE = (
    "page, label, section_path, parent_heading, num_headings, num_tables, num_pictures, error, needs_ocr, ocr_engine,"
    " words, markdown, units"
)


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

    def row(self) -> tuple[object, ...]:
        """The columns `_PAGE`."""
        page, words = self.page, self.words.count
        told = (page.number, page.label, page.section_path, page.parent_heading, page.num_headings, page.num_tables)
        found = (page.num_pictures, page.error, int(page.needs_ocr), page.ocr_engine)
        return (*told, *found, words, self.markdown, self.units)


def _chunk_row(chunk: Chunk) -> tuple[object, ...]:
    rows = [[region.start, *(round(edge, 4) for edge in region.box)] for region in chunk.regions]
    regions = json.dumps(rows, separators=(",", ":"))
    text = zlib.compress(chunk.text.encode())
    return chunk.ordinal, text, chunk.context, chunk.tokens, json.dumps(chunk.box), regions


def ocr_error(reason: str) -> str:
    """What stands as the error of a page that OCR gave up."""
    return f"OCR failed: {reason}"


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What a document takes over from itself, when it is read again, and from what stood at its path before."""

    file_id: str  # empty: none of them had one
    former_ids: frozenset[str]
    tags: frozenset[str]
    added: str  # when this content was first added; empty if it is new


class Documents(Repository):
    """Documents and the files they came from. One document is one transaction: it is there whole, or not at all. What
    takes time is done before it begins."""

    def all(self) -> list[DocumentInfo]:
        rows = self._db.execute("SELECT * FROM documents ORDER BY filename, doc_id")
        return [_info(row) for row in rows]

    def get(self, doc_id: str) -> DocumentInfo | None:
        row = self._db.execute("SELECT * FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()
        return None if row is None else _info(row)

    def get_many(self, doc_ids: Sequence[str]) -> list[DocumentInfo]:
        """Those of these documents that exist, in the order given."""
        rows = self._db.rows_in("SELECT * FROM documents WHERE doc_id IN", doc_ids)
        found = {str(row["doc_id"]): _info(row) for row in rows}
        return [found[doc_id] for doc_id in doc_ids if doc_id in found]

    def of_hash(self, sha256: str) -> tuple[DocumentInfo, int] | None:
        """The document with this content and the reader version that read it."""
        row = self._db.execute("SELECT * FROM documents WHERE sha256 = ?", (sha256,)).fetchone()
        return None if row is None else (_info(row), int(row["reader_version"]))

    def reader_version(self, doc_id: str) -> int | None:
        """The version of the reader that read this document."""
        version: int | None = self._db.value("SELECT reader_version FROM documents WHERE doc_id = ?", (doc_id,))
        return version

    def at_path(self, path: str) -> tuple[str, FileStamp] | None:
        """The document last seen at a path, and the file's stamp then."""
        row = self._db.execute("SELECT * FROM files WHERE path = ?", (path,)).fetchone()
        if row is None:
            return None
        stamp = FileStamp(path, row["size"], row["mtime_ns"], row["ctime_ns"], row["inode"])
        return str(row["doc_id"]), stamp

    def paths_below(self, folder: str) -> list[str]:
        """Every path below a folder at which a document was seen."""
        start = folder.rstrip("/") + "/"
        return self._db.column("SELECT path FROM files WHERE substr(path, 1, ?) = ? ORDER BY path", (len(start), start))

    def paths(self, doc_id: str) -> list[str]:
        return self._db.column("SELECT path FROM files WHERE doc_id = ? ORDER BY path", (doc_id,))

    def insert_pages(self, doc_id: str, pages: Sequence[PreparedPage]) -> None:
        """New pages with their words and chunks; part of the caller's transaction."""
        first = int(self._db.value("SELECT COALESCE(MAX(page_id), 0) + 1 FROM pages"))
        numbered = list(enumerate(pages, start=first))
        rows = [(page_id, doc_id, *made.row()) for page_id, made in numbered]
        self._db.put_rows("pages", f"page_id, doc_id, {_PAGE}", rows)
        self._insert_text(numbered)

    def _insert_text(self, pages: Sequence[tuple[int, PreparedPage]]) -> None:
        self._db.words.write("page_words", [(page_id, made.words.columns) for page_id, made in pages])
        rows = [(page_id, *chunk) for page_id, made in pages for chunk in made.chunks]
        self._db.put_rows("chunks", "page_id, ordinal, text, context, tokens, box, regions", rows)

    def write_ocr(self, doc_id: str, page: Page, chunks: list[Chunk], lines: Sequence[Line]) -> None:
        """Put what OCR read in place of the page's text; its vectors are then due again."""
        made, packed = PreparedPage.of(page, chunks), pack_lines(lines)
        with self._db.transaction() as connection:
            page_id = connection.value("SELECT page_id FROM pages WHERE doc_id = ? AND page = ?", (doc_id, page.number))
            if page_id is None:  # the document was removed meanwhile
                return
            connection.execute(
                "UPDATE pages SET (markdown, units, words, num_headings, num_tables, ocr_engine) = (?, ?, ?, ?, ?, ?),"
                " needs_ocr = 0 WHERE page_id = ?",
                (
                    *(made.markdown, made.units, made.words.count),
                    *(page.num_headings, page.num_tables, page.ocr_engine, page_id),
                ),
            )
            connection.packages.leave([f"page:{doc_id}"])
            connection.words.forget("page_words", [page_id])
            connection.execute("DELETE FROM chunks WHERE page_id = ?", (page_id,))
            connection.documents._insert_text([(page_id, made)])
            connection.visual.write_lines(page_id, packed)
            connection.graph.outdate(doc_id)
            connection.ledger.open([doc_id], STAGE_VECTORS)
            connection.ledger.forget(doc_id, STAGE_OCR, [page.number])
            connection.ledger.close_ocr(doc_id)

    def give_up_ocr(self, doc_id: str, failed: Sequence[FailedPage]) -> None:
        """Note pages that OCR cannot read; `Ledger.reopen` says which of them are tried again."""
        earlier = self._db.ledger.failures(doc_id)
        with self._db.transaction() as connection:
            connection.executemany(
                "UPDATE pages SET needs_ocr = 0, error = ? WHERE doc_id = ? AND page = ?",
                [(ocr_error(page.reason), doc_id, page.page) for page in failed],
            )
            connection.ledger.record(doc_id, [add_tries(page, earlier) for page in failed])
            connection.ledger.close_ocr(doc_id)

    def needs_no_ocr(self, doc_id: str, pages: Sequence[int]) -> None:
        """OCR has passed over these pages: there is nothing on them for it."""
        with self._db.transaction() as connection:
            query = "UPDATE pages SET needs_ocr = 0, error = '' WHERE doc_id = ? AND page IN"
            connection.rows_in(query, pages, first=(doc_id,))
            connection.ledger.forget(doc_id, STAGE_OCR, pages)
            connection.ledger.close_ocr(doc_id)

    def mark_drawn(
        self, doc_id: str, pages: Sequence[int], *, published: int, failed: Sequence[FailedPage] = ()
    ) -> None:
        """The pages' image files are in place, `failed` were given up. `published`: the last vector that the
        collections have."""
        earlier = self._db.ledger.failures(doc_id)
        with self._db.transaction() as connection:
            tried = [page.page for page in earlier if page.stage == STAGE_IMAGES and not waits(page)]
            connection.ledger.forget(doc_id, STAGE_IMAGES, [*pages, *tried])
            connection.ledger.record(doc_id, [add_tries(page, earlier) for page in failed])
            connection.rows_in("UPDATE pages SET image = 1 WHERE doc_id = ? AND page IN", pages, first=(doc_id,))
            connection.execute("DELETE FROM ledger WHERE doc_id = ? AND stage = ?", (doc_id, STAGE_IMAGES))
            first = connection.value(
                "SELECT MIN(seq) FROM vectors JOIN chunks USING (chunk_id) JOIN pages USING (page_id) WHERE doc_id = ?",
                (doc_id,),
            )
            if pages and (first is None or first <= published):
                connection.chunks.touch(doc_id)

    def add(
        self,
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
        with self._db.transaction() as connection:
            copies = connection.records(
                FileStamp,
                "SELECT path, size, mtime_ns, ctime_ns, inode FROM files WHERE doc_id = ? AND path <> ?",
                (info.doc_id, stamp.path),
            )
            left = connection.documents._inheritance(info.doc_id, stamp.path)
            connection.documents._leave_path(stamp.path)
            connection.documents._delete(info.doc_id)
            row = [getattr(info, name) for name in _INFO]
            row[_INFO.index("timestamp")] = left.added or info.timestamp
            file_id = left.file_id or connection.documents._new_file_id(info.doc_id)
            columns = f"{', '.join(_INFO)}, reader_version, warnings, file_id"
            rows = [(*row, reader_version, json.dumps(info.warnings), file_id)]
            connection.put_rows("documents", columns, rows)
            for each in (*copies, stamp):
                connection.documents._put_file(info.doc_id, each)
            connection.documents._hand_over(info.doc_id, left)
            connection.sessions.leave(left.former_ids, heir=info.doc_id)
            connection.words.index_name(info.doc_id, info.filename, info.title)
            connection.ledger.record(info.doc_id, failed)
            connection.execute("DELETE FROM failed_files WHERE path = ?", (stamp.path,))
            connection.documents.insert_pages(info.doc_id, made)
            for stage in sorted(stages):
                connection.ledger.open([info.doc_id], stage)

    def note_file(self, doc_id: str, stamp: FileStamp) -> None:
        """Remember that a path holds this document; what stood there before loses the path."""
        with self._db.transaction() as connection:
            connection.documents._take_path(doc_id, stamp)

    def rename(self, doc_id: str, old_path: str, stamp: FileStamp, filename: str) -> None:
        """The file moved: same id, new path and name."""
        with self._db.transaction() as connection:
            connection.execute("DELETE FROM files WHERE path = ?", (old_path,))
            connection.documents._take_path(doc_id, stamp)
            connection.documents._rename(doc_id, stamp.path, filename)

    def remove(self, doc_id: str) -> None:
        """With its images, and its file if that was uploaded; files elsewhere are the user's."""
        with self._db.transaction() as connection:
            connection.labels.leave_document(doc_id)
            connection.documents._delete(doc_id)
            connection.sessions.leave([doc_id])
        self._remove_files(doc_id)

    def _remove_files(self, doc_id: str) -> None:
        from research.store import files  # which no question needs

        files.remove_images(self._db.paths, doc_id)
        files.remove(self._db.paths, doc_id)

    def forget_path(self, path: str) -> DocumentInfo | None:
        """A file is gone. Its document takes the name of a copy; the one that went with it is returned."""
        known = self.at_path(path)
        info = None if known is None else self.get(known[0])
        if info is None:
            return None
        with self._db.transaction() as connection:
            if self.paths(info.doc_id) == [path]:
                connection.labels.leave_document(info.doc_id)
            connection.documents._leave_path(path)
            if self.get(info.doc_id) is None:
                connection.sessions.leave([info.doc_id])
        if self.get(info.doc_id) is not None:
            return None
        self._remove_files(info.doc_id)
        return info

    def _take_path(self, doc_id: str, stamp: FileStamp) -> None:
        """The document's own path from now on; what stood there before leaves it its ids and tags, if it goes."""
        left = self._inheritance(doc_id, stamp.path)
        self._leave_path(stamp.path, keep=doc_id)
        self._put_file(doc_id, stamp)
        self._hand_over(doc_id, left)
        self._db.sessions.leave(left.former_ids, heir=doc_id)

    def _leave_path(self, path: str, keep: str = "") -> None:
        """Detach a path from its document, which takes the name of a copy; without any path left it goes."""
        doc_id = self._db.value("SELECT doc_id FROM files WHERE path = ?", (path,))
        if doc_id is None or doc_id == keep:
            return
        self._db.execute("DELETE FROM files WHERE path = ?", (path,))
        left = self.paths(doc_id)
        if not left:
            self._delete(doc_id)
        elif self._db.value("SELECT source_path FROM documents WHERE doc_id = ?", (doc_id,)) == path:
            self._rename(doc_id, left[0], PurePath(left[0]).name)

    def _rename(self, doc_id: str, path: str, filename: str) -> None:
        """New path and name. The document's vectors are stamped anew, so that the collections take the name."""
        self._db.execute(
            "UPDATE documents SET filename = ?, source_path = ? WHERE doc_id = ?", (filename, path, doc_id)
        )
        title = self._db.value("SELECT title FROM documents WHERE doc_id = ?", (doc_id,))
        self._db.words.index_name(doc_id, filename, title)
        self._db.graph.outdate(doc_id)
        self._db.chunks.touch(doc_id)
        self._db.labels.content_changed()

    def _delete(self, doc_id: str) -> None:
        self._db.graph.outdate_namesakes(doc_id)
        self._db.words.forget_document(doc_id)
        self._db.packages.leave([f"page:{doc_id}"])
        self._db.execute("DELETE FROM documents WHERE doc_id = ?", (doc_id,))

    def _put_file(self, doc_id: str, stamp: FileStamp) -> None:
        columns = "path, size, mtime_ns, ctime_ns, inode, doc_id"
        self._db.put_rows("files", columns, [(*astuple(stamp), doc_id)], over="path")

    def _inheritance(self, doc_id: str, path: str) -> Inheritance:
        """Read before anything is deleted; part of the caller's transaction."""
        own = self._db.execute("SELECT file_id, timestamp FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()
        # A document with a copy elsewhere stays as it is, and keeps what it has.
        gone = self._db.execute(
            "SELECT doc_id, file_id FROM documents WHERE doc_id = (SELECT doc_id FROM files WHERE path = ?)"
            " AND doc_id <> ? AND NOT EXISTS (SELECT 1 FROM files other"
            " WHERE other.doc_id = documents.doc_id AND other.path <> ?)",
            (path, doc_id, path),
        ).fetchone()
        both = (doc_id, doc_id if gone is None else gone[0])
        tags = self._db.column("SELECT tag FROM tags WHERE doc_id IN (?, ?)", both)
        former = self._db.column("SELECT former_id FROM former_ids WHERE doc_id IN (?, ?)", both)
        file_id = own[0] if own is not None else gone[1] if gone is not None else ""
        ids = {*former, *(gone or ())}
        return Inheritance(
            file_id=str(file_id),
            former_ids=frozenset(ids - {doc_id, file_id}),
            tags=frozenset(tags),
            added=str(own[1]) if own is not None else "",
        )

    def _hand_over(self, doc_id: str, left: Inheritance) -> None:
        """Written once the document is there; part of the caller's transaction."""
        self._db.labels.write_tags(doc_id, sorted(left.tags))
        rows = [(former_id, doc_id) for former_id in sorted(left.former_ids)]
        self._db.put_rows("former_ids", "former_id, doc_id", rows, over="former_id")

    def _new_file_id(self, doc_id: str) -> str:
        """One that nothing has or had: the same content may have stood in another file, which has changed since."""
        number, found = 1, f"file-{doc_id}"
        query = "SELECT 1 FROM documents WHERE file_id = ? UNION ALL SELECT 1 FROM former_ids WHERE former_id = ?"
        while self._db.value(query, (found, found)):
            number += 1
            found = f"file-{doc_id}-{number}"
        return found
