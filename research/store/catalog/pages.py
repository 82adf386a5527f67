"""Reading pages back: their metadata and their markdown."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from research.store.catalog.catalog import Catalog
from research.store.files.images import image_path, thumbnail_path

# SQLite's default limit on variables in one statement was 999 for a long time.
_SLICE = 900

T = TypeVar("T")

_COLUMNS = (
    "p.page_id, p.doc_id, p.page, p.label, p.section_path, p.parent_heading, p.num_headings, p.num_tables,"
    " p.num_pictures, p.error, p.image, p.needs_ocr, p.ocr_engine,"
    " d.filename, d.extension, d.title, d.timestamp, d.source_path, d.num_pages"
)


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
    image_path: str  # empty while the page is not drawn
    thumb_path: str

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


def get_page(catalog: Catalog, doc_id: str, page: int) -> StoredPage | None:
    row = catalog.connection.execute(
        f"SELECT {_COLUMNS} FROM pages p JOIN documents d USING (doc_id) WHERE doc_id = ? AND page = ?",
        (doc_id, page),
    ).fetchone()
    return None if row is None else _stored(catalog, row)


def get_pages(catalog: Catalog, page_ids: Sequence[int]) -> dict[int, StoredPage]:
    """page_id → page, for those that still exist."""
    found: dict[int, StoredPage] = {}
    for part in slices(page_ids):
        rows = catalog.connection.execute(
            f"SELECT {_COLUMNS} FROM pages p JOIN documents d USING (doc_id) WHERE p.page_id IN ({marks(part)})",
            part,
        )
        found.update((int(row["page_id"]), _stored(catalog, row)) for row in rows)
    return found


def pages_of(catalog: Catalog, doc_ids: Sequence[str]) -> Iterator[StoredPage]:
    """All pages of these documents, in order."""
    for doc_id in doc_ids:
        rows = catalog.connection.execute(
            f"SELECT {_COLUMNS} FROM pages p JOIN documents d USING (doc_id) WHERE doc_id = ? ORDER BY page",
            (doc_id,),
        )
        yield from (_stored(catalog, row) for row in rows)


def page_ids_of(catalog: Catalog, doc_ids: Iterable[str]) -> set[int]:
    found: set[int] = set()
    for doc_id in doc_ids:
        rows = catalog.connection.execute("SELECT page_id FROM pages WHERE doc_id = ?", (doc_id,))
        found.update(int(row[0]) for row in rows)
    return found


def page_ids_at(catalog: Catalog, keys: Iterable[str]) -> list[int]:
    """The pages of "doc_id:page" keys that still exist."""
    found: list[int] = []
    for key in keys:
        doc_id, page = key.rsplit(":", 1)
        row = catalog.connection.execute(
            "SELECT page_id FROM pages WHERE doc_id = ? AND page = ?", (doc_id, int(page))
        ).fetchone()
        if row is not None:
            found.append(int(row[0]))
    return found


def places_of(catalog: Catalog, page_ids: Sequence[int]) -> dict[int, tuple[str, int, str]]:
    """page_id → (filename, page, doc_id), for those that still exist: what ordering many pages takes, and no more."""
    found: dict[int, tuple[str, int, str]] = {}
    for part in slices(page_ids):
        rows = catalog.connection.execute(
            f"SELECT page_id, filename, page, doc_id FROM pages JOIN documents USING (doc_id)"
            f" WHERE page_id IN ({marks(part)})",
            part,
        )
        found.update((page_id, (filename, page, doc_id)) for page_id, filename, page, doc_id in rows)
    return found


def documents_of(catalog: Catalog, page_ids: Sequence[int]) -> dict[int, str]:
    """page_id → doc_id, for those that still exist."""
    found: dict[int, str] = {}
    for part in slices(page_ids):
        rows = catalog.connection.execute(f"SELECT page_id, doc_id FROM pages WHERE page_id IN ({marks(part)})", part)
        found.update((page_id, doc_id) for page_id, doc_id in rows)
    return found


def page_markdown(catalog: Catalog, doc_id: str, page: int) -> str | None:
    row = catalog.connection.execute(
        "SELECT markdown FROM pages WHERE doc_id = ? AND page = ?", (doc_id, page)
    ).fetchone()
    return None if row is None else _text(row[0])


def markdown_of(catalog: Catalog, page_ids: Sequence[int]) -> Iterator[tuple[int, str]]:
    """(page_id, markdown) of the pages that exist."""
    for part in slices(page_ids):
        rows = catalog.connection.execute(f"SELECT page_id, markdown FROM pages WHERE page_id IN ({marks(part)})", part)
        yield from ((int(row[0]), _text(row[1])) for row in rows)


def document_markdown(catalog: Catalog, doc_id: str) -> list[tuple[int, str]]:
    """(page, markdown) of a whole document in order; empty for an unknown one."""
    rows = catalog.connection.execute("SELECT page, markdown FROM pages WHERE doc_id = ? ORDER BY page", (doc_id,))
    return [(int(row[0]), _text(row[1])) for row in rows]


def count_pages(catalog: Catalog) -> int:
    return int(catalog.connection.execute("SELECT COUNT(*) FROM pages").fetchone()[0])


def slices(values: Sequence[T]) -> Iterator[list[T]]:
    """Parts small enough for one statement's variables."""
    for start in range(0, len(values), _SLICE):
        yield list(values[start : start + _SLICE])


def marks(values: Sequence[object]) -> str:
    """The question marks of an IN list."""
    return ",".join("?" * len(values))


def _stored(catalog: Catalog, row: sqlite3.Row) -> StoredPage:
    doc_id, page, drawn = row["doc_id"], row["page"], bool(row["image"])
    image = image_path(catalog.paths, doc_id, page) if drawn else ""
    thumbnail = thumbnail_path(catalog.paths, doc_id, page) if drawn else ""
    fields: tuple[Any, ...] = (*row, image, thumbnail)
    return StoredPage(*fields)


def _text(blob: bytes) -> str:
    return zlib.decompress(blob).decode()
