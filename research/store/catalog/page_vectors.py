"""What the visual encoder saw, page by page: which encoder fills the index, what is missing, writing and reading."""

from __future__ import annotations

import json
import sqlite3
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from research.boxes import Box
from research.records import FailedPage, Line
from research.store.catalog.catalog import Catalog
from research.store.catalog.failures import record
from research.store.catalog.ledger import STAGE_VISUAL
from research.store.catalog.pages import marks, slices
from research.store.files.images import image_path

REGIONS = "regions"
OFF = "off"

_ENCODER = "visual_encoder"
_DIM = "visual_dim"
_PROBLEM = "visual_problem"
_SHORTEST = 3  # letters and digits of a line that can mean anything


@dataclass(frozen=True, slots=True)
class PageBlobs:
    """A page's row, ready to be stored: `first` for the collection, the others packed as the encoder's side packs."""

    page_id: int
    first: bytes
    boxes: bytes
    sketch: bytes
    vectors: bytes


@dataclass(frozen=True, slots=True)
class PageImage:
    """A drawn page that the visual encoder has not seen yet."""

    page_id: int
    doc_id: str
    page: int
    name: str  # for messages
    source_path: str  # of its document
    path: str


def encoder_of(catalog: Catalog) -> str:
    """The visual encoder of this index: "regions:…" or "colpali:…", "off", or empty while none was chosen."""
    return catalog.meta(_ENCODER)


def dim_of(catalog: Catalog) -> int:
    return int(catalog.meta(_DIM, "0"))


def set_encoder(catalog: Catalog, name: str, dim: int) -> None:
    """Declare the encoder. Vectors of another one are dropped: an index never mixes two."""
    if encoder_of(catalog) == name and dim_of(catalog) == dim:
        return
    values = [(_ENCODER, name), (_DIM, str(dim)), (_PROBLEM, "")]
    if encoder_of(catalog):
        # A new identity parts the catalog from a visual collection filled by the old encoder.
        values.append(("catalog_id", uuid.uuid4().hex))
    with catalog.transaction() as connection:
        connection.execute("DELETE FROM page_vectors")
        connection.execute("DELETE FROM failed_pages WHERE stage = ?", (STAGE_VISUAL,))  # another may see more
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)


def problem_of(catalog: Catalog) -> str:
    """Why the last run could not finish the visual side; empty if it could."""
    return catalog.meta(_PROBLEM)


def set_problem(catalog: Catalog, reason: str) -> None:
    if problem_of(catalog) != reason:
        catalog.set_meta(_PROBLEM, reason)


def write_lines(connection: sqlite3.Connection, page_id: int, lines: Sequence[Line]) -> None:
    """Keep what OCR read of a page, line by line. Vectors of the lines before are due again."""
    telling = [line for line in lines if sum(char.isalnum() for char in line.text) >= _SHORTEST]
    rows = [[line.text, *(round(edge, 4) for edge in line.box)] for line in telling]
    blob = zlib.compress(json.dumps(rows, ensure_ascii=False).encode())
    connection.execute("INSERT OR REPLACE INTO page_lines VALUES (?, ?)", (page_id, blob))
    encoder = connection.execute("SELECT value FROM meta WHERE key = ?", (_ENCODER,)).fetchone()
    if encoder is not None and str(encoder[0]).startswith(REGIONS):
        connection.execute("DELETE FROM page_vectors WHERE page_id = ?", (page_id,))


def lines_of(catalog: Catalog, page_id: int) -> list[Line]:
    row = catalog.connection.execute("SELECT lines FROM page_lines WHERE page_id = ?", (page_id,)).fetchone()
    return [] if row is None else _lines(row[0])


def pages_with_new_lines(catalog: Catalog) -> list[int]:
    """Pages whose lines have no vectors yet."""
    rows = catalog.connection.execute(
        "SELECT page_id FROM page_lines LEFT JOIN page_vectors USING (page_id) WHERE seq IS NULL ORDER BY page_id"
    )
    return [int(row[0]) for row in rows]


