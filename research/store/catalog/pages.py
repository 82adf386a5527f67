"""Reading pages back: their metadata, their markdown, and how many there are."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from research.store.catalog.ledger import PENDING_CHUNKS, STAGE_VECTORS
from research.store.catalog.reader import Reader
from research.store.catalog.reader import batched as batched  # noqa: PLC0414 - the store takes it from here
from research.store.catalog.reader import placeholders as placeholders  # noqa: PLC0414 - the store takes it from here
from research.store.catalog.reader import rows_in as rows_in  # noqa: PLC0414 - the store takes it from here
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


def get_page(reader: Reader, doc_id: str, page: int) -> StoredPage | None:
    row = reader.connection.execute(
        f"SELECT {_COLUMNS} FROM pages p JOIN documents d USING (doc_id) WHERE doc_id = ? AND page = ?",
        (doc_id, page),
    ).fetchone()
    return None if row is None else _stored(reader, row)


def get_pages(reader: Reader, page_ids: Sequence[int]) -> dict[int, StoredPage]:
    """page_id → page, for those that still exist."""
    query = f"SELECT {_COLUMNS} FROM pages p JOIN documents d USING (doc_id) WHERE p.page_id IN"
    return {int(row[0]): _stored(reader, row) for row in rows_in(reader.connection, query, page_ids)}


def get_pages_with_text(reader: Reader, page_ids: Sequence[int]) -> dict[int, tuple[StoredPage, Structure]]:
    """page_id → page and its markdown with its units, for those that still exist."""
    query = f"SELECT {_COLUMNS}, p.markdown, p.units FROM pages p JOIN documents d USING (doc_id) WHERE p.page_id IN"
    return {
        int(row[0]): (_stored(reader, row[:-2]), Structure(_text(row[-2]), bytes(row[-1])))
        for row in rows_in(reader.connection, query, page_ids)
    }


def pages_of(reader: Reader, doc_ids: Sequence[str]) -> Iterator[StoredPage]:
    """All pages of these documents, in order."""
    for doc_id in doc_ids:
        rows = reader.connection.execute(
            f"SELECT {_COLUMNS} FROM pages p JOIN documents d USING (doc_id) WHERE doc_id = ? ORDER BY page",
            (doc_id,),
        )
        yield from (_stored(reader, row) for row in rows)


def page_ids_of(reader: Reader, doc_ids: Iterable[str]) -> set[int]:
    return {int(row[0]) for row in rows_in(reader.connection, "SELECT page_id FROM pages WHERE doc_id IN", [*doc_ids])}


def page_ids_at(reader: Reader, keys: Iterable[str]) -> list[int]:
    """The pages of "doc_id:page" keys that still exist, in their order."""
    wanted = [(doc_id, int(page)) for doc_id, _, page in (key.rpartition(":") for key in keys)]
    found: dict[tuple[str, int], int] = {}
    for part in batched(wanted, values=2):
        documents = list(dict.fromkeys(doc_id for doc_id, _ in part))
        pages = list(dict.fromkeys(page for _, page in part))
        rows = reader.connection.execute(
            "SELECT doc_id, page, page_id FROM pages"
            f" WHERE doc_id IN ({placeholders(documents)}) AND page IN ({placeholders(pages)})",
            [*documents, *pages],
        )
        found.update(((doc_id, page), int(page_id)) for doc_id, page, page_id in rows)
    return [found[key] for key in wanted if key in found]


def places_of(reader: Reader, page_ids: Sequence[int]) -> dict[int, tuple[str, int, str]]:
    """page_id → (filename, page, doc_id), for those that still exist: what ordering many pages takes, and no more."""
    query = "SELECT page_id, filename, page, doc_id FROM pages JOIN documents USING (doc_id) WHERE page_id IN"
    return {row[0]: (row[1], row[2], row[3]) for row in rows_in(reader.connection, query, page_ids)}


def documents_of(reader: Reader, page_ids: Sequence[int]) -> dict[int, str]:
    """page_id → doc_id, for those that still exist."""
    query = "SELECT page_id, doc_id FROM pages WHERE page_id IN"
    return {row[0]: row[1] for row in rows_in(reader.connection, query, page_ids)}


def page_markdown(reader: Reader, doc_id: str, page: int) -> str | None:
    row = reader.connection.execute(
        "SELECT markdown FROM pages WHERE doc_id = ? AND page = ?", (doc_id, page)
    ).fetchone()
    return None if row is None else _text(row[0])


def markdown_of(reader: Reader, page_ids: Sequence[int]) -> Iterator[tuple[int, str]]:
    """(page_id, markdown) of the pages that exist."""
    for row in rows_in(reader.connection, "SELECT page_id, markdown FROM pages WHERE page_id IN", page_ids):
        yield int(row[0]), _text(row[1])


def document_markdown(reader: Reader, doc_id: str) -> list[tuple[int, str]]:
    """(page, markdown) of a whole document in order; empty for an unknown one."""
    rows = reader.connection.execute("SELECT page, markdown FROM pages WHERE doc_id = ? ORDER BY page", (doc_id,))
    return [(int(row[0]), _text(row[1])) for row in rows]


@dataclass(frozen=True, slots=True)
class PageText:
    """A page's text, and where in its document it stands."""

    page: int
    label: str
    section_path: str
    markdown: str


def page_texts(reader: Reader, doc_id: str) -> Iterator[PageText]:
    """All pages of a document, in order."""
    rows = reader.connection.execute(
        "SELECT page, label, section_path, markdown FROM pages WHERE doc_id = ? ORDER BY page", (doc_id,)
    )
    for page, label, section_path, markdown in rows:
        yield PageText(int(page), str(label), str(section_path), _text(markdown))


def section_paths(reader: Reader, doc_id: str) -> list[tuple[int, str]]:
    """The pages of a document, in order, with the headings that each begins under."""
    rows = reader.connection.execute("SELECT page, section_path FROM pages WHERE doc_id = ? ORDER BY page", (doc_id,))
    return [(int(page), str(path)) for page, path in rows]


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
    " (SELECT COUNT(*) FROM pages WHERE doc_id IN (SELECT doc_id FROM ledger WHERE stage = ?)),"
    " (SELECT COUNT(*) FROM vectors), (SELECT COUNT(*) FROM page_vectors)"
)


def totals(reader: Reader) -> Totals:
    """All of them with one statement, remembered while nobody writes."""
    known = reader.count_cache()
    if Totals not in known:
        row = reader.connection.execute(_TOTALS, (STAGE_VECTORS, STAGE_VECTORS)).fetchone()
        documents, pages, wordless, waiting, unfinished, vectors, page_vectors = map(int, row)
        known[Totals] = Totals(documents, pages, wordless, waiting, pages - unfinished, vectors, page_vectors)
    found: Totals = known[Totals]
    return found


def count_pages(reader: Reader) -> int:
    return totals(reader).pages


def _stored(reader: Reader, row: Sequence[Any]) -> StoredPage:
    _, doc_id, page, *_ = row
    drawn = bool(row[_IMAGE])
    image = reader.paths.image_path(doc_id, page) if drawn else ""
    thumbnail = reader.paths.thumbnail_path(doc_id, page) if drawn else ""
    fields: tuple[Any, ...] = (*row, image, thumbnail)
    return StoredPage(*fields)


def _text(blob: bytes) -> str:
    return zlib.decompress(blob).decode()
