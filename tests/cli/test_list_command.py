"""ctx list on a terminal: a document a line, the file first, whatever the width."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from cli.documents import document_table
from cli.layout import cells
from research.records import DocumentInfo
from tests.cli.answers import HOSTILE, without_escapes
from tests.in_process import Ran

LONG = "Northwind_Health_Plus_Benefits_Details.pdf"


def document(name: str, doc_id: str = "a242b972ffff0000", title: str = "Zava", pages: int = 109) -> DocumentInfo:
    path = f"/docs/{name}".encode("utf-8", "backslashreplace").decode()
    return DocumentInfo(doc_id, name, "pdf", title, pages, "2026-11-17T10:00:00+00:00", path, 10, "0" * 64)


def lines(documents: list[DocumentInfo], width: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False, emoji=False, highlight=False)
    console.print(document_table(documents, width, links=False))
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("width", "heading", "shown"),
    [
        (40, ["file", "pages", "id"], ["Northwind_He…Details.pdf", "109", "a242b972"]),
        (60, ["file", "pages", "id", "added"], ["Northwind_Heal…efits_Details.pdf", "109", "a242b972", "2026-11-17"]),
        (100, ["file", "pages", "id", "added", "title"], [LONG, "109", "a242b972", "2026-11-17", "Zava"]),
        (20, ["file", "pages"], ["Northw…s.pdf", "109"]),
    ],
)
def test_the_file_comes_first_and_columns_go_before_it(width: int, heading: list[str], shown: list[str]) -> None:
    first, second = lines([document(LONG)], width)
    assert (first.split(), len(second.split())) == (heading, len(shown))
    assert second.split()[1:] == shown[1:]
    assert second.startswith("Northw")
    assert ".pdf" in second


def test_an_id_is_as_long_as_it_takes_to_tell_documents_apart() -> None:
    shown = lines([document("a.pdf", "1234567890aaaaaa"), document("b.pdf", "1234567890bbbbbb")], 80)
    assert [line.split()[2] for line in shown[1:]] == ["1234567890a", "1234567890b"]


@pytest.mark.parametrize("width", [10, 40, 80, 200])
def test_a_name_cannot_move_the_terminal_or_break_its_line(width: int) -> None:
    shown = lines([document(HOSTILE, title=HOSTILE), document("年度報告書二〇二四" * 9 + ".pdf")], width)
    assert len(shown) == 3
    assert all(cells(line) <= width for line in shown)
    assert not set("".join(shown)) & set("\x1b\x9b\x07\x00\u202e\u2066\u2028\r\n\t")


def test_the_command(on_terminal: Callable[..., Ran], filled: Path) -> None:
    shown = without_escapes(on_terminal(["list", "--index", str(filled)], columns=40).out).splitlines()
    assert [line.split()[0] for line in shown] == ["file", "crisis-annex.pdf", "crisis.pdf", shown[3].split()[0],
                                                   "gardening.pdf"]  # fmt: skip
    assert all(len(line) <= 40 for line in shown)
