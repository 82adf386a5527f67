"""The whole context laid out for reading: every page under its header, tables in columns or as rows."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cli.answer_view import Screen, full_rendering, page_rendering
from cli.layout import cells
from cli.views import Note
from tests.cli.answers import HOSTILE, answer, marker, quote, source


def drawn(renderables, width: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False, emoji=False, highlight=False)
    for renderable in renderables:
        console.print(renderable)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def page(markdown: str, width: int = 60) -> list[str]:
    return drawn(page_rendering(markdown, width, marker()), width)


def test_question_quotes_pages_and_the_last_line() -> None:
    context = answer([source("a.pdf", 2, "One."), source("b.pdf", 7, "Two.")], [quote("One.", 1)])
    shown = drawn(full_rendering(context, Screen(80, 40), marker(), [Note("a note", "red")]), 80)
    assert shown == [
        "What burst?",
        "“One.” [1]",
        "",
        "[Document 1: a.pdf, Page 2]",
        "One.",
        "",
        "[Document 2: b.pdf, Page 7]",
        "Two.",
        "",
        "The answer is very likely on these pages · ctx open 1 · --full · --json",
        "a note",
    ]


def test_a_page_keeps_its_order_and_loses_its_marks() -> None:
    markdown = "# Causes\n\nThe bubble.\n\n- one\n- two\n\n```\nx = 1\n```\n\n17 Limekiln Row\nEllerby"
    assert page(markdown) == [
        "Causes", "", "The bubble.", "", "• one", "• two", "", "x = 1", "", "17 Limekiln Row", "Ellerby",
    ]  # fmt: skip


def test_a_table_that_fits_has_columns() -> None:
    assert page("| Plan | Premium |\n|---|---|\n| Standard | $45 |") == ["Plan      Premium", "Standard  $45"]


def test_long_cells_stay_in_their_column() -> None:
    shown = page(f"| Plan | What it covers |\n|---|---|\n| Standard | {'emergency services and more ' * 4}|", 40)
    assert all(cells(line) <= 40 for line in shown)
    column = next(line for line in shown if "What it" in line).index("What")
    assert all(line[:column].strip() in ("", "Plan", "Standard", "─" * 8) for line in shown)


@pytest.mark.parametrize("width", [40, 80])
def test_many_columns_are_rows_of_text_and_no_cell_is_broken(width: int) -> None:
    row = [f"{n},{n}00 $" for n in range(1, 15)]
    shown = page("Footwear | " + " | ".join(row), width)
    assert len(shown) > 1
    assert all(cells(line) <= width for line in shown)
    assert all(any(cell in line for line in shown) for cell in row)
    assert shown[1].startswith("  ")
    assert "|" not in "".join(shown)


def test_a_cell_wider_than_the_screen_is_running_text() -> None:
    text = "emergency services and more " * 5
    shown = page("|a|b|c|d|e|\n" + f"|1|2|3|4|{text}|", 40)
    assert all(cells(line) <= 40 for line in shown)
    assert text.strip() in " ".join(shown)
    assert page(f"|{text}|", 40)[0].startswith("emergency")


def test_nothing_of_it_moves_the_terminal() -> None:
    context = answer([source(HOSTILE, 1, HOSTILE)], [quote(HOSTILE)], query=HOSTILE)
    context.formatted_text = f"[Document 1: a\x1b[2J.pdf, Page 1]\n{HOSTILE}\n```\n{HOSTILE}\n|{HOSTILE}|\n# {HOSTILE}"
    shown = "\n".join(drawn(full_rendering(context, Screen(80, 40), marker(), [Note(HOSTILE, "")]), 80))
    assert "[Document 1: a\\x1b[2J.pdf, Page 1]" in shown
    assert not set(shown) & set("\x1b\x9b\x07\x00\u202e\u2066\u2028\r\t")


def test_a_long_question_is_not_shown_again_in_full_and_no_page_is_no_error() -> None:
    shown = drawn(full_rendering(answer([], query="why " * 5000), Screen(80, 40), marker(), []), 80)
    assert len(shown) < 12
