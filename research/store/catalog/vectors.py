"""Chunk vectors in the catalog: what is missing, writing them, reading them back."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.records import Region
from research.store.catalog.catalog import Catalog
from research.store.catalog.ledger import STAGE_VECTORS
from research.store.catalog.pages import marks, slices
from research.text import embedding_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ENCODER = "text_encoder"
_DIM = "text_dim"
_KEYS_A_STATEMENT = 250  # three variables each


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


def encoder_of(catalog: Catalog) -> str:
    """The name of the encoder that filled this index; empty while it has no vectors."""
    return catalog.meta(_ENCODER)


def dim_of(catalog: Catalog) -> int:
    """Numbers in a vector of this index."""
    return int(catalog.meta(_DIM, "0"))


def set_encoder(catalog: Catalog, name: str, dim: int) -> None:
    """Declare the encoder. Vectors of another one are dropped: an index never mixes two."""
    if encoder_of(catalog) == name:
        return
    with catalog.transaction() as connection:
        connection.execute("DELETE FROM vectors")
        connection.execute("INSERT OR IGNORE INTO ledger SELECT doc_id, ? FROM documents", (STAGE_VECTORS,))
        # A new identity parts the catalog from collections filled with the old encoder's vectors.
        values = [(_ENCODER, name), (_DIM, str(dim)), ("catalog_id", uuid.uuid4().hex)]
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)


def pending_chunks(catalog: Catalog) -> Iterator[PendingChunk]:
    """Chunks without a vector, document by document."""
    documents = catalog.connection.execute(
        "SELECT doc_id FROM ledger JOIN documents USING (doc_id) WHERE stage = ? ORDER BY documents.rowid",
        (STAGE_VECTORS,),
    ).fetchall()
    for (doc_id,) in documents:
        rows = catalog.connection.execute(
            "SELECT c.chunk_id, c.context, c.text FROM pages p JOIN chunks c USING (page_id)"
            " LEFT JOIN vectors v USING (chunk_id) WHERE p.doc_id = ? AND v.seq IS NULL"
            " ORDER BY p.page, c.ordinal",
            (doc_id,),
        ).fetchall()
        for chunk_id, context, text in rows:
            body = zlib.decompress(text).decode()
            yield PendingChunk(chunk_id, embedding_text(context, body))


# CROSS JOIN keeps SQLite to the order written: from the few documents of the ledger to their chunks, not back from all.
def count_pending(catalog: Catalog) -> int:
    row = catalog.connection.execute(
        "SELECT COUNT(*) FROM ledger CROSS JOIN pages USING (doc_id) CROSS JOIN chunks USING (page_id)"
        " LEFT JOIN vectors USING (chunk_id) WHERE stage = ? AND seq IS NULL",
        (STAGE_VECTORS,),
    ).fetchone()
    return int(row[0])


def count_chunks(catalog: Catalog) -> int:
    return int(catalog.connection.execute("SELECT COUNT(*) FROM chunks").fetchone()[0])


def count_embedded(catalog: Catalog, chunk_ids: Sequence[int]) -> int:
    """How many of these chunks are in the catalog, with their vectors."""
    return sum(
        int(
            catalog.connection.execute(
                f"SELECT COUNT(*) FROM vectors WHERE chunk_id IN ({marks(part)})", tuple(part)
            ).fetchone()[0]
        )
        for part in slices(chunk_ids)
    )


def longest_chunk(catalog: Catalog) -> int:
    """Tokens of the longest chunk; 0 in an empty index."""
    return int(catalog.connection.execute("SELECT COALESCE(MAX(tokens), 0) FROM chunks").fetchone()[0])


def write_vectors(catalog: Catalog, chunk_ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
    """Store a batch, (n, dim), and close the ledger of every document that is complete with it."""
    half = vectors.astype("<f2")
    with catalog.transaction() as connection:
        connection.executemany(
            "INSERT OR REPLACE INTO vectors (chunk_id, vector) VALUES (?, ?)",
            [(chunk_id, row.tobytes()) for chunk_id, row in zip(chunk_ids, half, strict=True)],
        )


def close_ledger(catalog: Catalog) -> None:
    """Strike off every document whose chunks all have vectors."""
    with catalog.transaction() as connection:
        connection.execute(
            "DELETE FROM ledger WHERE stage = ? AND doc_id NOT IN ("
            " SELECT doc_id FROM ledger CROSS JOIN pages USING (doc_id) CROSS JOIN chunks USING (page_id)"
            " LEFT JOIN vectors USING (chunk_id) WHERE stage = ? AND seq IS NULL)",
            (STAGE_VECTORS, STAGE_VECTORS),
        )


def last_sequence(catalog: Catalog) -> int:
    """The number of the newest vector ever written, removed ones included."""
    row = catalog.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'vectors'").fetchone()
    return 0 if row is None else int(row[0])


def vectors_after(catalog: Catalog, sequence: int) -> tuple[list[int], NDArray[np.float32]]:
    """page ids and vectors (n, dim) written after a sequence number."""
    rows = catalog.connection.execute(
        "SELECT page_id, vector FROM vectors JOIN chunks USING (chunk_id) WHERE seq > ? ORDER BY seq",
        (sequence,),
    ).fetchall()
    return [int(row[0]) for row in rows], _matrix([row[1] for row in rows])


def vectors_of_pages(catalog: Catalog, page_ids: Sequence[int]) -> tuple[list[int], NDArray[np.float32]]:
    """page ids (one a chunk) and vectors (n, dim) of these pages."""
    rows = [
        row
        for part in slices(page_ids)
        for row in catalog.connection.execute(
            f"SELECT page_id, vector FROM chunks JOIN vectors USING (chunk_id) WHERE page_id IN ({marks(part)})",
            part,
        )
    ]
    return [int(row[0]) for row in rows], _matrix([row[1] for row in rows])


def nearest_on_page(
    catalog: Catalog, page_id: int, asked: NDArray[np.float32], most: int | None = None
) -> list[ComparedChunk]:
    """A page's chunks by cosine with a question's vector (dim,), best first; the `most` best, or all."""
    rows = catalog.connection.execute(
        "SELECT text, box, regions, vector FROM chunks JOIN vectors USING (chunk_id) WHERE page_id = ?"
        " ORDER BY ordinal",
        (page_id,),
    ).fetchall()
    if not rows:
        return []
    found = cosines(_matrix([row["vector"] for row in rows]), asked).tolist()
    best = sorted(range(len(rows)), key=lambda n: -found[n])[:most]
    return [
        ComparedChunk(zlib.decompress(rows[n]["text"]).decode(), _regions(rows[n]["regions"], rows[n]["box"]), found[n])
        for n in best
    ]


def _regions(stored: str, whole: str) -> tuple[Region, ...]:
    entries = json.loads(stored) or [[0, *json.loads(whole)]]
    return tuple(Region(int(start), (x0, y0, x1, y1)) for start, x0, y0, x1, y1 in entries)


def cosines(matrix: NDArray[np.float32], asked: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of unit rows (n, dim) with a unit vector (dim,). Not by BLAS: its threads go on spinning for a while after each
    product, on the core where another leg is at work."""
    import numpy as np

    found: NDArray[np.float32] = np.einsum("ij,j->i", matrix, asked)
    return found


