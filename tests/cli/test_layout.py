"""Text in the cells of a terminal: shortened, wrapped, in columns, never wider than it may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from cli.layout import (
    MARK,
    cells,
    excerpt,
    head_lines,
    marked,
    packed,
    passage_lines,
    shorten_end,
    shorten_middle,
    shorten_path,
    table_lines,
    wrapped,
)
from research.markdown import Block, blocks
from tests.cli.answers import marker

ODD = st.text(st.sampled_from([*"ab> .", "漢", "ｱ", "\u0301", "\u200d", "❤", "\ufe0f", "👨", "🇩", "🇪", "ﷺ"]))
WIDTHS = st.integers(0, 40)


@given(ODD, WIDTHS)
def test_nothing_shortened_is_wider_than_it_may_be(text: str, width: int) -> None:
    for shorten in (shorten_end, shorten_middle, shorten_path):
        shown = shorten(text, width)
        assert cells(shown) <= width
        assert shown == text or cells(text) > width


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("short.pdf", 9, "short.pdf"),
        ("Northwind_Health_Plus.pdf", 15, "Northwi…lus.pdf"),
        ("年度報告書二〇二四.pdf", 11, "年度報….pdf"),
        ("abcdef", 2, "a…"),
        ("abcdef", 0, ""),
        ("résumé-cafe\u0301.pdf", 10, "résum….pdf"),  # the accent goes with its letter
    ],
)
def test_a_name_keeps_its_beginning_and_its_end(name: str, width: int, shown: str) -> None:
    assert shorten_middle(name, width) == shown


def test_parts_are_broken_only_between_them() -> None:
    assert packed(["high confidence", "4,107 tokens", "ctx open 1"], 32) == [
        "high confidence · 4,107 tokens",
        "ctx open 1",
    ]
    assert packed([], 10) == []
    assert packed(["a long part"], 6) == ["a lon…"]


def test_text_is_wrapped_between_words_and_wide_characters() -> None:
    assert [line.plain for line in wrapped(Text("one two three"), 8)] == ["one two", "three"]
    assert [line.plain for line in wrapped(Text("静息心率显示"), 5)] == ["静息", "心率", "显示"]
    assert [line.plain for line in wrapped(Text("incomprehensible"), 6)] == ["incomp", "rehens", "ible"]


@given(ODD, st.integers(2, 40))
def test_no_wrapped_line_is_too_wide(text: str, width: int) -> None:
    assert all(cells(line.plain) <= width for line in wrapped(Text(text), width))


def test_items_hang_and_headings_are_dim() -> None:
    heading, item = passage_lines(blocks("# Causes\n\n- one two three four"), 20, marker("two"))
    assert (heading.plain, str(heading.style)) == ("Causes", "dim")
    assert item.plain == "• one two three four"
    assert [line.plain for line in passage_lines(blocks("- one two three four"), 12, marker())] == [
        "• one two",
        "  three four",
    ]


def test_code_keeps_its_lines_and_its_tabs_have_a_width() -> None:
    shown = passage_lines(blocks("```\nif x:\n\treturn a_long_name\n\n```"), 14, marker("return"))
    assert [line.plain for line in shown] == ["if x:", "    return a_…"]
    assert [span.style for span in shown[1].spans] == [MARK]


TABLE = [["Plan", "Premium", "Copay"], ["Standard", "$45", "20 %"], ["Plus", "$55", "10 %"]]


def test_a_table_has_columns_where_they_fit() -> None:
    assert [line.plain for line in table_lines(TABLE, 40, marker())] == [
        "Plan      Premium  Copay",
        "Standard  $45      20 %",
        "Plus      $55      10 %",
    ]
    assert [line.plain for line in table_lines([["計画", "x"], ["a", "y"]], 40, marker())] == ["計画  x", "a     y"]


def test_a_table_that_is_too_wide_is_broken_between_cells() -> None:
    shown = [line.plain for line in table_lines(TABLE, 18, marker())]
    assert shown == ["Plan · Premium", "  Copay", "Standard · $45", "  20 %", "Plus · $55 · 10 %"]
    assert [line.plain for line in table_lines([["EUROPE", "ASIA"]], 40, marker())] == ["EUROPE · ASIA"]
    uneven = table_lines([["a"], ["b", "", "c"]], 30, marker())
    assert [line.plain for line in uneven] == ["a", "b    c"]


@given(st.lists(st.lists(ODD, min_size=1, max_size=6), min_size=1, max_size=5), st.integers(3, 40))
def test_no_line_of_a_table_is_too_wide(rows: list[list[str]], width: int) -> None:
    assert all(cells(line.plain) <= width for line in table_lines(rows, width, marker("a")))


def lines_of(*texts: str) -> list[Text]:
    return [marked(text, marker("fit", "well")) for text in texts]


def plains(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


def test_an_excerpt_shows_the_lines_with_most_of_the_marked_words() -> None:
    lines = lines_of("one", "two", "fit fit", "Fit well", "five")
    assert plains(excerpt(lines, 1, 20, indent=4)) == ["  … Fit well …"]
    assert plains(excerpt(lines, 2, 20, indent=4)) == ["  … fit fit", "    Fit well …"]
    assert plains(excerpt(lines, 5, 20, indent=4)) == ["    one", "    two", "    fit fit", "    Fit well", "    five"]
    assert plains(excerpt(lines_of("fit", "fit fit", "one"), 1, 20)) == ["fit …"], "a word said twice is one word"
    assert plains(excerpt(lines_of("one", "two", "three"), 1, 20)) == ["one …"]
    assert plains(excerpt(lines_of("one", "fit"), 1, 20)) == ["fit"], "no room for an ellipsis before it"
    assert lines[3].plain == "Fit well", "the lines themselves stay as they are"


def test_an_excerpt_ends_between_words() -> None:
    assert plains(excerpt(lines_of("performance reviews are", "a key part"), 1, 22)) == ["performance reviews …"]
    assert plains(excerpt(lines_of("performance reviews", "a key part"), 1, 21)) == ["performance reviews …"]
    assert plains(excerpt(lines_of("心率显示", "x"), 1, 8)) == ["心率显 …"]
    assert plains(excerpt(lines_of("abcdefgh", "x"), 1, 2)) == ["a"]


def test_an_excerpt_of_a_table_keeps_its_header() -> None:
    rows = tuple(map(tuple, [*TABLE, ["Basic", "fit", "0 %"]]))
    found = [Block("table", rows=rows)]
    lines = passage_lines(found, 40, marker("fit"))
    assert head_lines(found, 40) == 1
    assert plains(excerpt(lines, 2, 40, indent=4, head=1)) == [
        "    Plan      Premium  Copay",
        "  … Basic     fit      0 %",
    ]
    assert plains(excerpt(lines, 1, 40, indent=4, head=1)) == ["  … Basic     fit      0 %"]
    assert head_lines(found, 18) == 2
    assert head_lines(blocks("no table"), 18) == head_lines([], 18) == 0


@given(st.lists(ODD.filter(lambda text: cells(text) <= 20), max_size=8), st.integers(1, 5), st.integers(0, 3))
def test_an_excerpt_has_its_size(texts: list[str], count: int, head: int) -> None:
    shown = excerpt(lines_of(*texts), count, 20, indent=5, head=head)
    assert len(shown) == min(count, len(texts))
    assert all(cells(line.plain) <= 25 for line in shown)
