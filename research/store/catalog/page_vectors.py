"""What the visual encoder saw, page by page: which encoder fills the index, what is missing, writing and reading."""

from __future__ import annotations

import json
import sqlite3
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from research.records import Box, FailedPage, Line
from research.store.catalog.catalog import Catalog
from research.store.catalog.ledger import STAGE_VISUAL, record
from research.store.catalog.pages import rows_in, totals
from research.store.catalog.reader import Reader, reserve_sequence, unpack_vectors, write_meta

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


@dataclass(frozen=True, slots=True)
class VisualSide:
    """What fills the visual side of an index: nothing, the text encoder (`regions`), or a visual model."""

    kind: Literal["off", "regions", "model"]
    name: str  # as it stands in the index; empty while none was chosen
    dim: int
    problem: str  # why the last run could not finish it; empty if it could


def visual_side(reader: Reader) -> VisualSide:
    name = encoder_of(reader)
    return VisualSide(visual_kind(name), name, dim_of(reader), problem_of(reader))


def visual_kind(name: str) -> Literal["off", "regions", "model"]:
    """Of an encoder's name, as it stands in an index or is asked for."""
    if name in ("", OFF):
        return "off"
    return "regions" if name.partition(":")[0] == REGIONS else "model"


def encoder_of(reader: Reader) -> str:
    """The visual encoder of this index: "regions:…" or "colpali:…", "off", or empty while none was chosen."""
    return reader.meta(_ENCODER)


def dim_of(reader: Reader) -> int:
    return int(reader.meta(_DIM, "0"))


def set_encoder(catalog: Catalog, name: str, dim: int) -> None:
    """Declare the encoder. Vectors of another one are dropped: an index never mixes two."""
    if encoder_of(catalog) == name and dim_of(catalog) == dim:
        return
    values = {_ENCODER: name, _DIM: str(dim), _PROBLEM: ""}
    if encoder_of(catalog):
        # A new identity parts the catalog from a visual collection filled by the old encoder.
        values["catalog_id"] = uuid.uuid4().hex
    with catalog.transaction() as connection:
        connection.execute("DELETE FROM page_vectors")
        connection.execute("DELETE FROM failed_pages WHERE stage = ?", (STAGE_VISUAL,))  # another may see more
        write_meta(connection, values)


def problem_of(reader: Reader) -> str:
    """Why the last run could not finish the visual side; empty if it could."""
    return reader.meta(_PROBLEM)


def set_problem(catalog: Catalog, reason: str) -> None:
    if problem_of(catalog) != reason:
        catalog.set_meta(_PROBLEM, reason)


def pack_lines(lines: Sequence[Line]) -> bytes:
    """What OCR read of a page, as it is stored."""
    telling = [line for line in lines if sum(char.isalnum() for char in line.text) >= _SHORTEST]
    rows = [[line.text, *(round(edge, 4) for edge in line.box)] for line in telling]
    return zlib.compress(json.dumps(rows, ensure_ascii=False).encode())


def write_lines(connection: sqlite3.Connection, page_id: int, packed: bytes) -> None:
    """Keep what OCR read of a page; part of the caller's transaction. Vectors of the lines before are due again."""
    connection.execute(
        "INSERT INTO page_lines (page_id, lines) VALUES (?, ?)"
        " ON CONFLICT (page_id) DO UPDATE SET lines = excluded.lines",
        (page_id, packed),
    )
    encoder = connection.execute("SELECT value FROM meta WHERE key = ?", (_ENCODER,)).fetchone()
    if encoder is not None and visual_kind(str(encoder[0])) == "regions":
        connection.execute("DELETE FROM page_vectors WHERE page_id = ?", (page_id,))


def lines_of(reader: Reader, page_id: int) -> list[Line]:
    row = reader.connection.execute("SELECT lines FROM page_lines WHERE page_id = ?", (page_id,)).fetchone()
    return [] if row is None else _lines(row[0])


def pages_with_new_lines(reader: Reader) -> list[int]:
    """Pages whose lines have no vectors yet."""
    rows = reader.connection.execute(
        "SELECT page_id FROM page_lines LEFT JOIN page_vectors USING (page_id) WHERE seq IS NULL ORDER BY page_id"
    )
    return [int(row[0]) for row in rows]


