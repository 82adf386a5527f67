"""A catalog made by hand: what is tested here is the index, not the reading of PDFs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from research.records import Chunk, DocumentInfo, Page
from research.store.catalog import Catalog
from research.store.documents import FileStamp
from research.store.nearest import VectorIndex
from research.store.paths import IndexPaths
from research.store.reader import Reader

ENCODER = "made-up"
DIM = 8
JPEG = b"\xff\xd8\xff\xe0 the beginning of one"
WEBP = b"RIFF\x10\0\0\0WEBP the beginning of one"


class Making:
    """A writable catalog and short ways to fill it. A page's text is its only chunk; a blank page has none."""

    def __init__(self, root: Path) -> None:
        self.paths = IndexPaths(root)
        self.catalog = Catalog(self.paths, writable=True)
        self._random = np.random.default_rng(7)

    def add(self, name: str, pages: Sequence[str], *, folder: str = "/docs", version: int = 1) -> DocumentInfo:
        """Add a document whose content is its pages, as a file of that name."""
        sha256 = hashlib.sha256("\f".join(pages).encode()).hexdigest()
        path = f"{folder}/{name}"
        info = DocumentInfo(
            sha256[:16], name, "pdf", "A title", len(pages), "2026-01-01T00:00:00+00:00", path, 1, sha256
        )
        read = [(Page(number, text), chunks_of(number, text)) for number, text in enumerate(pages, start=1)]
        self.catalog.documents.add(info, stamp(path), read, reader_version=version)
        return info

    def embed(self, dim: int = DIM, encoder: str = ENCODER) -> None:
        """Give every chunk without one a made-up unit vector."""
        self.catalog.chunks.set_encoder(encoder, dim)
        self.catalog.visual.set_encoder(f"regions:{encoder}", dim)
        waiting = [chunk.chunk_id for chunk in self.catalog.chunks.pending()]
        matrix = self._random.standard_normal((len(waiting), dim)).astype(np.float32)
        if waiting:
            self.catalog.chunks.write(waiting, matrix / np.linalg.norm(matrix, axis=1, keepdims=True))
        self.catalog.ledger.close()

    def count(self, table: str) -> int:
        return int(self.catalog.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def vectors_after(reader: Reader, sequence: int) -> tuple[list[int], NDArray[np.float32]]:
    """Page ids and vectors (n, dim) written after a sequence number."""
    rows = reader.execute(
        "SELECT page_id, vector FROM vectors JOIN chunks USING (chunk_id) WHERE seq > ? ORDER BY seq", (sequence,)
    ).fetchall()
    stored = [np.frombuffer(row[1], "<f2").astype(np.float32) for row in rows]
    return [int(row[0]) for row in rows], np.stack(stored)


def sync_if_stale(paths: IndexPaths) -> bool:
    """As a question does it."""
    with Catalog(paths) as catalog:
        return VectorIndex(paths).sync_if_stale(catalog)


def stamp(path: str, size: int = 1) -> FileStamp:
    return FileStamp(path, size, 1, 1, 1)


def chunks_of(page: int, text: str) -> list[Chunk]:
    return [Chunk(page, 0, text, "A title", 5, (0.0, 0.0, 1.0, 1.0))] if text.strip() else []
