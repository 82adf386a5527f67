"""The lexical leg: scores on one scale, words and names, and questions of any kind."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_index import add

from research.search.legs import Hits
from research.search.lexical import LexicalLeg
from research.store.catalog.catalog import Catalog
from research.store.catalog.pages import get_pages
from research.store.client import ChromaClient

DOCUMENTS = {
    "/d/BestBuy_2023.pdf": ["Revenue of the stores grew by a tenth.", "Employees and their pensions."],
    "/d/harbour-rules.pdf": ["The harbour is closed at night.", "Boats pay a fee in the harbour.", ""],
    "/d/harbour-history.pdf": ["The harbour was built in 1870."],
}


@pytest.fixture
def leg(catalog: Catalog) -> LexicalLeg:
    add(catalog, DOCUMENTS)
    return LexicalLeg(catalog)


def _pages(leg: LexicalLeg, hits: Hits) -> dict[tuple[str, int], float]:
    stored = get_pages(leg._catalog, list(hits))
    return {(stored[page_id].filename, stored[page_id].page): hit.score for page_id, hit in hits.items()}


def test_pages_with_the_words_are_found(leg: LexicalLeg) -> None:
    found = _pages(leg, leg.find("boats fee", 10))
    assert set(found) == {("harbour-rules.pdf", 2)}


def test_words_of_a_file_name_count(leg: LexicalLeg) -> None:
    found = _pages(leg, leg.find("harbour history", 10))
    assert max(found, key=lambda page: found[page]) == ("harbour-history.pdf", 1)


def test_two_words_may_be_one_in_the_name(leg: LexicalLeg) -> None:
    hits = leg.find("revenue of Best Buy", 10)
    assert [hit.parts["name"] > 0 for hit in hits.values()] == [True]


def test_a_name_alone_finds_its_document(leg: LexicalLeg) -> None:
    assert set(_pages(leg, leg.find("buy", 10))) == {("BestBuy_2023.pdf", 1), ("BestBuy_2023.pdf", 2)}
    assert set(_pages(leg, leg.find("best buy 2023", 1))) == {("BestBuy_2023.pdf", 1)}


def test_parts_add_up_and_find_agrees_with_score(leg: LexicalLeg) -> None:
    found = leg.find("harbour at night", 10)
    again = leg.score("harbour at night", sorted(found))
    assert found == again
    for hit in found.values():
        assert hit.score == pytest.approx(sum(hit.parts.values()))


def test_a_question_of_stop_words_finds_nothing(leg: LexicalLeg) -> None:
    assert leg.find("what is it and who are you", 10) == {}
    assert leg.score("what is it", [1, 2]) == {}
    assert leg.score("harbour", []) == {}


def test_a_pasted_page_is_searched_by_its_rarest_words(leg: LexicalLeg) -> None:
    question = " ".join(f"word{n}x" for n in range(3000)) + " harbour night"
    assert isinstance(leg.find(question, 10), dict)


def test_a_word_on_every_page_still_ranks_pages(catalog: Catalog) -> None:
    """In one small document every word may stand everywhere; its name must not drown the rest."""
    add(catalog, {"/d/harbour.pdf": ["harbour", "harbour harbour harbour", "the harbour and many other words there"]})
    leg = LexicalLeg(catalog)
    found = _pages(leg, leg.find("harbour", 10))
    assert len(set(found.values())) == 3
    assert all(0 < score <= 1 for score in found.values())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    question=st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from(["harbour", "night", "AND", "NOT", "(", '"', "*", "boats", "1870", "🎉"])).map(
            " ".join
        ),
    )
)
def test_any_question_is_answered_on_one_scale(samples: ChromaClient, question: str) -> None:
    leg = LexicalLeg(samples.catalog)
    for hit in leg.find(question, 50).values():
        assert 0 < hit.score <= 1
        assert all(part >= 0 for part in hit.parts.values())
