"""Vectors in the catalog: what is pending, what is written, which encoder they are of."""

from __future__ import annotations

import numpy as np
import pytest
from index_making import Making

from tests.research.store.index_making import vectors_after


def test_pending_chunks_hold_what_the_encoder_sees(making: Making) -> None:
    making.add("a.pdf", ["walrus", "", "seal"])
    assert making.catalog.chunks.encoder() == ""
    assert [chunk.text for chunk in making.catalog.chunks.pending()] == ["A title\nwalrus", "A title\nseal"]
    assert making.catalog.ledger.count_pending() == making.catalog.chunks.count() == 2


def test_half_written_documents_stay_in_the_ledger(making: Making) -> None:
    first = making.add("a.pdf", ["walrus", "seal"]).doc_id
    making.catalog.chunks.set_encoder("made-up", 2)
    waiting = [chunk.chunk_id for chunk in making.catalog.chunks.pending()]
    making.catalog.chunks.write(waiting[:1], np.array([[1, 0]], np.float32))
    making.catalog.ledger.close()
    assert making.catalog.ledger.unfinished() == {"vectors": [first]}
    assert [chunk.chunk_id for chunk in making.catalog.chunks.pending()] == waiting[1:]
    making.catalog.chunks.write(waiting[1:], np.array([[0, 1]], np.float32))
    making.catalog.ledger.close()
    assert making.catalog.ledger.unfinished() == {}
    owners, matrix = vectors_after(making.catalog, 0)
    assert len(owners) == 2
    assert matrix.tolist() == [[1, 0], [0, 1]]


def test_a_document_without_text_is_finished_at_once(making: Making) -> None:
    making.add("scan.pdf", ["", " "])
    assert making.catalog.ledger.count_pending() == 0
    making.catalog.ledger.close()
    assert making.catalog.ledger.unfinished() == {}


def test_half_precision_keeps_a_vector_s_direction(making: Making) -> None:
    making.add("a.pdf", [f"page {n}" for n in range(20)])
    waiting = [chunk.chunk_id for chunk in making.catalog.chunks.pending()]
    exact = np.random.default_rng(3).standard_normal((20, 384)).astype(np.float32)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    making.catalog.chunks.set_encoder("made-up", 384)
    making.catalog.chunks.write(waiting, exact)
    _, stored = vectors_after(making.catalog, 0)
    assert float((stored * exact).sum(axis=1).min()) > 0.9999


def test_another_encoder_s_vectors_are_never_mixed(making: Making) -> None:
    info = making.add("a.pdf", ["walrus", "seal"])
    making.embed(dim=8, encoder="first")
    identity = making.catalog.meta("catalog_id")
    making.catalog.chunks.set_encoder("first", 8)
    assert making.count("vectors") == 2, "the same encoder changes nothing"
    assert making.catalog.meta("catalog_id") == identity
    making.catalog.chunks.set_encoder("second", 4)
    assert making.count("vectors") == 0
    assert making.catalog.ledger.unfinished() == {"vectors": [info.doc_id]}
    assert making.catalog.chunks.encoder() == "second"


def test_the_sequence_never_runs_back(making: Making) -> None:
    assert making.catalog.chunks.last_sequence() == 0
    info = making.add("a.pdf", ["walrus", "seal"])
    making.embed()
    assert making.catalog.chunks.last_sequence() == 2
    making.catalog.documents.remove(info.doc_id)
    assert making.catalog.chunks.last_sequence() == 2
    making.add("b.pdf", ["orca"])
    making.embed()
    assert making.catalog.chunks.last_sequence() == 3
    assert len(vectors_after(making.catalog, 2)[0]) == 1


def test_only_current_records_lead_to_a_page(making: Making) -> None:
    info = making.add("a.pdf", ["walrus", "seal"])
    making.embed()
    keys = [f"{info.doc_id}:1:0", f"{info.doc_id}:2:0", f"{info.doc_id}:9:0", "0:1:0"]
    assert set(making.catalog.chunks.page_ids(keys, through_seq=2)) == set(keys[:2])
    assert set(making.catalog.chunks.page_ids(keys, through_seq=1)) == set(keys[:1])


def test_many_records_lead_to_the_pages_that_looking_each_up_gives(making: Making) -> None:
    infos = [making.add(f"{n}.pdf", [f"page {p} of {n}" for p in range(120)]) for n in range(5)]
    making.embed()
    keys = [f"{info.doc_id}:{page}:0" for info in infos for page in range(130, 0, -1)]
    found = making.catalog.chunks.page_ids(keys, through_seq=450)
    rows = making.catalog.execute(
        "SELECT doc_id, page, ordinal, page_id FROM vectors JOIN chunks USING (chunk_id) JOIN pages USING (page_id)"
        " WHERE seq <= 450"
    )
    assert found == {f"{doc_id}:{page}:{ordinal}": page_id for doc_id, page, ordinal, page_id in rows}
    assert len(found) == 450


def test_a_page_s_mean_has_unit_length_and_a_blank_page_s_is_zero(making: Making) -> None:
    info = making.add("a.pdf", ["walrus", ""])
    making.embed()
    means = making.catalog.chunks.page_means(sorted(making.catalog.pages.ids_of([info.doc_id])))
    lengths = [float(np.linalg.norm(mean)) for mean in means.values()]
    assert lengths == [pytest.approx(1.0), 0.0]
