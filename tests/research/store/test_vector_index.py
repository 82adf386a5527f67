"""The nearest pages: the same from Chroma and from a scan, whatever is published and however it is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest
from index_making import DIM, Making, stamp
from numpy.typing import NDArray

from research.records import Chunk, DocumentInfo, Page
from research.store import publish as writer
from research.store.nearest import VectorIndex, exact_scan


def question(seed: int = 1) -> NDArray[np.float32]:
    vector = np.random.default_rng(seed).standard_normal(DIM).astype(np.float32)
    return vector / np.linalg.norm(vector)


def add_pages(making: Making, name: str, pages: int, chunks: int) -> str:
    """A document whose pages have several chunks each."""
    sha256 = hashlib.sha256(name.encode()).hexdigest()
    doc_id, at = sha256[:16], "2026-01-01T00:00:00+00:00"
    info = DocumentInfo(doc_id, f"{name}.pdf", "pdf", "T", pages, at, f"/d/{name}", 1, sha256)
    read = [
        (Page(page, "text"), [Chunk(page, n, f"{name} {page} {n}", "T", 5, (0, 0, 1, 1)) for n in range(chunks)])
        for page in range(1, pages + 1)
    ]
    making.catalog.documents.add(info, stamp(f"/d/{name}"), read, reader_version=1)
    making.embed()
    return doc_id


def same(found: Sequence[tuple[int, float]], wanted: Sequence[tuple[int, float]]) -> None:
    assert [page_id for page_id, _ in found] == [page_id for page_id, _ in wanted]
    assert [score for _, score in found] == pytest.approx([score for _, score in wanted], abs=1e-5)


def test_chroma_finds_what_a_scan_finds(making: Making) -> None:
    add_pages(making, "a", 20, 3)
    writer.publish(making.catalog)
    chroma = VectorIndex(making.paths)
    for seed in range(5):
        for count in (1, 7, 20, 100):
            answer = chroma.nearest(making.catalog, question(seed), count)
            assert (answer.served_by, answer.problem) == ("core", "")
            same(answer.pairs, exact_scan(making.catalog, question(seed), count).pairs)
    chroma.refresh()


@pytest.mark.parametrize("published", [True, False])
def test_as_many_pages_as_asked_for(making: Making, published: bool) -> None:
    """A page of forty chunks is one page: fourteen more are found behind it."""
    add_pages(making, "many", 1, 40)
    add_pages(making, "few", 30, 1)
    if published:
        writer.publish(making.catalog)
    index = VectorIndex(making.paths)
    assert len(index.nearest(making.catalog, question(), 1).pairs) == 1
    rows = making.catalog.execute(
        "SELECT vector FROM vectors JOIN chunks USING (chunk_id) WHERE page_id = ?", (1,)
    ).fetchall()
    near = np.frombuffer(rows[0][0], "<f2").astype(np.float32)
    for vector in (question(), near / np.linalg.norm(near)):
        found = index.nearest(making.catalog, vector, 15).pairs
        assert len(found) == len({page_id for page_id, _ in found}) == 15
    assert len(index.nearest(making.catalog, question(), 1000).pairs) == 31
    index.refresh()


def test_what_came_later_is_found_and_what_went_is_not(making: Making) -> None:
    gone = add_pages(making, "gone", 5, 2)
    add_pages(making, "kept", 5, 2)
    writer.publish(making.catalog)
    add_pages(making, "late", 5, 2)
    making.catalog.documents.remove(gone)
    index = VectorIndex(making.paths)
    answer = index.nearest(making.catalog, question(), 100)
    assert answer.served_by == "core"
    same(answer.pairs, exact_scan(making.catalog, question(), 100).pairs)
    assert len(answer.pairs) == 10
    index.refresh()


def test_no_similarity_is_above_one(making: Making) -> None:
    add_pages(making, "a", 10, 1)
    writer.publish(making.catalog)
    index = VectorIndex(making.paths)
    for row in making.catalog.execute("SELECT vector FROM vectors").fetchall():
        vector = np.frombuffer(row[0], "<f2").astype(np.float32)
        vector *= 1.01
        for nearest in (index.nearest, exact_scan):
            assert nearest(making.catalog, vector, 1).pairs[0][1] <= 1.0
    index.refresh()


def test_an_index_without_collections_is_scanned(making: Making) -> None:
    index = VectorIndex(making.paths)
    assert index.nearest(making.catalog, question(), 10).pairs == []
    add_pages(making, "a", 3, 2)
    answer = index.nearest(making.catalog, question(), 10)
    assert (len(answer.pairs), answer.served_by, answer.problem) == (3, "exact", "")
    writer.publish(making.catalog)
    assert index.nearest(making.catalog, question(), 10).served_by == "core"


def test_vectors_of_another_size_are_passed_by(making: Making) -> None:
    add_pages(making, "a", 3, 1)
    making.catalog.execute("UPDATE vectors SET vector = x'0000' WHERE seq = 1")
    assert len(exact_scan(making.catalog, question(), 10).pairs) == 2
