"""The ledger: what a document still needs, stage by stage, and what was given up in each, named, and tried again when
that can help. A finished document is not in it.

A process that was killed says nothing about the page it was on: the next run tries the page again. One that crashed
is tried again in one more run. What ran out of its time, and what our own code fails on, would do it again: it waits
until the file or the reader changes, or until somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from research.records import PAGE_GIVEN_UP, FailedPage
from research.store.reader import Repository, grouped

STAGE_READ = "read"
STAGE_VECTORS = "vectors"
STAGE_IMAGES = "images"
STAGE_OCR = "ocr"
STAGE_VISUAL = "visual"

WHOLE = 0  # the page number that stands for all pages of a document

STAGES = frozenset({STAGE_READ, STAGE_VECTORS, STAGE_IMAGES, STAGE_OCR, STAGE_VISUAL})

# Chunks without a vector, with `STAGE_VECTORS` as its one value. Subqueries, not joins: from the few documents of the
# ledger to their chunks, never back from all chunks there are.
PENDING_CHUNKS = (
    "SELECT chunks.chunk_id, chunks.page_id FROM chunks LEFT JOIN vectors ON vectors.chunk_id = chunks.chunk_id"
    " WHERE chunks.page_id IN (SELECT page_id FROM pages WHERE doc_id IN (SELECT doc_id FROM ledger WHERE stage = ?))"
    " AND vectors.seq IS NULL"
)


KILLED = "killed"
CRASHED = "crashed"
TIMEOUT = "timeout"
INTERNAL = "internal"  # an exception of our own

_CRASHES = 4  # tries: two in each of two runs
_DUE = f"(code = '{KILLED}' OR (code = '{CRASHED}' AND tries < {_CRASHES}))"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A page, or with page 0 a whole file, as it is told: where it is, in which stage it failed, and why."""

    path: str
    page: int
    stage: str
    code: str
    reason: str
    waits: bool  # whether only `ctx ingest --retry` tries it again


@dataclass(frozen=True, slots=True)
class FailedFile:
    """A file of which nothing could be read."""

    path: str
    sha256: str
    reader_version: int
    code: str
    reason: str
    tries: int = 1


def waits(failed: FailedPage) -> bool:
    """Whether the next run leaves it alone."""
    return not (failed.code == KILLED or (failed.code == CRASHED and failed.tries < _CRASHES))


def add_tries(failed: FailedPage, earlier: Iterable[FailedPage]) -> FailedPage:
    """With the tries of earlier runs, as far as they ended in the same way."""
    same = [e.tries for e in earlier if (e.page, e.stage, e.code) == (failed.page, failed.stage, failed.code)]
    return FailedPage(failed.page, failed.stage, failed.code, failed.reason, failed.tries + sum(same))


_NAMELESS = (
    f"SELECT doc_id, page, '{STAGE_READ}', '{KILLED}', error, 1 FROM pages p WHERE error = ?"
    " AND NOT EXISTS (SELECT 1 FROM failed_pages f WHERE f.doc_id = p.doc_id AND f.page = p.page)"
)


