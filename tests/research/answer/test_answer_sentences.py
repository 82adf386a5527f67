"""A written answer becomes sentences, each with its citations, in every style that models write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.answer.sentences import citations_in, sentences_of
from tests.pace import draws


def cited(answer: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(sentence.text, sentence.numbers) for sentence in sentences_of(answer)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It rose [1].", [1]),
        ("It rose [1][2].", [1, 2]),
        ("It rose [1] [2].", [1, 2]),
        ("It rose [1, 2; 3].", [1, 2, 3]),
        ("It rose [1-3].", [1, 2, 3]),
        ("It rose [1–3, 7].", [1, 2, 3, 7]),
        ("It rose [Document 2].", [2]),
        ("It rose [Doc. 2, Page 7].", [2]),
        ("It rose [Sources 1 and 3].", [1, 3]),
        ("It rose [source: 1].", []),  # a label of its own making
        ("It rose [^1].", [1]),
        ("It rose 【2】 and fell ［３］.", [2, 3]),
        ("It rose 【4†source】.", [4]),
        ("It rose [1](https://example.org/a#page=2).", [1]),
        ("It rose (1). It fell (2, 3).", [1, 2, 3]),
        ("It rose (1) and fell [2].", [2]),  # round ones count only where there are no others
        ("Within five (5) years.", []),
        ("The law (2019) holds.", []),
        ("[0] and [-1] and [17].", [0, -1, 17]),
        ("[1-1000000000]", [1, 1000000000]),
        ("[3-1]", [3, 1]),
        ("`a[0]` and\n```\nb[1]\n```\nc [2]", [2]),
        ("[see the table], [x], [], [1.5]", []),
    ],
)
def test_citations_in_every_style(text: str, numbers: list[int]) -> None:
    assert [number for citation in citations_in(text) for number in citation.numbers] == numbers


def test_a_number_of_a_thousand_digits_is_a_number() -> None:
    [citation] = citations_in(f"[{'9' * 1000}]")
    assert citation.numbers == (int("9" * 1000),)


@pytest.mark.parametrize(
    ("answer", "sentences"),
    [
        (
            "Leave is 18 weeks [1]. The other parent has six.[2] It is paid, e.g. by Dr. Smith. [1][3] The end.",
            [
                ("Leave is 18 weeks [1].", (1,)),
                ("The other parent has six.[2]", (2,)),
                ("It is paid, e.g. by Dr. Smith. [1][3]", (1, 3)),
                ("The end.", ()),
            ],
        ),
        ("It rose by 3.2 % [1]. Then it fell.", [("It rose by 3.2 % [1].", (1,)), ("Then it fell.", ())]),
        (
            "[1] says that it rose. [2] contradicts this.",
            [("[1] says that it rose.", (1,)), ("[2] contradicts this.", (2,))],
        ),
        ("It rose. [1] It fell. [2]", [("It rose. [1]", (1,)), ("It fell. [2]", (2,))]),
        (
            "これは本です。[1]あれは何ですか？[2]はい。",
            [("これは本です。[1]", (1,)), ("あれは何ですか？[2]", (2,)), ("はい。", ())],
        ),
        ("It rose\n[1]\n\nIt fell", [("It rose\n[1]", (1,)), ("It fell", ())]),
        ("It rose.\nSource: [1]\n\nIt fell.", [("It rose.\nSource: [1]", (1,)), ("It fell.", ())]),
        ("[1] It rose.\n[2] It fell.", [("[1] It rose.", (1,)), ("[2] It fell.", (2,))]),
        ("It rose [1]\nIt fell [2]", [("It rose [1]", (1,)), ("It fell [2]", (2,))]),
        ("> It rose [1].", [("> It rose [1].", (1,))]),
        ("", []),
        ("[1]", [("[1]", (1,))]),
        ("---", [("---", ())]),
    ],
)
def test_a_citation_belongs_to_the_sentence_before_it_or_to_the_one_it_begins(
    answer: str, sentences: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert cited(answer) == sentences


def test_markdown_is_taken_apart() -> None:
    answer = (
        "## Leave\n\n- **Yard**: open from 7 [1]. It closes late.\n1. First [2].\n\n"
        "| a | b |\n|---|---|\n| Rate | 5 [1] |\n\n```python\na[0] = 1\nb = 2\n```\nDone [3]."
    )
    assert [(sentence.kind, sentence.numbers, sentence.claim) for sentence in sentences_of(answer)] == [
        ("heading", (), "Leave"),
        ("item", (1,), "Yard: open from 7 ."),
        ("item", (), "It closes late."),
        ("item", (2,), "First ."),
        ("row", (), "| a | b |"),
        ("row", (1,), "| Rate | 5 |"),
        ("code", (), "```python\na[0] = 1\nb = 2\n```"),
        ("sentence", (3,), "Done ."),
    ]


PIECES = st.lists(
    st.sampled_from(
        ["It rose", ". ", "[1]", " [2]", "\n", "\n\n", "- ", "1. ", "# ", "| a | b |", "```", "(3)", "。", "他は", "[",
         "]", "e.g. ", "*", "> ", "Sources:", "\t", "x"]
    )
    | st.text(max_size=5),
    max_size=40,
)  # fmt: skip


@draws(100)
@given(PIECES)
def test_put_together_the_sentences_are_the_answer(pieces: list[str]) -> None:
    answer = "".join(pieces)
    found = sentences_of(answer)
    assert "".join("".join(sentence.text for sentence in found).split()) == "".join(answer.split())
    assert [n for sentence in found for n in sentence.numbers] == [n for c in citations_in(answer) for n in c.numbers]
    for sentence in found:
        assert sentence.text == sentence.text.strip() != ""
        for citation in sentence.citations:
            assert citations_in(sentence.text[citation.start : citation.end]) or "(" in sentence.text


@pytest.mark.parametrize(
    "answer",
    ["[1" * 100_000, "[1]" * 30_000, "[" * 300_000, "a" * 100_000, "[1," * 100_000, "```\n" * 50_000, "> " * 50_000,
     "word " * 20_000 + "[1].", "[1] a. " * 20_000, "|1" * 50_000, "**" * 100_000, "Sources: [1]\n" * 5_000],
)  # fmt: skip
def test_hostile_answers_are_read_once(answer: str) -> None:
    found = sentences_of(answer)
    assert "".join("".join(sentence.text for sentence in found).split()) == "".join(answer.split())
