"""The words that a page is held against: names, numbers, misspelt ones, and those of another language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.answer.quotes import finder, folded, has_misspelt, names_in, words_in
from research.store import analyze

NAMES = {
    "What did Costco earn in 2021?": {"costco", "2021"},
    "Is the NATO budget above 1,250,000 dollars?": {"nato", "1250000"},
    "What was the FY2017 revenue of Best Buy?": {"2017", "best", "buy"},
    "Costco was founded when?": set(),  # a sentence may begin with any word
    "what did costco earn": set(),
    "How long is 5 days of Q2?": set(),
    "What is shown in Figure 3 on Page 4 of Appendix B?": set(),
    "Give the date as YYYY-MM-DD.": set(),
    "Vacation Days Handbook": set(),  # key words: capitals tell nothing
    "Wie viele Stunden hörten die Leute Musik?": set(),  # nor do they where every noun has one
    "手表的静息心率 2014": {"2014"},
    "": set(),
}


@pytest.mark.parametrize(("question", "names"), NAMES.items())
def test_names_are_what_cannot_be_said_in_other_words(question: str, names: set[str]) -> None:
    assert set(names_in(question)) == names


def test_an_acronym_counts_less_than_a_name() -> None:
    found = names_in("Who is the CEO of the company Apple?")
    assert found["ceo"] < found["appl"] == 1


words = st.lists(st.sampled_from("cost costs 12 1,234 1234.5 use using happy happiness FY2017 café a b2b".split()))  # noqa: SIM905
texts = st.one_of(st.text(max_size=80), words.map(" ".join))


@given(texts, texts)
def test_looking_for_words_finds_what_full_text_search_does(question: str, text: str) -> None:
    wanted = words_in(question)
    assert finder(wanted)(text) == wanted.intersection(analyze(text))


@given(st.text(max_size=200))
def test_no_text_is_too_odd(text: str) -> None:
    assert all(0 < weight <= 1 for weight in names_in(text).values())


def test_a_pasted_text_is_cut_before_it_costs_anything() -> None:
    assert len(words_in("word" + " other1 other2" * 100_000)) <= 64
    assert "zebra" not in names_in("the " * 5000 + "The Zebra")


@pytest.mark.parametrize("name", ["helth", "heath", "healht", "healthy", "health"])
def test_one_slip_is_forgiven(name: str) -> None:
    assert has_misspelt(name, folded("The Health plan"))


@pytest.mark.parametrize("name", ["wealth", "heltt", "hell", "2017", "boeing"])
def test_another_word_is_not(name: str) -> None:
    assert not has_misspelt(name, folded("The Health plan of 2018, being new"))
