"""ctx list on a terminal: a document a line, the file first, whatever the width."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.layout import cells
from cli.list import document_lines
from research.records import DocumentInfo
from tests.cli.answers import HOSTILE, without_escapes
from tests.in_process import Ran

LONG = "Northwind_Health_Plus_Benefits_Details.pdf"


def document(name: str, doc_id: str = "a242b972ffff0000", title: str = "Zava", pages: int = 109) -> DocumentInfo:
    path = f"/docs/{name}".encode("utf-8", "backslashreplace").decode()
    return DocumentInfo(doc_id, name, "pdf", title, pages, "2026-11-17T10:00:00+00:00", path, 10, "0" * 64)


def lines(documents: list[DocumentInfo], width: int) -> list[str]:
    return [line.plain for line in document_lines(documents, width, links=False)]


@pytest.mark.parametrize(
    ("width", "heading", "shown"),
    [
        (40, "file                     pages  id", "Northwind_H…Details.pdf    109  a242b972"),
        (50, "file                               pages  id", "Northwind_Health…fits_Details.pdf    109  a242b972"),
        (
            80,
            "file                                 pages  id        added       title",
            "Northwind_Health_…efits_Details.pdf    109  a242b972  2026-11-17  Zava",
        ),
        (120, f"file{' ' * 40}pages  id        added       title", f"{LONG}    109  a242b972  2026-11-17  Zava"),
        (20, "file           pages", "Northw…ls.pdf    109"),
    ],
)
def test_the_file_comes_first_and_columns_go_before_it(width: int, heading: str, shown: str) -> None:
    assert lines([document(LONG)], width) == [heading, shown]


def test_short_names_leave_room_for_titles() -> None:
    shown = lines([document("a.pdf", title="A long title " * 20), document("b.pdf", "b" * 16, "短い題名")], 60)
    assert shown[1].startswith("a.pdf    109  a242b972  2026-11-17  A long title")
    assert shown[1].endswith("…")
    assert shown[2] == "b.pdf    109  bbbbbbbb  2026-11-17  短い題名"
    assert all(cells(line) <= 60 for line in shown)


def test_an_id_is_as_long_as_it_takes_to_tell_documents_apart() -> None:
    shown = lines([document("a.pdf", "1234567890aaaaaa"), document("b.pdf", "1234567890bbbbbb")], 80)
    assert [line.split()[2] for line in shown[1:]] == ["1234567890a", "1234567890b"]


@pytest.mark.parametrize("width", [1, 10, 40, 80, 200])
def test_a_name_cannot_move_the_terminal_or_break_its_line(width: int) -> None:
    shown = lines([document(HOSTILE, title=HOSTILE), document("年度報告書二〇二四" * 9 + ".pdf")], width)
    assert len(shown) == 3
    assert all(cells(line) <= max(width, 4) for line in shown)
    assert not set("".join(shown)) & set("\x1b\x9b\x07\x00\u202e\u2066\u2028\r\n\t")


def test_the_command(on_terminal: Callable[..., Ran], filled: Path) -> None:
    shown = without_escapes(on_terminal(["list", "--index", str(filled)], columns=40).out).splitlines()
    assert [line.split()[0] for line in shown] == ["file", "crisis-annex.pdf", "crisis.pdf", shown[3].split()[0],
                                                   "gardening.pdf"]  # fmt: skip
    assert all(len(line) <= 40 for line in shown)
