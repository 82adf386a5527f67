"""The whole context laid out for reading: every page under its header, tables in columns or as rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cli.answer import Screen, full_answer, screen_view
from cli.layout import cells
from research.context import AnswerView, Note
from research.models import ResearchContext
from tests.cli.answers import HOSTILE, answer, marker, quote, source


def noted(context: ResearchContext, note: str) -> AnswerView:
    return replace(screen_view(context), notes=(Note("coverage", note),))


def page(markdown: str, width: int = 60) -> list[str]:
    shown = [
        line.plain
        for line in full_answer(screen_view(answer([source("a.pdf", 2, markdown)])), Screen(width, 40), marker())
    ]
    return shown[shown.index("[1] a.pdf p. 2") + 1 : -1 - shown[::-1].index("")]


def test_question_quotes_pages_and_the_last_line() -> None:
    context = answer([source("a.pdf", 2, "One."), source("b.pdf", 7, "Two.")], [quote("One.", 1)])
    shown = [line.plain for line in full_answer(noted(context, "a note"), Screen(80, 40), marker())]
    assert shown == [
        "What burst?",
        "“One.” [1]",
        "",
        "[1] a.pdf p. 2",
        "One.",
        "",
        "[2] b.pdf p. 7",
        "Two.",
        "",
        "The answer is very likely on these pages · ctx open 1 · --full · --json",
        "! a note",
    ]


def test_a_page_keeps_its_order_and_loses_its_marks() -> None:
    markdown = "# Causes\n\nThe bubble.\n\n- one\n- two\n\n```\nx = 1\n```\n\n17 Limekiln Row\nEllerby"
    assert page(markdown) == [
        "Causes", "", "The bubble.", "", "• one", "• two", "", "x = 1", "", "17 Limekiln Row", "Ellerby",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [40, 80])
def test_many_columns_are_rows_of_text_and_no_cell_is_broken(width: int) -> None:
    row = [f"{n},{n}00 $" for n in range(1, 15)]
    shown = page("Footwear | " + " | ".join(row), width)
    assert len(shown) > 1
    assert all(cells(line) <= width for line in shown)
    assert all(any(cell in line for line in shown) for cell in row)
    assert shown[1].startswith("  ")
    assert "|" not in "".join(shown)


def test_nothing_of_it_moves_the_terminal() -> None:
    text = f"{HOSTILE}\n```\n{HOSTILE}\n|{HOSTILE}|\n# {HOSTILE}"
    context = answer([source(HOSTILE, 1, text)], [quote(HOSTILE)], query=HOSTILE)
    lines = full_answer(noted(context, HOSTILE), Screen(80, 40), marker())
    shown = "".join(line.plain for line in lines)
    assert not set(shown) & set("\x1b\x9b\x07\x00\u202e\u2066\u2028\r\t")
