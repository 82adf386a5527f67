"""Snippets: one line of the page, around the words that were asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.search.snippets import ELLIPSIS, snippet

FILLER = "Lorem ipsum dolor sit amet consectetur. " * 30


def test_a_short_page_comes_whole_without_its_markup() -> None:
    assert snippet("# Fees\n\n| Boat | Fee |\n|---|---|\n| Dinghy | 3 |", "fee") == "Fees Boat Fee Dinghy 3"


def test_the_words_asked_for_are_shown() -> None:
    text = f"{FILLER}The harbour fee for a dinghy is three euros.{FILLER}"
    found = snippet(text, "What is the harbour fee?", 120)
    assert "harbour fee for a dinghy" in found
    assert found.startswith(f"{ELLIPSIS} ")
    assert found.endswith(f" {ELLIPSIS}")
    assert len(found) <= 120


def test_rare_words_decide_over_common_ones() -> None:
    text = "harbour " * 200 + "the walrus sleeps " + "harbour " * 200
    assert "walrus" in snippet(text, "walrus harbour", 80)


def test_the_beginning_is_shown_when_nothing_matches() -> None:
    found = snippet("First words of the page. " + FILLER, "zebra", 80)
    assert found.startswith("First words")
    assert found.endswith(ELLIPSIS)


@pytest.mark.parametrize(("text", "question"), [("これは文書です" * 50 + "港の料金" + "猫が好き" * 50, "料金")])
def test_scripts_without_blanks_are_cut_between_characters(text: str, question: str) -> None:
    found = snippet(text, question, 60)
    assert question in found
    assert len(found) <= 60


def test_one_word_longer_than_the_room_is_cut() -> None:
    assert len(snippet("x" * 1000, "x", 50)) <= 50


def test_an_empty_page() -> None:
    assert snippet("", "fee") == snippet(" \n\n", "fee") == ""


@given(st.text(max_size=400), st.text(max_size=30), st.integers(10, 120))
def test_a_snippet_is_one_line_that_fits(text: str, question: str, width: int) -> None:
    found = snippet(text, question, width)
    assert len(found) <= width
    assert "\n" not in found
