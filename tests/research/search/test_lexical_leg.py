"""The lexical leg: scores on one scale, words and names, and questions of any kind."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from small_index import add, find, score

from research.search.legs import Hits, LexicalLeg
from research.store import Catalog, ChromaClient
from tests.pace import draws

DOCUMENTS = {
    "/d/BestBuy_2023.pdf": ["Revenue of the stores grew by a tenth.", "Employees and their pensions."],
    "/d/harbour-rules.pdf": ["The harbour is closed at night.", "Boats pay a fee in the harbour.", ""],
    "/d/harbour-history.pdf": ["The harbour was built in 1870."],
}


LEG = LexicalLeg()


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    add(catalog, DOCUMENTS)
    return catalog


def _pages(catalog: Catalog, hits: Hits) -> dict[tuple[str, int], float]:
    stored = catalog.pages.get_many(list(hits))
    return {(stored[page_id].filename, stored[page_id].page): hit.score for page_id, hit in hits.items()}


def test_pages_with_the_words_are_found(filled: Catalog) -> None:
    found = _pages(filled, find(LEG, filled, "boats fee", 10))
    assert set(found) == {("harbour-rules.pdf", 2)}


def test_words_of_a_file_name_count(filled: Catalog) -> None:
    found = _pages(filled, find(LEG, filled, "harbour history", 10))
    assert max(found, key=lambda page: found[page]) == ("harbour-history.pdf", 1)


def test_words_of_a_title_count_as_those_of_a_file_name(catalog: Catalog) -> None:
    """A preprint is called by its number, and asked for by its title."""
    pages = ["Trees of summaries, made from the bottom up.", "Clusters of passages."]
    add(catalog, {"/d/2401.18059.pdf": pages}, {"/d/2401.18059.pdf": "RAPTOR: Recursive Processing for Retrieval"})
    add(catalog, {"/d/raptor-care.pdf": pages, "/d/2502.00001.pdf": pages})
    named = {hit.parts["name"] for hit in find(LEG, catalog, "raptor trees clusters", 10).values()}
    by_file = _pages(catalog, find(LEG, catalog, "raptor trees clusters", 10))
    assert len(named) == 2, "a name counts the same wherever it stands, and nothing where it does not"
    assert by_file["2401.18059.pdf", 1] == by_file["raptor-care.pdf", 1] > by_file["2502.00001.pdf", 1]


def test_two_words_may_be_one_in_the_name(filled: Catalog) -> None:
    hits = find(LEG, filled, "revenue of Best Buy", 10)
    assert [hit.parts["name"] > 0 for hit in hits.values()] == [True]


def test_letters_before_digits_name_no_document(catalog: Catalog) -> None:
    add(catalog, {"/d/Harbourworks_2022.pdf": ["The tax rate fell."], "/d/Fishery_FY21.pdf": ["The tax rate fell."]})
    found = _pages(catalog, find(LEG, catalog, "How did the tax rate of Harbourworks change in FY2022?", 10))
    assert found["Harbourworks_2022.pdf", 1] > 1.5 * found["Fishery_FY21.pdf", 1]


def test_a_name_alone_finds_its_document(filled: Catalog) -> None:
    assert set(_pages(filled, find(LEG, filled, "buy", 10))) == {("BestBuy_2023.pdf", 1), ("BestBuy_2023.pdf", 2)}
    assert set(_pages(filled, find(LEG, filled, "best buy 2023", 1))) == {("BestBuy_2023.pdf", 1)}


def test_parts_add_up_and_find_agrees_with_score(filled: Catalog) -> None:
    found = find(LEG, filled, "harbour at night", 10)
    again = score(LEG, filled, "harbour at night", sorted(found))
    assert found == again
    for hit in found.values():
        assert hit.score == pytest.approx(sum(hit.parts.values()))


def test_a_question_of_stop_words_finds_nothing(filled: Catalog) -> None:
    assert find(LEG, filled, "what is it and who are you", 10) == {}
    assert score(LEG, filled, "what is it", [1, 2]) == {}
    assert score(LEG, filled, "harbour", []) == {}


def test_a_pasted_page_is_searched_by_its_rarest_words(filled: Catalog) -> None:
    question = " ".join(f"word{n}x" for n in range(3000)) + " harbour night"
    assert isinstance(find(LEG, filled, question, 10), dict)


def test_a_word_on_every_page_still_ranks_pages(catalog: Catalog) -> None:
    """In one small document every word may stand everywhere; its name must not drown the rest."""
    add(catalog, {"/d/harbour.pdf": ["harbour", "harbour harbour harbour", "the harbour and many other words there"]})
    found = _pages(catalog, find(LEG, catalog, "harbour", 10))
    assert len(set(found.values())) == 3
    assert all(0 < score <= 1 for score in found.values())


@draws(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    question=st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from(["harbour", "night", "AND", "NOT", "(", '"', "*", "boats", "1870", "🎉"])).map(
            " ".join
        ),
    )
)
def test_any_question_is_answered_on_one_scale(samples: ChromaClient, question: str) -> None:
    for hit in find(LEG, samples.catalog, question, 50).values():
        assert 0 < hit.score <= 1
        assert all(part >= 0 for part in hit.parts.values())
