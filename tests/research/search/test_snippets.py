"""Snippets: one line of the page, around the words that were asked for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.models import Item, Passage, Ref
from research.search.highlights import ELLIPSIS, matches, page_snippet, snippet

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


def found_in(text: str, question: str) -> list[str]:
    return [text[start:end] for start, end in matches(text, question)]


@pytest.mark.parametrize(
    ("text", "question", "marked"),
    [
        ("The harbours close; a Harbour's fee.", "harbour fees", ["harbours", "Harbour", "fee"]),
        ("It is the fee of the day.", "what is the fee", ["fee"]),
        ("Es kostet 1,234.50 Euro.", "1234.50", ["1,234.50"]),
        ("Cafe\u0301 Zürich", "café zurich", ["Cafe\u0301", "Zürich"]),
        ("港の料金は三ユーロ", "料金はいくら", ["料金は"]),
        ("Nothing here.", "the of and", []),
        ("", "fee", []),
    ],
)
def test_words_of_the_question_are_found_in_all_their_forms(text: str, question: str, marked: list[str]) -> None:
    assert found_in(text, question) == marked


@given(st.text(max_size=300), st.text(max_size=40))
def test_matches_are_apart_and_in_order(text: str, question: str) -> None:
    spans = matches(text, question)
    assert all(a < b for a, b in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))


def page(text: str, *wanted: str) -> Item:
    spans = [(text.index(part), text.index(part) + len(part)) for part in wanted]
    passages = tuple(Passage(text[start:end], 0.5, None, start, end) for start, end in spans)
    return Item(Ref("page", "d", "1"), "", text, 0.5, passages=passages)


def test_a_page_shows_its_best_passage_and_not_another_sentence() -> None:
    best = "Dinghies pay three euros."
    text = f"{FILLER}The harbour fee is not told here. {FILLER}\n\n{best} {FILLER}"
    assert page_snippet(page(text, best), "harbour fee") == best


def test_a_row_is_shown_with_its_header() -> None:
    text = "| Boat | Fee |\n|---|---|\n| Yacht | 9 |\n| Dinghy | 3 |\n| Ferry | 90 |"
    assert page_snippet(page(text, "| Dinghy | 3 |"), "dinghy") == "Boat Fee Dinghy 3"


def test_a_page_without_passages_shows_its_best_window() -> None:
    text = f"{FILLER}The harbour fee for a dinghy is three euros.{FILLER}"
    assert page_snippet(page(text), "harbour fee") == snippet(text, "harbour fee")
