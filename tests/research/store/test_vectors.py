"""Vectors in the catalog: what is pending, what is written, which encoder they are of."""

from __future__ import annotations

import numpy as np
import pytest
from index_making import Making

from research.store.catalog import chunk_vectors, ledger
from research.store.catalog.document_writes import remove_document
from research.store.catalog.ledger import unfinished
from research.store.catalog.pages import page_ids_of
from research.store.vectors.generations import chunk_key
from tests.research.store.index_making import vectors_after


def test_pending_chunks_hold_what_the_encoder_sees(making: Making) -> None:
    making.add("a.pdf", ["walrus", "", "seal"])
    assert chunk_vectors.encoder_of(making.catalog) == ""
    assert [chunk.text for chunk in chunk_vectors.pending_chunks(making.catalog)] == [
        "A title\nwalrus",
        "A title\nseal",
    ]
    assert ledger.count_pending(making.catalog) == chunk_vectors.count_chunks(making.catalog) == 2


def test_half_written_documents_stay_in_the_ledger(making: Making) -> None:
    first = making.add("a.pdf", ["walrus", "seal"]).doc_id
    chunk_vectors.set_encoder(making.catalog, "made-up", 2)
    waiting = [chunk.chunk_id for chunk in chunk_vectors.pending_chunks(making.catalog)]
    chunk_vectors.write_vectors(making.catalog, waiting[:1], np.array([[1, 0]], np.float32))
    ledger.close_ledger(making.catalog)
    assert unfinished(making.catalog) == {"vectors": [first]}
    assert [chunk.chunk_id for chunk in chunk_vectors.pending_chunks(making.catalog)] == waiting[1:]
    chunk_vectors.write_vectors(making.catalog, waiting[1:], np.array([[0, 1]], np.float32))
    ledger.close_ledger(making.catalog)
    assert unfinished(making.catalog) == {}
    owners, matrix = vectors_after(making.catalog, 0)
    assert len(owners) == 2
    assert matrix.tolist() == [[1, 0], [0, 1]]


def test_a_document_without_text_is_finished_at_once(making: Making) -> None:
    making.add("scan.pdf", ["", " "])
    assert ledger.count_pending(making.catalog) == 0
    ledger.close_ledger(making.catalog)
    assert unfinished(making.catalog) == {}


def test_half_precision_keeps_a_vector_s_direction(making: Making) -> None:
    making.add("a.pdf", [f"page {n}" for n in range(20)])
    waiting = [chunk.chunk_id for chunk in chunk_vectors.pending_chunks(making.catalog)]
    exact = np.random.default_rng(3).standard_normal((20, 384)).astype(np.float32)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    chunk_vectors.set_encoder(making.catalog, "made-up", 384)
    chunk_vectors.write_vectors(making.catalog, waiting, exact)
    _, stored = vectors_after(making.catalog, 0)
    assert float((stored * exact).sum(axis=1).min()) > 0.9999


def test_another_encoder_s_vectors_are_never_mixed(making: Making) -> None:
    info = making.add("a.pdf", ["walrus", "seal"])
    making.embed(dim=8, encoder="first")
    identity = making.catalog.meta("catalog_id")
    chunk_vectors.set_encoder(making.catalog, "first", 8)
    assert making.count("vectors") == 2, "the same encoder changes nothing"
    assert making.catalog.meta("catalog_id") == identity
    chunk_vectors.set_encoder(making.catalog, "second", 4)
    assert making.count("vectors") == 0
    assert unfinished(making.catalog) == {"vectors": [info.doc_id]}
    assert chunk_vectors.encoder_of(making.catalog) == "second"


def test_the_sequence_never_runs_back(making: Making) -> None:
    assert chunk_vectors.last_sequence(making.catalog) == 0
    info = making.add("a.pdf", ["walrus", "seal"])
    making.embed()
    assert chunk_vectors.last_sequence(making.catalog) == 2
    remove_document(making.catalog, info.doc_id)
    assert chunk_vectors.last_sequence(making.catalog) == 2
    making.add("b.pdf", ["orca"])
    making.embed()
    assert chunk_vectors.last_sequence(making.catalog) == 3
    assert len(vectors_after(making.catalog, 2)[0]) == 1


def test_only_current_records_lead_to_a_page(making: Making) -> None:
    info = making.add("a.pdf", ["walrus", "seal"])
    making.embed()
    keys = [chunk_key(info.doc_id, 1, 0), chunk_key(info.doc_id, 2, 0), chunk_key(info.doc_id, 9, 0), "0:1:0"]
    assert set(chunk_vectors.page_ids_of_chunks(making.catalog, keys, through_seq=2)) == set(keys[:2])
    assert set(chunk_vectors.page_ids_of_chunks(making.catalog, keys, through_seq=1)) == set(keys[:1])


def test_many_records_lead_to_the_pages_that_looking_each_up_gives(making: Making) -> None:
    infos = [making.add(f"{n}.pdf", [f"page {p} of {n}" for p in range(120)]) for n in range(5)]
    making.embed()
    keys = [chunk_key(info.doc_id, page, 0) for info in infos for page in range(130, 0, -1)]
    found = chunk_vectors.page_ids_of_chunks(making.catalog, keys, through_seq=450)
    rows = making.catalog.connection.execute(
        "SELECT doc_id, page, ordinal, page_id FROM vectors JOIN chunks USING (chunk_id) JOIN pages USING (page_id)"
        " WHERE seq <= 450"
    )
    assert found == {chunk_key(*row[:3]): row[3] for row in rows}
    assert len(found) == 450


def test_a_page_s_mean_has_unit_length_and_a_blank_page_s_is_zero(making: Making) -> None:
    info = making.add("a.pdf", ["walrus", ""])
    making.embed()
    means = chunk_vectors.page_means(making.catalog, sorted(page_ids_of(making.catalog, [info.doc_id])))
    lengths = [float(np.linalg.norm(mean)) for mean in means.values()]
    assert lengths == [pytest.approx(1.0), 0.0]
