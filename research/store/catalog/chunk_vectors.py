"""Chunk vectors in the catalog: what is missing, writing them, reading them back."""

from __future__ import annotations

import json
import sqlite3
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from research.records import Region
from research.store.catalog.catalog import Catalog
from research.store.catalog.ledger import STAGE_VECTORS
from research.store.catalog.reader import (
    REVISION,
    Reader,
    batched,
    bump_revision,
    pack_vectors,
    reserve_sequence,
    rows_in,
    unpack_vectors,
    write_meta,
)
from research.text import embedding_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ENCODER = "text_encoder"
_DIM = "text_dim"
_SKETCH = "text_sketch"


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that still has no vector; `text` is what the encoder sees."""

    chunk_id: int
    text: str


@dataclass(frozen=True, slots=True)
class ComparedChunk:
    """A chunk with its visible pieces, at least one, and its cosine with a question."""

    text: str
    regions: tuple[Region, ...]
    cosine: float


def encoder_of(reader: Reader) -> str:
    """The name of the encoder that filled this index; empty while it has no vectors."""
    return reader.meta(_ENCODER)


def dim_of(reader: Reader) -> int:
    """Numbers in a vector of this index."""
    return int(reader.meta(_DIM, "0"))


def sketch_of(reader: Reader) -> str:
    """What the index remembers of a model that only its address names; empty for any other."""
    return reader.meta(_SKETCH)


def set_encoder(catalog: Catalog, name: str, dim: int, *, sketch: str = "", changed: bool = False) -> None:
    """Declare the encoder. Vectors of another one are dropped: an index never mixes two. `changed`: it is another one
    though its name is the same, as its `sketch` tells."""
    if encoder_of(catalog) == name and dim_of(catalog) == dim and not changed:
        return
    with catalog.transaction() as connection:
        connection.execute("DELETE FROM vectors")
        # Lines that OCR read have vectors of the same encoder; where its name changes they go by that.
        connection.execute(
            "DELETE FROM page_vectors WHERE EXISTS (SELECT 1 FROM meta WHERE key = 'visual_encoder' AND value = ?)",
            (f"regions:{name}",),
        )
        connection.execute(
            "INSERT INTO ledger SELECT doc_id, ? FROM documents WHERE 1 = 1 ON CONFLICT DO NOTHING", (STAGE_VECTORS,)
        )
        # A new identity parts the catalog from collections filled with the old encoder's vectors.
        values = {_ENCODER: name, _DIM: str(dim), _SKETCH: sketch, "catalog_id": uuid.uuid4().hex}
        write_meta(connection, values)


def pending_chunks(reader: Reader) -> Iterator[PendingChunk]:
    """Chunks without a vector, document by document."""
    documents = reader.connection.execute(
        "SELECT doc_id FROM ledger JOIN documents USING (doc_id) WHERE stage = ? ORDER BY documents.timestamp, doc_id",
        (STAGE_VECTORS,),
    ).fetchall()
    for (doc_id,) in documents:
        rows = reader.connection.execute(
            "SELECT c.chunk_id, c.context, c.text FROM pages p JOIN chunks c USING (page_id)"
            " LEFT JOIN vectors v USING (chunk_id) WHERE p.doc_id = ? AND v.seq IS NULL"
            " ORDER BY p.page, c.ordinal",
            (doc_id,),
        ).fetchall()
        for chunk_id, context, text in rows:
            body = zlib.decompress(text).decode()
            yield PendingChunk(chunk_id, embedding_text(context, body))


def count_chunks(reader: Reader) -> int:
    return int(reader.connection.execute("SELECT COUNT(*) FROM chunks").fetchone()[0])


def count_embedded(reader: Reader, chunk_ids: Sequence[int]) -> int:
    """How many of these chunks are in the reader, with their vectors."""
    return sum(
        row[0] for row in rows_in(reader.connection, "SELECT COUNT(*) FROM vectors WHERE chunk_id IN", chunk_ids)
    )


def longest_chunk(reader: Reader) -> int:
    """Tokens of the longest chunk; 0 in an empty index."""
    return int(reader.connection.execute("SELECT COALESCE(MAX(tokens), 0) FROM chunks").fetchone()[0])


def write_vectors(catalog: Catalog, chunk_ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
    """Store a batch, (n, dim)."""
    blobs = pack_vectors(vectors)
    with catalog.transaction() as connection:
        first = reserve_sequence(connection, "vectors", len(blobs))
        connection.executemany(
            "INSERT INTO vectors (seq, chunk_id, vector) VALUES (?, ?, ?)"
            " ON CONFLICT (chunk_id) DO UPDATE SET seq = excluded.seq, vector = excluded.vector",
            zip(range(first, first + len(blobs)), chunk_ids, blobs, strict=True),
        )


def touch_vectors(connection: sqlite3.Connection, doc_id: str) -> None:
    """Number a document's vectors anew, so that the collections take its changed metadata; part of the caller's
    transaction."""
    ours = (
        "FROM vectors WHERE chunk_id IN (SELECT chunk_id FROM chunks JOIN pages USING (page_id) WHERE pages.doc_id = ?)"
    )
    rows = connection.execute(f"SELECT chunk_id {ours} ORDER BY seq", (doc_id,)).fetchall()
    first = reserve_sequence(connection, "vectors", len(rows))
    numbered = [(seq, row[0]) for seq, row in enumerate(rows, start=first)]
    connection.executemany("UPDATE vectors SET seq = ? WHERE chunk_id = ?", numbered)
    bump_revision(connection)  # a document without text has no vector to tell by


def last_sequence(reader: Reader) -> int:
    """The number of the newest vector ever written, removed ones included."""
    return int(reader.meta("vectors_seq", "0"))


def revision_of(reader: Reader) -> int:
    """How many changes the collections must follow though no vector changed: a new name, a drawn page."""
    return int(reader.meta(REVISION, "0"))


def vectors_of(reader: Reader, chunk_ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """chunk_id → vector (dim,), of these chunks."""
    rows = [*rows_in(reader.connection, "SELECT chunk_id, vector FROM vectors WHERE chunk_id IN", chunk_ids)]
    return dict(zip([int(row[0]) for row in rows], _matrix([row[1] for row in rows]), strict=True))


def vectors_of_pages(reader: Reader, page_ids: Sequence[int]) -> tuple[list[int], NDArray[np.float32]]:
    """page ids (one a chunk) and vectors (n, dim) of these pages."""
    query = "SELECT page_id, vector FROM chunks JOIN vectors USING (chunk_id) WHERE page_id IN"
    rows = [*rows_in(reader.connection, query, page_ids)]
    return [int(row[0]) for row in rows], _matrix([row[1] for row in rows])


def nearest_on_pages(
    reader: Reader, page_ids: Sequence[int], asked: NDArray[np.float32], most: int | None = None
) -> dict[int, list[ComparedChunk]]:
    """page_id → its chunks, nearest to a question first, at most so many of each page."""
    rows: dict[int, list[Any]] = {page_id: [] for page_id in page_ids}
    query = "SELECT page_id, text, box, regions, vector FROM chunks JOIN vectors USING (chunk_id) WHERE page_id IN"
    for row in rows_in(reader.connection, query, page_ids, "ORDER BY page_id, ordinal"):
        rows[row[0]].append(row)
    return {page_id: _nearest(found, asked, most) for page_id, found in rows.items()}


def _nearest(rows: Sequence[Any], asked: NDArray[np.float32], most: int | None) -> list[ComparedChunk]:
    if not rows:
        return []
    found = cosines(_matrix([row[4] for row in rows]), asked).tolist()
    best = sorted(range(len(rows)), key=lambda n: -found[n])[:most]
    nearest: list[ComparedChunk] = []
    for n in best:
        _, text, box, regions, _ = rows[n]
        nearest.append(ComparedChunk(zlib.decompress(text).decode(), _regions(regions, box), found[n]))
    return nearest


def _regions(stored: str, whole: str) -> tuple[Region, ...]:
    entries = json.loads(stored) or [[0, *json.loads(whole)]]
    regions: list[Region] = []
    for start, *box in entries:
        x0, y0, x1, y1 = box
        regions.append(Region(int(start), (x0, y0, x1, y1)))
    return tuple(regions)


def cosines(matrix: NDArray[np.float32], asked: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of unit rows (n, dim) with a unit vector (dim,). Not by BLAS: its threads go on spinning for a while after each
    product, on the core where another leg is at work."""
    import numpy as np

    found: NDArray[np.float32] = np.einsum("ij,j->i", matrix, asked)
    return found


