"""Markdown as blocks: what readers of PDFs write, and whatever else stands on a page."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.markdown import Block, blocks

LONG = "The tables present the revenues by segment, product line and channel of the"


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ("", []),
        ("one\n\ntwo", [Block("text", "one"), Block("text", "two")]),
        (f"{LONG}\nUnited States.\nNext", [Block("text", f"{LONG} United States."), Block("text", "Next", close=True)]),
        ("Until the beam has been repaired\nby us.", [Block("text", "Until the beam has been repaired by us.")]),
        ("17 Limekiln Row\nEllerby", [Block("text", "17 Limekiln Row"), Block("text", "Ellerby", close=True)]),
        ("## Causes ##\ntext", [Block("heading", "Causes"), Block("text", "text", close=True)]),
        ("#hashtag", [Block("text", "#hashtag")]),
        ("#", []),
        ("- one\n  goes on\n* two\n\n3. three", [
            Block("item", "• one goes on"), Block("item", "• two", close=True), Block("item", "3. three"),
        ]),
        ("> quoted", [Block("text", "quoted")]),
        ("peak > 26 °C", [Block("text", "peak > 26 °C")]),
        ("```\na  b\n\n\tc\n\n```\nafter", [Block("code", "a  b\n\n    c"), Block("text", "after")]),
        ("```\na\n```\n```\nb\n```\n```\n```", [Block("code", "a"), Block("code", "b")]),
        ("~~~\nnever closed", [Block("code", "never closed")]),
        ("one\n---\n\n......\ntwo", [Block("text", "one"), Block("text", "two")]),
        ("\\# no heading", [Block("text", "# no heading")]),
        ("snake_case and *stars* stay", [Block("text", "snake_case and *stars* stay")]),
        ("|---|", []),
        ("|", [Block("text", "|")]),
    ],
)  # fmt: skip
def test_the_marks_go_and_what_they_say_stays(markdown: str, found: list[Block]) -> None:
    assert blocks(markdown) == found


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ("|a|b|\n|---|:-:|\n|1|2 \\| 3|", [Block("table", rows=(("a", "b"), ("1", "2 | 3")), header=True)]),
        ("text\n|a|\nmore", [
            Block("text", "text"), Block("table", rows=(("a",),), close=True), Block("text", "more", close=True),
        ]),
        ("a | b", [Block("table", rows=(("a", "b"),))]),
        ("EUROPE | ASIA\nRevenues by:\nFootwear | $ 5 | 7\nApparel | 3 | —", [
            Block("table", rows=(("EUROPE", "ASIA"),)),
            Block("text", "Revenues by:", close=True),
            Block("table", rows=(("Footwear", "$ 5", "7"), ("Apparel", "3", "—")), close=True),
        ]),
        ("a | b\na | b | c", [
            Block("table", rows=(("a", "b"),)), Block("table", rows=(("a", "b", "c"),), close=True),
        ]),
        ("- loss (dict | None)", [Block("item", "• loss (dict | None)")]),
    ],
)  # fmt: skip
def test_rows_keep_their_cells(markdown: str, found: list[Block]) -> None:
    assert blocks(markdown) == found


@given(st.text(st.one_of(st.characters(), st.sampled_from("|#->`~\n\t\\ \x1b\x9b\u202e"))))
def test_no_text_breaks_it_or_brings_controls(markdown: str) -> None:
    for found in blocks(markdown):
        texts = [found.text, *(cell for row in found.rows for cell in row)]
        for text in texts:
            assert {c for c in text if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}} <= {"\n"}
            assert "\n" not in text or found.kind == "code"
            assert "\u202e" not in text


def test_a_page_of_nothing_but_marks_takes_no_time_to_speak_of() -> None:
    """One pass over the lines, whatever they hold: this would take minutes if any part were gone over again."""
    for line in ("|" * 200_000, "\\|" * 100_000 + "|", "-" * 200_000 + "x", "# " * 100_000, "> " * 100_000):
        assert len(blocks(f"|{line}|\n{line}\n")) <= 3
