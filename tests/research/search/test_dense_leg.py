"""The dense leg: the catalog's vectors decide, wherever they are kept."""

from __future__ import annotations

import numpy as np
import pytest
from small_index import add, embed, find, score

from research.encoders import QuestionEncoder, TextEncoder
from research.encoders.base import ALIASES
from research.errors import CtxError
from research.models import Question
from research.search.vector_legs import DenseLeg, VisualLeg
from research.store import Catalog, ChromaClient
from research.store import publish as writer
from tests.research.store.index_making import vectors_after

QUESTIONS = ["parental leave", "How do I reset the controller?", "net profit 2024", "cooling at night", "zebra"]


def _dense(client: ChromaClient, encoder: TextEncoder | None = None) -> DenseLeg:
    return DenseLeg(client.vectors, QuestionEncoder(encoder))


def _visual(client: ChromaClient, encoder: TextEncoder | None = None) -> VisualLeg:
    questions = QuestionEncoder(encoder)
    return VisualLeg(DenseLeg(client.vectors, questions), questions, client.vectors)


def _names(client: ChromaClient, leg: DenseLeg, question: str) -> list[str]:
    hits = find(leg, client.catalog, question, 10)
    pages = client.catalog.pages.get_many(list(hits))
    return [pages[page_id].filename for page_id in hits]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_leg_agrees_with_an_exact_search(samples: ChromaClient, encoder: TextEncoder, question: str) -> None:
    owners, matrix = vectors_after(samples.catalog, 0)
    exact: dict[int, float] = {}
    for owner, cosine in zip(owners, matrix @ encoder.embed_query(question), strict=True):
        exact[owner] = max(exact.get(owner, -2.0), float(cosine))
    leg = _dense(samples)
    found = {page_id: hit.score for page_id, hit in find(leg, samples.catalog, question, len(owners)).items()}
    assert found == pytest.approx(exact, abs=1e-4)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    some = sorted(exact)[:7]
    scores = {page_id: hit.score for page_id, hit in score(leg, samples.catalog, question, some).items()}
    assert scores == pytest.approx({page_id: exact[page_id] for page_id in some}, abs=1e-6)
    assert len(leg.candidates(samples.catalog, Question(question), 3)) == 3


def test_a_removed_document_never_comes_back(catalog: Catalog, encoder: TextEncoder) -> None:
    ids = add(catalog, {"/d/boats.pdf": ["Boats in the harbour"], "/d/bread.pdf": ["Baking bread at home"]})
    embed(catalog, encoder)
    writer.publish(catalog)
    catalog.documents.remove(ids["/d/boats.pdf"])
    with ChromaClient(catalog.paths.root) as client:
        assert client.text_collection.count() == 2, "Chroma still holds it"
        assert _names(client, _dense(client, encoder), "boats") == ["bread.pdf"]
        hits = find(_visual(client, encoder), client.catalog, "boats", 10)
        assert {page.filename for page in client.catalog.pages.get_many(list(hits)).values()} <= {"bread.pdf"}


def test_the_visual_leg_scores_pages_alike_by_search_and_by_hand(samples: ChromaClient, encoder: TextEncoder) -> None:
    leg = _visual(samples, encoder)
    found = find(leg, samples.catalog, "annual report revenue", 100)
    assert found
    by_hand = score(leg, samples.catalog, "annual report revenue", sorted(found))
    assert {p: h.score for p, h in found.items()} == pytest.approx({p: h.score for p, h in by_hand.items()}, abs=1e-4)


def test_without_vectors_the_leg_says_so(catalog: Catalog) -> None:
    add(catalog, {"/d/boats.pdf": ["Boats in the harbour"]})
    with ChromaClient(catalog.paths.root) as client:
        with pytest.raises(CtxError, match="no document has vectors yet"):
            find(_dense(client), client.catalog, "boats", 10)
        with pytest.raises(CtxError, match="no visual encoder has filled"):
            find(_visual(client), client.catalog, "boats", 10)


def test_a_question_is_embedded_once(samples: ChromaClient, encoder: TextEncoder) -> None:
    questions, boats = QuestionEncoder(encoder), Question("boats")
    first = questions.vector(samples.catalog, boats)
    assert questions.vector(samples.catalog, boats) is first
    assert not np.array_equal(questions.vector(samples.catalog, boats.searching("bread")), first)


def test_an_index_filled_anew_is_asked_with_its_new_encoder(catalog: Catalog, encoder: TextEncoder) -> None:
    add(catalog, {"/d/boats.pdf": ["Boats in the harbour"]})
    embed(catalog, encoder)
    with ChromaClient(catalog.paths.root) as client:
        questions = QuestionEncoder()
        first = questions.encoder(client.catalog)
        assert questions.encoder(client.catalog) is first
        catalog.chunks.set_encoder(ALIASES[-1], encoder.dim)
        assert questions.encoder(client.catalog) is not first


def test_an_index_of_blank_pages_has_no_dense_hits(catalog: Catalog, encoder: TextEncoder) -> None:
    ids = add(catalog, {"/d/scan.pdf": ["", ""]})
    embed(catalog, encoder)
    writer.publish(catalog)
    with ChromaClient(catalog.paths.root) as client:
        leg = _dense(client, encoder)
        assert find(leg, client.catalog, "boats", 10) == {}
        assert score(leg, client.catalog, "boats", sorted(client.catalog.pages.ids_of(ids.values()))) == {}
