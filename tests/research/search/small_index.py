"""Small indexes with real vectors, made without PDFs: what is tested here is searching."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from research.encoders import TextEncoder
from research.models import Question
from research.records import WHOLE_PAGE, Chunk, DocumentInfo, Page
from research.search.legs import Hits, Leg
from research.store import Catalog, FileStamp, IndexPaths, Reader


def open_catalog(root: Path) -> Catalog:
    return Catalog(IndexPaths(root), writable=True)


def add(
    catalog: Catalog, documents: Mapping[str, Sequence[str]], titles: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Add documents given as path → pages. A paragraph is a chunk. Returns path → doc_id."""
    ids = {}
    for path, pages in documents.items():
        sha256 = hashlib.sha256(f"{path}\f".encode() + "\f".join(pages).encode()).hexdigest()
        title = (titles or {}).get(path, "")
        info = DocumentInfo(sha256[:16], Path(path).name, "pdf", title, len(pages), "", path, 1, sha256)
        read = [(Page(number, text), _chunks(number, text)) for number, text in enumerate(pages, start=1)]
        catalog.documents.add(info, FileStamp(path, 1, 1, 1, 1), read, reader_version=1)
        ids[path] = info.doc_id
    return ids


def embed(catalog: Catalog, encoder: TextEncoder) -> None:
    catalog.chunks.set_encoder(encoder.name, encoder.dim)
    catalog.visual.set_encoder(f"regions:{encoder.name}", encoder.dim)
    waiting = list(catalog.chunks.pending())
    if waiting:
        matrix = encoder.embed([chunk.text for chunk in waiting])
        catalog.chunks.write([chunk.chunk_id for chunk in waiting], matrix)
    catalog.ledger.close()


def _chunks(page: int, text: str) -> list[Chunk]:
    parts = [part for part in text.split("\n\n") if part.strip()]
    return [Chunk(page, ordinal, part, "", 5, WHOLE_PAGE) for ordinal, part in enumerate(parts)]


def find(leg: Leg, reader: Reader, question: str, depth: int) -> Hits:
    """What a leg finds by itself, best first."""
    asked = Question(question)
    hits = leg.score(reader, asked, sorted(leg.candidates(reader, asked, depth)))
    return dict(sorted(hits.items(), key=lambda entry: -entry[1].score))


def score(leg: Leg, reader: Reader, question: str, page_ids: list[int]) -> Hits:
    return leg.score(reader, Question(question), page_ids)
