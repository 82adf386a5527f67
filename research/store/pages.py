"""Reading pages back: their metadata, their markdown, and how many there are."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from research.store.ledger import PENDING_CHUNKS, STAGE_IMAGES, STAGE_VECTORS
from research.store.paths import image_name, thumbnail_name
from research.store.reader import Repository
from research.store.reader import batched as batched  # noqa: PLC0414 - the store takes it from here
from research.store.reader import placeholders as placeholders  # noqa: PLC0414 - the store takes it from here
from research.units import Structure

_COLUMNS = (
    "p.page_id, p.doc_id, p.page, p.label, p.section_path, p.parent_heading, p.num_headings, p.num_tables,"
    " p.num_pictures, p.error, p.image, p.needs_ocr, p.ocr_engine,"
    " d.filename, d.extension, d.title, d.timestamp, d.source_path, d.num_pages, d.file_id"
)
_IMAGE = _COLUMNS.split(", ").index("p.image")


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page's metadata with that of its document. The key is (doc_id, page)."""

    page_id: int  # the catalog's own number, never shown
    doc_id: str
    page: int
    label: str
    section_path: str
    parent_heading: str
    num_headings: int
    num_tables: int
    num_pictures: int
    error: str
    image: bool
    needs_ocr: bool
    ocr_engine: str
    filename: str
    extension: str
    title: str
    timestamp: str
    source_path: str
    num_pages: int
    file_id: str  # the document's, which lasts
    image_path: str  # empty while the page is not drawn
    thumb_path: str

    @property
    def ref(self) -> str:
        return f"page:{self.doc_id}#{self.page}"

    def metadata(self) -> dict[str, str | int | bool]:
        """The contract's metadata fields, as stored in Chroma."""
        return {
            "doc_id": self.doc_id,
            "filename": self.filename,
            "page": self.page,
            "page_label": self.label,
            "extension": self.extension,
            "timestamp": self.timestamp,
            "source_path": self.source_path,
            "image_path": self.image_path,
            "thumb_path": self.thumb_path,
            "section_path": self.section_path,
            "parent_heading": self.parent_heading,
            "num_headings": self.num_headings,
            "num_tables": self.num_tables,
            "num_pictures": self.num_pictures,
            "ocr": bool(self.ocr_engine),
            "ocr_engine": self.ocr_engine,
        }


