"""Sentences and scripts, the same for all who cut, count and search text."""

from __future__ import annotations

import pytest

from research.search.highlights import snippet
from research.store import analyze
from research.text import SENTENCE_BREAK, embedding_text, is_joined_script


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "It rained. Nobody came! Why? Who knows… Perhaps.",
            ["It rained.", "Nobody came!", "Why?", "Who knows…", "Perhaps."],
        ),
        ('He said "go." Then he left.', ['He said "go."', "Then he left."]),
        ("3.14 is pi.", ["3.14 is pi."]),
        ("雨が降った。誰も来ない！なぜ？", ["雨が降った。", "誰も来ない！", "なぜ？"]),
        ("彼は「行け。」と言った。", ["彼は「行け。」", "と言った。"]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [part for part in SENTENCE_BREAK.split(text) if part] == sentences


@pytest.mark.parametrize(
    ("char", "pair"), [("漢", "字文"), ("ㇰ", "ㇱㇲ"), ("𠀋", "𠀀𠀁"), ("각", "도시"), ("ก", "ขค")]
)
def test_a_snippet_shows_any_pair_that_the_index_finds(char: str, pair: str) -> None:
    """Full-text search and snippets once had lists of unspaced scripts of their own, and these differed."""
    assert analyze(char + pair) == [char + pair[0], pair]
    assert pair in snippet(char * 200 + pair + char * 200, pair, width=40)


def test_lines_of_han_and_kana_join_without_a_blank_korean_and_thai_do_not() -> None:
    assert [is_joined_script(char) for char in "漢か。각กa"] == [True, True, True, False, False, False]


def test_the_encoder_is_given_the_context_first() -> None:
    assert embedding_text("Report > Plan", "Words.") == "Report > Plan\nWords."
    assert embedding_text("", "Words.") == "Words."
