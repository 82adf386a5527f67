"""Which questions lean on the one before them, and with what they are searched then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from research.conversation.sessions import NAME, Earlier, follow_up, leans
from research.index import Index
from research.search.engine import focused
from research.search.legs import Ranked
from research.store import Reader
from tests.conftest import built_once
from tests.research.conversation.talking import doc_id_of, make_talkative

H24, H25, G4, BRIDGE = (
    doc_id_of(name)
    for name in (
        "harbour-handbook-2024.pdf",
        "harbour-handbook-2025.pdf",
        "g4-controller-manual.pdf",
        "footbridge-letter.pdf",
    )
)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with (
        Index(built_once(tmp_path_factory, "talkative-index", make_talkative)) as index,
        index.catalog.snapshot() as snapshot,
    ):
        yield snapshot


@pytest.mark.parametrize(
    "question",
    [
        "and in 2024?",
        "What about hotels?",
        "How about the other parent?",
        "And its total assets?",
        "What are its limitations?",
        "How much is that in euros?",
        "How long does it last?",
        "Can she be dismissed?",
        "Where is their data kept?",
        "Which of the two is cheaper?",
        "When is the next one due?",
        "How much was it a year ago?",
        "What is the role of coinsurance in it?",
        "How many proxies may one of them carry?",
        "Why?",
        "To whom first?",
        "Und im Vorjahr?",
        "Was empfiehlt er?",
        "Wo wird dort gemessen?",
        "Et combien de jardins sont encore ouverts ?",
        "¿Y en los años siguientes?",
        "Qui est son président ?",
    ],
)
def test_it_leans(question: str) -> None:
    assert leans(question)


@pytest.mark.parametrize(
    "question",
    [
        "How many cogs does the gearbox have?",
        "Is it allowed to eat in the laboratory?",
        "How long does it take to fill in the card?",
        "What is it that RAPTOR retrieves?",
        "If acid is spilt, what do I cover it with?",
        "Who wins when they disagree, the handbook or the contract?",
        "When is the lamp of the detector replaced, and why does it drift?",
        "Does the data protection officer open her letters herself?",
        "What do the apprentice shipwrights keep when they pass?",
        "And what does the G4 controller do above 50 degrees?",
        "Who may carry proxies at Saltmarsh, and how many of them?",
        "When are this year's radiators of the transformer washed?",
        "What is done for those who eat slowly?",
        "What does the code that the G4 shows mean?",
        "Was empfiehlt der Bericht über den Mühlsee?",
        "retention ratio of caffeine",
        "Which rocks fizz?",
        "Did a son of Amos inherit the wall?",
    ],
)
def test_it_stands_by_itself(question: str) -> None:
    assert leans(question) == ""


def test_words_of_the_question_before_are_searched_with_it_and_that_is_said(reader: Reader) -> None:
    before = Earlier("How long is the guarantee of the G4?", documents=((G4, 0.9),))
    found = follow_up("And for the wind vane?", [before], reader)
    assert found.searched == "And for the wind vane? guarantee G4"
    assert found.rewrite is not None
    assert (found.rewrite.name, found.rewrite.before) == (NAME, "And for the wind vane?")
    assert "guarantee, G4" in found.rewrite.why
    assert list(found.about) == [G4]


def test_a_year_takes_the_place_of_a_year_and_a_code_of_a_code(reader: Reader) -> None:
    paid = Earlier("What did a shipwright earn per hour in 2024?", documents=((H24, 0.9), (H25, 0.8)))
    found = follow_up("and in 2025?", [paid], reader)
    assert found.searched == "and in 2025? shipwright earn per hour"
    assert list(found.about) == [H25], "the one whose name has the year"
    meant = follow_up("and E09?", [Earlier("What does the code E02 on the G4 mean?")], reader)
    assert meant.searched == "and E09? code G4"


def test_what_stands_behind_the_same_preposition_is_replaced(reader: Reader) -> None:
    found = follow_up("And of the baristas?", [Earlier("What is the pay of shipwrights at the harbour?")], reader)
    assert found.searched == "And of the baristas? pay harbour"


def test_what_was_carried_once_is_carried_on(reader: Reader) -> None:
    first = Earlier("How long is parental leave in the 2025 handbook?", documents=((H25, 0.9),))
    second = follow_up("And for the other parent?", [first], reader)
    third = follow_up("And in 2024?", [first, Earlier("And for the other parent?", second.searched)], reader)
    assert third.searched == "And in 2024? parent leave handbook"


def test_a_question_of_another_document_is_left_as_it_is(reader: Reader) -> None:
    before = Earlier("How long is the guarantee of the G4?", documents=((G4, 0.9),))
    found = follow_up("What about the otters at the footbridge?", [before], reader)
    assert (found.searched, found.about, found.rewrite) == ("What about the otters at the footbridge?", {}, None)


def test_one_that_stands_by_itself_only_prefers_what_answered_before(reader: Reader) -> None:
    before = Earlier("How long is the guarantee?", documents=((G4, 0.9), (H25, 0.3)))
    found = follow_up("When do the vents open in summer?", [before], reader)
    assert found.rewrite is None
    assert found.about[G4] > found.about[H25] > 0
    older = follow_up("When do the vents open in summer?", [before, Earlier("Is the beam rotten?")], reader)
    assert 0 < older.about[G4] < found.about[G4]


@pytest.mark.parametrize(
    "question", ["", "?", "…" * 50, "and " * 200, "\x00 it", "它呢？", "x" * 5000, "[it] (that) {he}"]
)
def test_whatever_is_asked_it_does_not_fail(reader: Reader, question: str) -> None:
    odd = Earlier("And of what (it\\d+ [was] of? *", "of " * 500, ((G4, 0.0), ("f" * 16, 0.5)))
    found = follow_up(question, [odd, odd, odd, odd], reader)
    assert found.searched.startswith(question)
    assert len(found.searched) < len(question) + 400


def test_without_turns_before_it_nothing_is_done(reader: Reader) -> None:
    assert follow_up("and in 2025?", [], reader).searched == "and in 2025?"


def test_documents_that_were_talked_about_come_earlier_and_make_nobody_surer() -> None:
    ranked = [Ranked(1, "a", 0.50), Ranked(2, "b", 0.45), Ranked(3, "b", 0.20), Ranked(4, "c", 0.10)]
    found = focused(ranked, {"b": 0.1})
    assert [(each.page_id, each.score) for each in found] == [(2, 0.50), (1, 0.45), (3, 0.20), (4, 0.10)]


@pytest.mark.parametrize(
    ("before", "question", "searched"),
    [
        ("What was the guarantee fee of the G4 in 2023?", "who is its maker?", "G4"),
        ("How long is the guarantee of the G4?", "Where are its probes placed?", "G4"),
        ("How long is the guarantee of the G4?", "and its total weight?", "G4"),
        ("How long is the guarantee of the G4?", "who is the maker?", "G4"),
        ("How many shipwrights does Weighing Systems pay?", "Who leads it?", "Weighing Systems"),
        ("Wie lang ist die Garantie des G4?", "Wo hängen seine Fühler?", "G4"),
    ],
)
def test_where_something_else_is_asked_only_the_name_comes_over(
    reader: Reader, before: str, question: str, searched: str
) -> None:
    assert follow_up(question, [Earlier(before)], reader).searched == f"{question} {searched}"


def test_a_name_takes_the_place_of_a_name(reader: Reader) -> None:
    before = Earlier("How long is the guarantee of the G4?", documents=((G4, 0.9),))
    found = follow_up("and for the footbridge?", [before], reader)
    assert (found.searched, found.about) == ("and for the footbridge? guarantee", {})
