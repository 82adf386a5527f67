"""Sentences about the form of the answer are left out of the search; everything else stays."""

from __future__ import annotations

import pytest

from research.search.rewriters import FORM_HINTS, Rewriters, without_form
from research.store import Catalog


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("What is the ratio? Round your answer to two decimal places.", "What is the ratio?"),
        ("What are total assets?Answer in millions.", "What are total assets?"),
        ("How many are there? Please write down the answer in int format.", "How many are there?"),
        ("Which pages show a ship? Give the answer as a list like ['Page 2'].", "Which pages show a ship?"),
        ("Who signed it? Answer in JSON.", "Who signed it?"),
        ("Reply in one short sentence. Who signed it?", "Who signed it?"),
        ("Does it have a margin? If not, then state that.", "Does it have a margin?"),
        (
            "Is the operating margin improving? If operating margin is not a useful metric for a company like this,"
            " then state that and explain why.",
            "Is the operating margin improving?",
        ),
        ("What is it? Round to 2 decimal places. Who wrote it?", "What is it? Who wrote it?"),
    ],
)
def test_what_is_only_about_form_goes(question: str, left: str, catalog: Catalog) -> None:
    searched, [done] = Rewriters(["answer-form"]).before(question, catalog)
    assert searched == done.after == left
    assert (done.name, done.before) == ("answer-form", question)
    assert "form of the answer" in done.why
    assert any(hint in question.lower() for hint in FORM_HINTS)


# The first ten were dropped by 0.1.0.
@pytest.mark.parametrize(
    "question",
    [
        "Who decided? The response of the government was criticised.",
        "The report came in May. The response time exceeded the target. Why?",
        "The response time exceeded the target. Why?",
        "What was pleaded? The answer filed by the defendant raised laches.",
        "Who won? Round 3 leader?",
        "What is in the tank? Use of the float valve is prohibited, why?",
        "How is the till used? Show how decimals are entered on the keypad.",
        "When does it end? State the notice period in the format clause 4 requires.",
        "Which dose is safe? If pregnant, then what does the label state?",
        "A colleague is in need. The answer to a request for a loan must come within how many days?",
        "",
        "Answer in one sentence.",  # nothing else would be left
        "Describe the plan. List the deductible amounts for in-network services.",
        "Describe the plan. Give a list.",
        "The bridge was closed. Give the reasons and the date.",
        "What happens at night? If the fan stops, what does the controller show?",
        "What is the limit for cadmium? If lead is not covered, then state that.",
        "Who owns the mark? If not the company, then state that.",
        "A watch is 2 cm wide. How long is its strap?",
        "See https://example.org/?Round=1 for more",
        "What does it cost? Use of the hall, e.g. by clubs. Show me the prices.",
        "How is the exporter set up? Use JSON.",
        "What did he say? The answer was no.",
        "How are invoices written? Round amounts to two decimal places per invoice line.",
    ],
)
def test_everything_else_stays(question: str) -> None:
    assert without_form(question) is None


def test_a_pasted_page_is_read_quickly() -> None:
    assert without_form("What? If " + "then please list the answers " * 20_000) is None
    assert without_form("What? Answer in " + "one list " * 50_000) is not None
