"""Sentences that say how to answer are left out of the search; everything else stays."""

from __future__ import annotations

import pytest

from research.search.rewriters.answer_form import without_instructions


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("What is the ratio? Round your answer to two decimal places.", "What is the ratio?"),
        ("What are total assets?Answer in millions.", "What are total assets?"),
        ("How many are there? Please write down the answer in int format.", "How many are there?"),
        ("List the chapters. The answer shall be a list.", "List the chapters."),
        ("Is it improving? If it is not a useful metric, then state that and explain why.", "Is it improving?"),
        ("Which ones? Return them as a list, please. Who wrote them?", "Which ones? Who wrote them?"),
    ],
)
def test_instructions_go(question: str, left: str) -> None:
    assert without_instructions(question) == left


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Answer in one sentence.",  # the first sentence is always the question
        "Describe the plan. List the deductible amounts for in-network services.",
        "The bridge was closed. Give the reasons and the date.",
        "What happens at night? If the fan stops, what does the controller show?",
        "A watch is 2 cm wide. How long is its strap?",
        "See https://example.org/?Round=1 for more",
        "What does it cost? Use of the hall, e.g. by clubs. Show me the prices.",
    ],
)
def test_questions_stay(question: str) -> None:
    assert without_instructions(question) == question


def test_a_pasted_page_is_read_quickly() -> None:
    page = "What? If " + "then please list the answers " * 20_000
    assert without_instructions(page) == page
