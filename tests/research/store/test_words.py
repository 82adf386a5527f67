"""What counts as a word, and which words are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.store.analyzer import STOP_WORDS, analyze, analyze_name, normalize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cause of the crisis", ["caus", "crisi"]),
        ("running runs", ["run", "run"]),
        ("1,234.50 and 1234.50", ["1234.50", "1234.50"]),
        ("3.2.1 of 12.05.2024.", ["3.2.1", "12.05.2024"]),
        ("10K and Q4FY23", ["10", "k", "q", "4", "fy", "23"]),
        ("naïve Café STRASSE Straße", ["naiv", "cafe", "strass", "strass"]),
        ("ﬁnance ＡＢＣ", ["financ", "abc"]),
        ("日本語の本", ["日本", "本語", "語の", "の本"]),
        ("猫", ["猫"]),
        ("使用API接口", ["使用", "api", "接口"]),
        ("한국어 문서", ["한국", "국어", "문서"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("কলকাতা ১২৩", ["কলকাতা", "১২৩"]),
        ("שָׁלוֹם مُحَمَّد", ["שלום", "محمد"]),
        ("МОСКВА Москва", ["москва", "москва"]),
        ("Windows™ 120² 20℃", ["window", "tm", "120", "2", "20", "c"]),
        ("co\u00adoperate soft\u200dware", ["cooper", "softwar"]),
        ("snake_case don't e-mail", ["snake", "case", "e", "mail"]),
        ("🎉 «»  \x00\n\t", []),
        ("", []),
    ],
)
def test_words_of_a_text(text: str, expected: list[str]) -> None:
    assert analyze(text) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("BestBuy_2023-10K", ["best", "buy", "2023", "10", "k"]),
        ("HTTPServerManual", ["http", "server", "manual"]),
        ("3M.annual.report", ["3", "annual", "report"]),
        ("報告書2024年", ["報告", "告書", "2024", "年"]),
    ],
)
def test_words_of_a_file_name(name: str, expected: list[str]) -> None:
    assert analyze_name(name) == expected


def test_stop_words_say_nothing() -> None:
    assert analyze(" ".join(sorted(STOP_WORDS))) == []


@given(st.text(max_size=60))
def test_case_and_composition_never_matter(text: str) -> None:
    assert analyze(normalize(text)) == analyze(text)


@given(st.text(max_size=60))
def test_a_word_is_never_blank_and_never_holds_a_blank(text: str) -> None:
    assert all(word and not any(character.isspace() for character in word) for word in analyze(text))