class Ledger(Repository):
    """What documents still need, and what was given up."""

    def open(self, doc_ids: Iterable[str], stage: str) -> None:
        """The stage is due for these documents; part of the caller's transaction."""
        self._db.put_rows("ledger", "doc_id, stage", [(each, stage) for each in doc_ids], over="doc_id, stage")

    def unfinished(self) -> dict[str, list[str]]:
        """Outstanding work: stage → document ids."""
        return grouped(self._db.execute("SELECT stage, doc_id FROM ledger"))

    def count_pending(self) -> int:
        return int(self._db.value(f"SELECT COUNT(*) FROM ({PENDING_CHUNKS}) AS pending", (STAGE_VECTORS,)))

    def close(self) -> None:
        """Strike off every document whose chunks all have vectors."""
        with self._db.transaction() as connection:
            connection.execute(
                "DELETE FROM ledger WHERE stage = ? AND doc_id NOT IN"
                f" (SELECT doc_id FROM pages WHERE page_id IN (SELECT page_id FROM ({PENDING_CHUNKS}) AS pending))",
                (STAGE_VECTORS, STAGE_VECTORS),
            )

    def pages_for_ocr(self, doc_id: str) -> list[int]:
        query = "SELECT page FROM pages WHERE doc_id = ? AND needs_ocr = 1 ORDER BY page"
        return self._db.column(query, (doc_id,))

    def count_for_ocr(self) -> int:
        """Pages that wait for OCR, looked for in the documents of the ledger: all pages would be the whole index
        read."""
        query = (
            "SELECT COUNT(*) FROM pages WHERE needs_ocr = 1 AND doc_id IN (SELECT doc_id FROM ledger WHERE stage = ?)"
        )
        return int(self._db.value(query, (STAGE_OCR,)))

    def ask_for_images(self) -> None:
        """Put every document without a single image on the ledger, unless all of its pages were given up."""
        with self._db.transaction() as connection:
            connection.execute(
                "INSERT INTO ledger SELECT doc_id, ? FROM pages GROUP BY doc_id HAVING MAX(image) = 0"
                " AND COUNT(*) > (SELECT COUNT(DISTINCT page) FROM failed_pages f WHERE f.doc_id = pages.doc_id"
                " AND stage IN (?, ?)) AND NOT EXISTS (SELECT 1 FROM failed_pages f WHERE f.doc_id = pages.doc_id"
                " AND stage = ? AND page = ?) ON CONFLICT DO NOTHING",
                (STAGE_IMAGES, STAGE_READ, STAGE_IMAGES, STAGE_IMAGES, WHOLE),
            )

    def close_ocr(self, doc_id: str) -> None:
        self._db.execute(
            "DELETE FROM ledger WHERE doc_id = ? AND stage = ?"
            " AND NOT EXISTS (SELECT 1 FROM pages WHERE pages.doc_id = ledger.doc_id AND needs_ocr = 1)",
            (doc_id, STAGE_OCR),
        )

    def given_up(self) -> list[GivenUp]:
        """All that was given up: pages document by document, then files."""
        rows = self._db.execute(
            f"SELECT source_path, page, stage, code, reason, NOT {_DUE} FROM failed_pages JOIN documents USING (doc_id)"
            " ORDER BY source_path, page, stage"
        )
        files = self._db.execute("SELECT path, code, reason, tries FROM failed_files ORDER BY path")
        return [
            *(GivenUp(path, page, stage, code, reason, bool(kept)) for path, page, stage, code, reason, kept in rows),
            *(GivenUp(path, WHOLE, STAGE_READ, code, reason, waits=tries > 1) for path, code, reason, tries in files),
        ]

    def failures(self, doc_id: str) -> list[FailedPage]:
        return self._db.records(
            FailedPage,
            "SELECT page, stage, code, reason, tries FROM failed_pages WHERE doc_id = ? ORDER BY page, stage",
            (doc_id,),
        )

    def to_read_again(self, *, waiting: bool) -> set[str]:
        """Documents with pages that reading gave up and should try again; with `waiting` also those that wait."""
        query = "SELECT DISTINCT doc_id FROM failed_pages WHERE stage = ?" + ("" if waiting else f" AND {_DUE}")
        return set(self._db.column(query, (STAGE_READ,)))

    def record(self, doc_id: str, failed: Iterable[FailedPage]) -> None:
        """Note them, over what was noted of the same page and stage; part of the caller's transaction."""
        self._db.executemany(
            "INSERT INTO failed_pages (doc_id, page, stage, code, reason, tries) SELECT ?, ?, ?, ?, ?, ?"
            " WHERE EXISTS (SELECT 1 FROM documents WHERE doc_id = ?) ON CONFLICT (doc_id, page, stage)"
            " DO UPDATE SET code = excluded.code, reason = excluded.reason, tries = excluded.tries",
            [(doc_id, f.page, f.stage, f.code, f.reason, f.tries, doc_id) for f in failed],
        )

    def forget(self, doc_id: str, stage: str, pages: Iterable[int]) -> None:
        """The stage has dealt with these pages after all; part of the caller's transaction."""
        query = "DELETE FROM failed_pages WHERE doc_id = ? AND stage = ? AND page IN"
        self._db.rows_in(query, pages, first=(doc_id, stage))

    def reopen(self, *, waiting_of: Sequence[str] = ()) -> None:
        """Put back on the ledger what the stages after reading gave up and should try again.

        `waiting_of`: documents whose waiting pages are tried as well, as if they had not been tried before.
        """
        with self._db.transaction() as connection:
            for doc_id in waiting_of:
                connection.ledger._reopen("doc_id = ?", (doc_id,))
                connection.execute("DELETE FROM failed_pages WHERE doc_id = ? AND stage <> ?", (doc_id, STAGE_READ))
            connection.ledger._reopen(_DUE, ())

    def _reopen(self, which: str, values: tuple[str, ...]) -> None:
        failed = f"SELECT doc_id, page FROM failed_pages WHERE {which} AND stage"
        self._db.execute(
            f"UPDATE pages SET needs_ocr = 1, error = '' WHERE (doc_id, page) IN ({failed} = '{STAGE_OCR}')", values
        )
        self._db.execute(
            "DELETE FROM page_vectors WHERE length(vectors) = 0 AND page_id IN"
            f" (SELECT page_id FROM pages WHERE (doc_id, page) IN ({failed} = '{STAGE_VISUAL}'))",
            values,
        )
        self._db.execute(
            "INSERT INTO ledger SELECT DISTINCT doc_id, stage FROM failed_pages"
            f" WHERE {which} AND stage IN ('{STAGE_OCR}', '{STAGE_IMAGES}') ON CONFLICT DO NOTHING",
            values,
        )

    def count_unnoted(self) -> int:
        """Pages that were skipped without being noted as given up: nobody would try them again."""
        query = f"SELECT COUNT(*) FROM ({_NAMELESS}) AS nameless"
        return int(self._db.value(query, (PAGE_GIVEN_UP,)))

    def note_unnoted(self) -> None:
        with self._db.transaction() as connection:
            connection.execute(f"INSERT INTO failed_pages {_NAMELESS}", (PAGE_GIVEN_UP,))

    def failed_file(self, path: str) -> FailedFile | None:
        return self._db.record(FailedFile, "SELECT * FROM failed_files WHERE path = ?", (path,))

    def record_file(self, failed: FailedFile) -> None:
        with self._db.transaction() as connection:
            columns = "path, sha256, reader_version, code, reason, tries"
            connection.put_rows("failed_files", columns, [astuple(failed)], over="path")

    def forget_missing_files(self) -> None:
        """Files that are no longer there need nothing any more."""
        gone = [path for path in self._db.column("SELECT path FROM failed_files") if not Path(path).exists()]
        if gone:
            with self._db.transaction() as connection:
                connection.rows_in("DELETE FROM failed_files WHERE path IN", gone)