def page_means(catalog: Catalog, page_ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """page_id → the direction its chunks share, (dim,), unit length; zero for a page without text."""
    import numpy as np

    dim = int(catalog.meta(_DIM, "1"))
    means = {page_id: np.zeros(dim, dtype=np.float32) for page_id in page_ids}
    for owner, vector in zip(*vectors_of_pages(catalog, page_ids), strict=True):
        means[owner] += vector
    return {page_id: total / (np.linalg.norm(total) or 1.0) for page_id, total in means.items()}


def page_ids_of_chunks(catalog: Catalog, keys: Sequence[str], *, upto: int) -> dict[str, int]:
    """Chroma record id → page_id, for records that are still current: present, and written by `upto`."""
    found: dict[str, int] = {}
    for start in range(0, len(keys), _KEYS_A_STATEMENT):
        part = [key.rsplit(":", 2) for key in keys[start : start + _KEYS_A_STATEMENT]]
        # CROSS JOIN keeps SQLite to this order: each wanted key is looked up, nothing is scanned.
        rows = catalog.connection.execute(
            f"WITH wanted (doc_id, page, ordinal) AS (VALUES {','.join(['(?, ?, ?)'] * len(part))})"
            " SELECT w.doc_id, w.page, w.ordinal, p.page_id FROM wanted w"
            " CROSS JOIN pages p ON p.doc_id = w.doc_id AND p.page = w.page"
            " CROSS JOIN chunks c ON c.page_id = p.page_id AND c.ordinal = w.ordinal"
            " CROSS JOIN vectors v ON v.chunk_id = c.chunk_id WHERE v.seq <= ?",
            (*(value for d, p, o in part for value in (d, int(p), int(o))), upto),
        )
        found.update((f"{doc_id}:{page}:{ordinal}", int(page_id)) for doc_id, page, ordinal, page_id in rows)
    return found


def _matrix(blobs: Sequence[bytes]) -> NDArray[np.float32]:
    import numpy as np

    if not blobs:
        return np.zeros((0, 0), dtype=np.float32)
    return np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), -1).astype(np.float32)
