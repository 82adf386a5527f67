"""The dense leg: the catalog's vectors decide, wherever they are kept."""

from __future__ import annotations

import numpy as np
import pytest
from small_index import add, embed

from research.encoders.base import TextEncoder
from research.encoders.registry import ALIASES
from research.errors import CtxError
from research.search.dense import DenseLeg, QuestionVectors
from research.search.visual import VisualLeg
from research.store.catalog import vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import remove_document
from research.store.catalog.pages import get_pages, page_ids_of
from research.store.client import ChromaClient
from research.store.vectors import sync_state, writer

QUESTIONS = ["parental leave", "How do I reset the controller?", "net profit 2024", "cooling at night", "zebra"]


def _dense(client: ChromaClient, encoder: TextEncoder | None = None) -> DenseLeg:
    return DenseLeg(client, QuestionVectors(client, encoder))


def _visual(client: ChromaClient, encoder: TextEncoder | None = None) -> VisualLeg:
    questions = QuestionVectors(client, encoder)
    return VisualLeg(client, DenseLeg(client, questions), questions)


def _names(client: ChromaClient, leg: DenseLeg, question: str) -> list[str]:
    hits = leg.find(question, 10)
    pages = get_pages(client.catalog, list(hits))
    return [pages[page_id].filename for page_id in hits]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_leg_agrees_with_an_exact_search(samples: ChromaClient, encoder: TextEncoder, question: str) -> None:
    owners, matrix = vectors.vectors_after(samples.catalog, 0)
    exact: dict[int, float] = {}
    for owner, score in zip(owners, matrix @ encoder.embed_query(question), strict=True):
        exact[owner] = max(exact.get(owner, -2.0), float(score))
    leg = _dense(samples)
    found = {page_id: hit.score for page_id, hit in leg.find(question, len(owners)).items()}
    assert found == pytest.approx(exact, abs=1e-4)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    some = sorted(exact)[:7]
    scores = {page_id: hit.score for page_id, hit in leg.score(question, some).items()}
    assert scores == pytest.approx({page_id: exact[page_id] for page_id in some}, abs=1e-6)
    assert len(leg.find(question, 3)) <= 3


def test_vectors_written_after_publication_are_found(catalog: Catalog, encoder: TextEncoder) -> None:
    add(catalog, {"/d/boats.pdf": ["Boats in the harbour"], "/d/bread.pdf": ["Baking bread at home"]})
    embed(catalog, encoder)
    writer.publish(catalog)
    add(catalog, {"/d/stars.pdf": ["Stars and planets of the night sky"]})
    embed(catalog, encoder)
    with ChromaClient(catalog.paths.root) as client:
        assert sync_state.state_of(client.catalog).missing == 2  # one vector, one page
        names = _names(client, _dense(client, encoder), "astronomy")
        assert names[0] == "stars.pdf"
        assert sorted(names) == ["boats.pdf", "bread.pdf", "stars.pdf"]


def test_a_removed_document_never_comes_back(catalog: Catalog, encoder: TextEncoder) -> None:
    ids = add(catalog, {"/d/boats.pdf": ["Boats in the harbour"], "/d/bread.pdf": ["Baking bread at home"]})
    embed(catalog, encoder)
    writer.publish(catalog)
    remove_document(catalog, ids["/d/boats.pdf"])
    with ChromaClient(catalog.paths.root) as client:
        assert client.text_collection.count() == 2, "Chroma still holds it"
        assert _names(client, _dense(client, encoder), "boats") == ["bread.pdf"]
        hits = _visual(client, encoder).find("boats", 10)
        assert {page.filename for page in get_pages(client.catalog, list(hits)).values()} <= {"bread.pdf"}


def test_the_visual_leg_scores_pages_alike_by_search_and_by_hand(samples: ChromaClient, encoder: TextEncoder) -> None:
    leg = _visual(samples, encoder)
    found = leg.find("annual report revenue", 100)
    assert found
    by_hand = leg.score("annual report revenue", sorted(found))
    assert {p: h.score for p, h in found.items()} == pytest.approx({p: h.score for p, h in by_hand.items()}, abs=1e-4)


def test_without_vectors_the_leg_says_so(catalog: Catalog) -> None:
    add(catalog, {"/d/boats.pdf": ["Boats in the harbour"]})
    with ChromaClient(catalog.paths.root) as client:
        with pytest.raises(CtxError, match="no document has vectors yet"):
            _dense(client).find("boats", 10)
        with pytest.raises(CtxError, match="no visual encoder has filled"):
            _visual(client).find("boats", 10)


def test_a_question_is_embedded_once(samples: ChromaClient, encoder: TextEncoder) -> None:
    questions = QuestionVectors(samples, encoder)
    first = questions.of("boats")
    assert questions.of("boats") is first
    assert not np.array_equal(questions.of("bread"), first)


def test_an_index_filled_anew_is_asked_with_its_new_encoder(catalog: Catalog, encoder: TextEncoder) -> None:
    add(catalog, {"/d/boats.pdf": ["Boats in the harbour"]})
    embed(catalog, encoder)
    with ChromaClient(catalog.paths.root) as client:
        questions = QuestionVectors(client)
        first = questions.encoder()
        assert questions.encoder() is first
        vectors.set_encoder(catalog, ALIASES[-1], encoder.dim)
        assert questions.encoder() is not first


def test_an_index_of_blank_pages_has_no_dense_hits(catalog: Catalog, encoder: TextEncoder) -> None:
    ids = add(catalog, {"/d/scan.pdf": ["", ""]})
    embed(catalog, encoder)
    writer.publish(catalog)
    with ChromaClient(catalog.paths.root) as client:
        leg = _dense(client, encoder)
        assert leg.find("boats", 10) == {}
        assert leg.score("boats", sorted(page_ids_of(client.catalog, ids.values()))) == {}
