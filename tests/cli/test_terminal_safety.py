"""Text that is somebody else's cannot move the terminal, in any rendering."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.text import block, one_line, phrase

ANY_TEXT = st.text(st.characters())  # lone surrogates included


@given(ANY_TEXT)
def test_one_line_leaves_only_visible_characters(text: str) -> None:
    shown = one_line(text)
    assert len(shown.splitlines()) <= 1
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert not any(c in shown for c in "\u202e\u2066\u200b\u200d\ufeff\u061c")
    shown.encode()


@given(ANY_TEXT)
def test_a_block_keeps_lines_and_tabs_and_nothing_else_unseen(text: str) -> None:
    shown = block(text)
    assert {c for c in shown if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}} <= {"\n", "\t"}
    assert not any(c in shown for c in "\u202e\u2066\u200b\ufeff\u061c")
    shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc", r"a\nb\tc"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("in\u202efdp.exe", r"in\u202efdp.exe"),
        ("plain – ünïcode 漢字.pdf", "plain – ünïcode 漢字.pdf"),
        ("\udcff", r"\udcff"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_one_line_spells_out_what_it_hides(text: str, shown: str) -> None:
    assert one_line(text) == shown


def test_running_text_keeps_joiners_and_loses_overrides() -> None:
    assert block("نمی\u200cخواهم\u202e\r\nx\x07") == "نمی\u200cخواهم\nx\\x07"
    assert phrase(" a\n\n b\tc ") == "a b c"


@pytest.mark.parametrize(
    "args",
    [
        ["ask", "zebra", "--mode", "lexical", "--explain"],
        ["search", "zebra", "--mode", "lexical", "--explain"],
        ["show", "cccc000000000003", "1"],
        ["list"],
        ["doctor"],
        ["remove", "nothing like it \x1b[31m"],
    ],
    ids=lambda args: args[0],
)
def test_a_hostile_document_is_harmless_on_a_terminal_and_in_a_pipe(
    filled: Path, on_terminal: Callable[..., object], call: Callable[..., object], args: list[str]
) -> None:
    piped = call(*args, "--index", str(filled))
    shown = on_terminal([*args, "--index", str(filled)], env={"NO_COLOR": "1"})
    for text in (piped.out, piped.err, shown.out):
        for piece in ("\x1b[31m", "\x1b]0;", "\x1b[2J", "\x9b", "\u202e", "\x07", "\u2028"):
            assert piece not in text
    if args[0] in {"ask", "search", "list"}:
        assert "[bold]x[b]" in piped.out + piped.err
        assert "[bold]x" in shown.out
        assert len([line for line in piped.out.splitlines() if "evil" in line]) == 1