def unseen_images(catalog: Catalog) -> list[PageImage]:
    """Drawn pages without vectors, document by document."""
    rows = catalog.connection.execute(
        "SELECT page_id, doc_id, page, filename, source_path FROM pages JOIN documents USING (doc_id)"
        " LEFT JOIN page_vectors USING (page_id) WHERE image AND seq IS NULL ORDER BY documents.rowid, page"
    )
    return [
        PageImage(page_id, doc_id, page, f"{name}, page {page}", source_path, image_path(catalog.paths, doc_id, page))
        for page_id, doc_id, page, name, source_path in rows
    ]


def write(catalog: Catalog, pages: Sequence[PageBlobs]) -> None:
    with catalog.transaction() as connection:
        connection.executemany(
            "INSERT OR REPLACE INTO page_vectors (page_id, first, boxes, sketch, vectors) SELECT ?, ?, ?, ?, ?"
            " WHERE EXISTS (SELECT 1 FROM pages WHERE page_id = ?)",
            [(page.page_id, page.first, page.boxes, page.sketch, page.vectors, page.page_id) for page in pages],
        )


def give_up(catalog: Catalog, image: PageImage, failed: FailedPage) -> None:
    """The visual encoder cannot see this page. An empty row keeps it from being tried in every run."""
    with catalog.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO page_vectors (page_id, first, boxes, sketch, vectors) VALUES (?, ?, ?, ?, ?)",
            (image.page_id, b"", b"", b"", b""),
        )
        record(connection, image.doc_id, [failed])


def count(catalog: Catalog) -> int:
    return int(catalog.connection.execute("SELECT COUNT(*) FROM page_vectors").fetchone()[0])


def last_sequence(catalog: Catalog) -> int:
    """The number of the newest row ever written, removed ones included."""
    row = catalog.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'page_vectors'").fetchone()
    return 0 if row is None else int(row[0])


def pages_after(catalog: Catalog, sequence: int) -> list[int]:
    """Pages written after a sequence number."""
    rows = catalog.connection.execute("SELECT page_id FROM page_vectors WHERE seq > ?", (sequence,))
    return [int(row[0]) for row in rows]


def vectors_of(catalog: Catalog, page_ids: Sequence[int] | None = None) -> Iterator[tuple[int, bytes]]:
    """page_id and packed vectors, of these pages or of all."""
    yield from _column(catalog, "vectors", page_ids)


def sketches_of(catalog: Catalog, page_ids: Sequence[int] | None = None) -> Iterator[tuple[int, bytes]]:
    """page_id and packed sketches, of these pages or of all."""
    yield from _column(catalog, "sketch", page_ids)


def seen_of(catalog: Catalog, page_ids: Sequence[int]) -> Iterator[tuple[int, bytes, bytes]]:
    """page_id, packed vectors and boxes of pages that a visual model saw. Read together, so that they fit."""
    for part in slices(page_ids):
        yield from catalog.connection.execute(
            f"SELECT page_id, vectors, boxes FROM page_vectors WHERE page_id IN ({marks(part)}) AND length(vectors)",
            part,
        ).fetchall()


def embedded_lines_of(catalog: Catalog, page_ids: Sequence[int]) -> dict[int, tuple[list[Line], bytes]]:
    """page_id → its lines and their packed vectors, in the same order, of pages that have some."""
    found: dict[int, tuple[list[Line], bytes]] = {}
    for part in slices(page_ids):
        rows = catalog.connection.execute(
            "SELECT page_id, lines, vectors FROM page_lines JOIN page_vectors USING (page_id)"
            f" WHERE page_id IN ({marks(part)}) AND length(vectors)",
            part,
        )
        found.update((int(row[0]), (_lines(row[1]), row[2])) for row in rows)
    return found


def _column(catalog: Catalog, name: str, page_ids: Sequence[int] | None) -> Iterator[tuple[int, bytes]]:
    if page_ids is None:
        rows = catalog.connection.execute(f"SELECT page_id, {name} FROM page_vectors ORDER BY page_id")
        yield from ((int(row[0]), row[1]) for row in rows)
        return
    for part in slices(page_ids):
        rows = catalog.connection.execute(
            f"SELECT page_id, {name} FROM page_vectors WHERE page_id IN ({marks(part)}) ORDER BY page_id", part
        )
        yield from ((int(row[0]), row[1]) for row in rows)


def _lines(blob: bytes) -> list[Line]:
    return [Line(text, cast(Box, tuple(box))) for text, *box in json.loads(zlib.decompress(blob))]
