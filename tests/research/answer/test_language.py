"""Whether a question is in another language than the pages that were found for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.answer.quotes import language_of, other_languages
from research.index import Index

ENGLISH = (
    "The harbour cooperative pays the wages of its members on the last day of the month. This is not the case for "
    "those who have left, and it was agreed on by all of them in May; the board is to be told."
)
GERMAN = (
    "Die Genossenschaft zahlt die Löhne am letzten Tag, und wie viele das sind, ist bekannt. Der Vorstand wird von den "
    "Mitgliedern für vier Jahre gewählt, oder auf der nächsten Versammlung im Mai."
)
FOREIGN = {
    "Wie viele Tage sind das?": "German",
    "Was kostet der Eintritt?": "German",
    "Combien de jours de congés?": "French",
    "Comment créer un groupe ?": "French",
    "¿Cuántos días para el viaje?": "Spanish",
    "Quanti giorni di ferie hanno i dipendenti?": "Italian",
    "Quantos dias de férias têm os funcionários?": "Portuguese",
    "Hoeveel vakantiedagen hebben de medewerkers?": "Dutch",
    "Сколько дней отпуска?": "Cyrillic letters",
    "休假有几天?": "Chinese or Japanese",
    "직원의 휴가는 며칠입니까?": "Korean",
}


@pytest.mark.parametrize("question", FOREIGN)
def test_a_question_in_another_language_than_its_pages(question: str) -> None:
    assert other_languages(question, [ENGLISH, ENGLISH]) == (FOREIGN[question], "English")


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        ("Wie viele Tage sind das?", [ENGLISH, GERMAN]),
        ("Wann wird der Vorstand gewählt?", [GERMAN]),
        ("休假有几天?", ["休假有二十七天。"]),
        ("How many people live in Los Angeles or in La Paz?", [ENGLISH]),
        ("Who wrote El amor en los tiempos del cólera?", [ENGLISH]),
        ("What does the Banco de la República say of the peso?", [ENGLISH]),
        ("Was the bridge closed?", [ENGLISH]),
        ("Deutsche Bank dividend 2022", [ENGLISH]),
        ("asdf qwer zxcv", [ENGLISH]),
        ("Wie viele Tage sind das?", ["| 17 | 2.4 |\n| do | 18 |", "x = e + o"]),
        ("Wie viele Tage sind das?", []),
    ],
)
def test_one_in_their_language_or_of_which_nothing_is_known(question: str, pages: list[str]) -> None:
    assert other_languages(question, pages) is None


def test_an_english_question_on_german_pages() -> None:
    assert other_languages("When are they paid?", [GERMAN]) == ("English", "German")


@given(st.text(max_size=200))
def test_no_text_is_too_odd(text: str) -> None:
    assert other_languages(text, [text]) is None or language_of(text) != language_of(text, 8)


@pytest.fixture
def index(sample_index: Path) -> Iterator[Index]:
    with Index(sample_index) as opened:
        yield opened


@pytest.mark.parametrize(
    "question", ["Wie viele Urlaubstage gibt es?", "¿Cuál fue el beneficio de Tessel Rowe en 2024?"]
)
def test_an_answer_says_so_and_is_not_sure(index: Index, question: str) -> None:
    answer = index.ask(question)
    assert answer.confidence is not None
    assert answer.confidence.level == "low"
    [note] = [note for note in answer.coverage.notes if "these pages are in English" in note]
    assert "text_encoder" in note
    assert note in index.search(question).coverage.notes


def test_an_answer_in_its_own_language_says_nothing(index: Index) -> None:
    assert index.ask("How many days of holiday are there in 2025?").coverage.notes == []