def unseen_images(reader: Reader) -> list[PageImage]:
    """Drawn pages without vectors, document by document."""
    rows = reader.connection.execute(
        "SELECT page_id, doc_id, page, filename, source_path FROM pages JOIN documents USING (doc_id)"
        " LEFT JOIN page_vectors USING (page_id) WHERE image = 1 AND seq IS NULL"
        " ORDER BY documents.timestamp, doc_id, page"
    )
    return [
        PageImage(page_id, doc_id, page, f"{name}, page {page}", source_path, reader.paths.image_path(doc_id, page))
        for page_id, doc_id, page, name, source_path in rows
    ]


def write(catalog: Catalog, pages: Sequence[PageBlobs]) -> None:
    with catalog.transaction() as connection:
        _write(connection, pages)


def give_up(catalog: Catalog, image: PageImage, failed: FailedPage) -> None:
    """The visual encoder cannot see this page. An empty row keeps it from being tried in every run."""
    with catalog.transaction() as connection:
        _write(connection, [PageBlobs(image.page_id, b"", b"", b"", b"")])
        record(connection, image.doc_id, [failed])


def _write(connection: sqlite3.Connection, pages: Sequence[PageBlobs]) -> None:
    first = reserve_sequence(connection, "page_vectors", len(pages))
    connection.executemany(
        "INSERT INTO page_vectors (seq, page_id, first, boxes, sketch, vectors) SELECT ?, ?, ?, ?, ?, ?"
        " WHERE EXISTS (SELECT 1 FROM pages WHERE page_id = ?) ON CONFLICT (page_id) DO UPDATE SET seq = excluded.seq,"
        " first = excluded.first, boxes = excluded.boxes, sketch = excluded.sketch, vectors = excluded.vectors",
        [
            (seq, page.page_id, page.first, page.boxes, page.sketch, page.vectors, page.page_id)
            for seq, page in enumerate(pages, start=first)
        ],
    )


def count(reader: Reader) -> int:
    return totals(reader).page_vectors


def count_unseen(reader: Reader) -> int:
    """Pages that a visual model has not looked at; none where `regions` or nothing is in use."""
    if visual_side(reader).kind != "model":
        return 0
    row = reader.connection.execute(
        "SELECT COUNT(*) FROM pages LEFT JOIN page_vectors USING (page_id) WHERE COALESCE(length(first), 0) = 0"
    ).fetchone()
    return int(row[0])


def last_sequence(reader: Reader) -> int:
    """The number of the newest row ever written, removed ones included."""
    return int(reader.meta("page_vectors_seq", "0"))


def vectors_of(reader: Reader, page_ids: Sequence[int] | None = None) -> Iterator[tuple[int, bytes]]:
    """page_id and packed vectors, of these pages or of all."""
    return _column(reader, "vectors", page_ids)


def first_of(reader: Reader, page_ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """page_id → what the collection holds of a page, (dim,)."""
    import numpy as np

    found = _column(reader, "first", page_ids)
    return {page_id: unpack_vectors([first])[0].astype(np.float32) for page_id, first in found}


def sketches_of(reader: Reader, page_ids: Sequence[int] | None = None) -> Iterator[tuple[int, bytes]]:
    """page_id and packed sketches, of these pages or of all."""
    return _column(reader, "sketch", page_ids)


def seen_of(reader: Reader, page_ids: Sequence[int]) -> Iterator[tuple[int, bytes, bytes]]:
    """page_id, packed vectors and boxes of pages that a visual model saw. Read together, so that they fit."""
    query = "SELECT page_id, vectors, boxes FROM page_vectors WHERE length(vectors) > 0 AND page_id IN"
    yield from rows_in(reader.connection, query, page_ids)


def embedded_lines_of(reader: Reader, page_ids: Sequence[int]) -> dict[int, tuple[list[Line], bytes]]:
    """page_id → its lines and their packed vectors, in the same order, of pages that have some."""
    query = (
        "SELECT page_id, lines, vectors FROM page_lines JOIN page_vectors USING (page_id)"
        " WHERE length(vectors) > 0 AND page_id IN"
    )
    return {int(row[0]): (_lines(row[1]), row[2]) for row in rows_in(reader.connection, query, page_ids)}


def _column(reader: Reader, name: str, page_ids: Sequence[int] | None) -> Iterator[tuple[int, bytes]]:
    query = f"SELECT page_id, {name} FROM page_vectors"
    if page_ids is None:
        rows = iter(reader.connection.execute(f"{query} ORDER BY page_id"))
    else:
        rows = rows_in(reader.connection, f"{query} WHERE page_id IN", page_ids, "ORDER BY page_id")
    yield from ((int(row[0]), row[1]) for row in rows)


def _lines(blob: bytes) -> list[Line]:
    return [Line(text, cast(Box, tuple(box))) for text, *box in json.loads(zlib.decompress(blob))]
