"""A small index to talk about, made without PDFs: handbooks of two years, a manual, a bridge."""

from __future__ import annotations

from pathlib import Path

from research.encoders import DEFAULT, load_text_encoder
from research.records import Chunk, DocumentInfo, Page
from research.store import Catalog, FileStamp, IndexPaths, write_lock
from research.store import publish as writer

PAGES = {
    "harbour-handbook-2024.pdf": [
        "Contents of the rules for staff.",
        "A shipwright earns 19.60 euros an hour. A barista earns 17.10 euros an hour.",
        "Parental leave lasts 16 weeks. The other parent has four weeks.",
    ],
    "harbour-handbook-2025.pdf": [
        "Contents of the rules for staff, seventh edition.",
        "A shipwright earns 20.45 euros an hour. A barista earns 17.85 euros an hour.",
        "Parental leave lasts 18 weeks. The other parent has six weeks.",
    ],
    "g4-controller-manual.pdf": [
        "The G4 opens vents and runs fans.",
        "The guarantee runs for 36 months. The wind vane is covered for 12 months.",
        "E02 means that a probe is not connected. E09 means that it is too hot.",
    ],
    "footbridge-letter.pdf": [
        "The beam of the footbridge is rotten. Otters live in the bank.",
        "Option A costs 6,800.",
    ],
}


def doc_id_of(name: str, version: int = 0) -> str:
    return f"{sorted(PAGES).index(name) + 1 + 16 * version:016x}"


def add(catalog: Catalog, name: str, pages: list[str], version: int = 0) -> str:
    """A document at its path, in place of what stood there."""
    doc_id = doc_id_of(name, version)
    info = DocumentInfo(
        doc_id, name, "pdf", "", len(pages), "2026-01-02T03:04:05+00:00", f"/gone/{name}", 10, doc_id * 4
    )
    read = [
        (Page(number, text), [Chunk(number, 0, text, "", 9, (0, 0, 1, 1))])
        for number, text in enumerate(pages, start=1)
    ]
    catalog.documents.add(info, FileStamp(f"/gone/{name}", 1, 1, 1, 1), read, reader_version=1)
    return doc_id


def make_talkative(root: Path) -> None:
    paths = IndexPaths(root)
    paths.create()
    with write_lock(paths), Catalog(paths, writable=True) as catalog:
        for name, pages in PAGES.items():
            add(catalog, name, pages)
        encoder = load_text_encoder(DEFAULT)
        catalog.chunks.set_encoder(encoder.name, encoder.dim)
        catalog.visual.set_encoder(f"regions:{encoder.name}", encoder.dim)
        chunks = list(catalog.chunks.pending())
        made = encoder.embed([chunk.text for chunk in chunks])
        catalog.chunks.write([chunk.chunk_id for chunk in chunks], made)
        catalog.ledger.close()
        writer.publish(catalog)