@dataclass(frozen=True, slots=True)
class PageText:
    """A page's text, and where in its document it stands."""

    page: int
    label: str
    section_path: str
    markdown: str


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts that every question asks for."""

    documents: int
    pages: int
    pages_without_text: int
    pages_without_vectors: int  # with a chunk that waits for its vector
    finished_pages: int  # of documents whose chunks all have vectors
    vectors: int
    page_vectors: int


# Counting a table walks its smallest index, which is quick; a condition on a column that no index holds would read the
# rows themselves, with the text and vectors in them. What the ledger names is looked up from its few documents.
_TOTALS = (
    "SELECT (SELECT COUNT(*) FROM documents), (SELECT COUNT(*) FROM pages),"
    " (SELECT COUNT(*) FROM pages WHERE words = 0),"
    f" (SELECT COUNT(DISTINCT c.page_id) FROM ({PENDING_CHUNKS}) c),"
    " (SELECT COUNT(*) FROM pages) - (SELECT COUNT(*) FROM pages WHERE doc_id IN"
    " (SELECT doc_id FROM ledger WHERE stage = ?)),"
    " (SELECT COUNT(*) FROM vectors), (SELECT COUNT(*) FROM page_vectors)"
)


def _text(blob: bytes) -> str:
    return zlib.decompress(blob).decode()


class Pages(Repository):
    """Pages, with the names of their documents."""

    def get(self, doc_id: str, page: int) -> StoredPage | None:
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM pages p JOIN documents d USING (doc_id) WHERE doc_id = ? AND page = ?",
            (doc_id, page),
        ).fetchone()
        return None if row is None else self._stored(row)

    def get_many(self, page_ids: Sequence[int]) -> dict[int, StoredPage]:
        """page_id → page, for those that still exist."""
        query = f"SELECT {_COLUMNS} FROM pages p JOIN documents d USING (doc_id) WHERE p.page_id IN"
        return {int(row[0]): self._stored(row) for row in self._db.rows_in(query, page_ids)}

    def with_text(self, page_ids: Sequence[int]) -> dict[int, tuple[StoredPage, Structure]]:
        """page_id → page and its markdown with its units, for those that still exist."""
        query = (
            f"SELECT {_COLUMNS}, p.markdown, p.units FROM pages p JOIN documents d USING (doc_id) WHERE p.page_id IN"
        )
        return {
            int(row[0]): (self._stored(row[:-2]), Structure(_text(row[-2]), bytes(row[-1])))
            for row in self._db.rows_in(query, page_ids)
        }

    def ids_of(self, doc_ids: Iterable[str]) -> set[int]:
        return {int(row[0]) for row in self._db.rows_in("SELECT page_id FROM pages WHERE doc_id IN", [*doc_ids])}

    def ids_at(self, keys: Iterable[str]) -> list[int]:
        """The pages of "doc_id:page" keys that still exist, in their order."""
        wanted = [(doc_id, int(page)) for doc_id, _, page in (key.rpartition(":") for key in keys)]
        found: dict[tuple[str, int], int] = {}
        for part in batched(wanted, values=2):
            documents = list(dict.fromkeys(doc_id for doc_id, _ in part))
            pages = list(dict.fromkeys(page for _, page in part))
            rows = self._db.execute(
                "SELECT doc_id, page, page_id FROM pages"
                f" WHERE doc_id IN ({placeholders(documents)}) AND page IN ({placeholders(pages)})",
                [*documents, *pages],
            )
            found.update(((doc_id, page), int(page_id)) for doc_id, page, page_id in rows)
        return [found[key] for key in wanted if key in found]

    def places(self, page_ids: Sequence[int]) -> dict[int, tuple[str, int, str]]:
        """page_id → (filename, page, doc_id), for those that still exist: what ordering many pages takes, and no
        more."""
        query = "SELECT page_id, filename, page, doc_id FROM pages JOIN documents USING (doc_id) WHERE page_id IN"
        return {row[0]: (row[1], row[2], row[3]) for row in self._db.rows_in(query, page_ids)}

    def markdown(self, doc_id: str, page: int) -> str | None:
        row = self._db.execute("SELECT markdown FROM pages WHERE doc_id = ? AND page = ?", (doc_id, page)).fetchone()
        return None if row is None else _text(row[0])

    def markdowns(self, page_ids: Sequence[int]) -> Iterator[tuple[int, str]]:
        """(page_id, markdown) of the pages that exist."""
        for row in self._db.rows_in("SELECT page_id, markdown FROM pages WHERE page_id IN", page_ids):
            yield int(row[0]), _text(row[1])

    def document_markdown(self, doc_id: str) -> list[tuple[int, str]]:
        """(page, markdown) of a whole document in order; empty for an unknown one."""
        rows = self._db.execute("SELECT page, markdown FROM pages WHERE doc_id = ? ORDER BY page", (doc_id,))
        return [(int(row[0]), _text(row[1])) for row in rows]

    def texts(self, doc_id: str) -> Iterator[PageText]:
        """All pages of a document, in order."""
        rows = self._db.execute(
            "SELECT page, label, section_path, markdown FROM pages WHERE doc_id = ? ORDER BY page", (doc_id,)
        )
        for page, label, section_path, markdown in rows:
            yield PageText(int(page), str(label), str(section_path), _text(markdown))

    def section_paths(self, doc_id: str) -> list[tuple[int, str]]:
        """The pages of a document, in order, with the headings that each begins under."""
        query = "SELECT page, section_path FROM pages WHERE doc_id = ? ORDER BY page"
        return [tuple(row) for row in self._db.execute(query, (doc_id,))]

    def totals(self) -> Totals:
        """All of them with one statement, remembered while nobody writes."""
        values = (STAGE_VECTORS, STAGE_VECTORS)
        return self._db.cached(Totals, lambda: Totals(*self._db.execute(_TOTALS, values).fetchone()))

    def count(self) -> int:
        return self.totals().pages

    def _stored(self, row: Sequence[Any]) -> StoredPage:
        _, doc_id, page, *_ = row
        drawn = bool(row[_IMAGE])
        image = self._db.paths.image_path(doc_id, page) if drawn else ""
        thumbnail = self._db.paths.thumbnail_path(doc_id, page) if drawn else ""
        fields: tuple[Any, ...] = (*row, image, thumbnail)
        return StoredPage(*fields)

    def missing_images(self) -> list[tuple[str, int]]:
        """(doc_id, page) of pages that are noted as drawn and lack a file."""
        gone, doc, present = [], "", frozenset[str]()
        for doc_id, page in self._db.execute("SELECT doc_id, page FROM pages WHERE image = 1 ORDER BY doc_id"):
            if doc_id != doc:
                folder = self._db.paths.image_folder(doc_id)
                doc, present = doc_id, frozenset(p.name for p in folder.iterdir()) if folder.is_dir() else frozenset()
            if not {image_name(page), thumbnail_name(page)} <= present:
                gone.append((str(doc_id), int(page)))
        return gone

    def forget_images(self, pages: Iterable[tuple[str, int]]) -> None:
        """These pages are to be drawn again."""
        gone = list(pages)
        with self._db.transaction() as connection:
            connection.executemany("UPDATE pages SET image = 0 WHERE doc_id = ? AND page = ?", gone)
            connection.ledger.open(sorted({doc_id for doc_id, _ in gone}), STAGE_IMAGES)
            if gone:
                connection.bump_revision()