def page_means(reader: Reader, page_ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """page_id → the direction its chunks share, (dim,), unit length; zero for a page without text."""
    import numpy as np

    dim = int(reader.meta(_DIM, "1"))
    means = {page_id: np.zeros(dim, dtype=np.float32) for page_id in page_ids}
    for owner, vector in zip(*vectors_of_pages(reader, page_ids), strict=True):
        means[owner] += vector
    return {page_id: total / (np.linalg.norm(total) or 1.0) for page_id, total in means.items()}


def page_ids_of_chunks(reader: Reader, keys: Sequence[str], *, through_seq: int) -> dict[str, int]:
    """Chroma record id → page_id, for records that are still current: present, and written by `through_seq`."""
    found: dict[str, int] = {}
    for part in batched([key.rsplit(":", 2) for key in keys], values=3):
        # The plus keeps SQLite from walking all vectors by their numbers: each wanted key is looked up.
        rows = reader.connection.execute(
            f"WITH wanted (doc_id, page, ordinal) AS (VALUES {','.join(['(?, ?, ?)'] * len(part))})"
            " SELECT w.doc_id, w.page, w.ordinal, p.page_id FROM wanted w"
            " JOIN pages p ON p.doc_id = w.doc_id AND p.page = w.page"
            " JOIN chunks c ON c.page_id = p.page_id AND c.ordinal = w.ordinal"
            " JOIN vectors v ON v.chunk_id = c.chunk_id WHERE +v.seq <= ?",
            (*(value for d, p, o in part for value in (d, int(p), int(o))), through_seq),
        )
        found.update((f"{doc_id}:{page}:{ordinal}", int(page_id)) for doc_id, page, ordinal, page_id in rows)
    return found


def _matrix(blobs: Sequence[bytes]) -> NDArray[np.float32]:
    import numpy as np

    if not blobs:
        return np.zeros((0, 0), dtype=np.float32)
    return unpack_vectors(blobs).astype(np.float32)
