"""ctx tag: give, take, list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from research.store import IndexPaths, write_lock
from tests.in_process import Ran

Call = Callable[..., Ran]


def test_tags_are_given_listed_and_taken(call: Call, copied: Path) -> None:
    at = ("--index", str(copied))
    assert (call("tag", *at).code, call("tag", *at).out) == (0, "")
    assert call("tag", "add", "crisis.pdf", "finance", " 2008 ", *at).out == "crisis.pdf\t2008\tfinance\n"
    assert call("tag", "add", "crisis.pdf", "finance", *at).out == "crisis.pdf\t2008\tfinance\n", "twice is once"
    assert call("tag", "add", "crisis*", "all", *at).out == "crisis-annex.pdf\tall\ncrisis.pdf\t2008\tall\tfinance\n"
    assert call("tag", *at).out == "2008\t1\nall\t2\nfinance\t1\n"
    assert call("tag", "show", "crisis-annex.pdf", *at).out == "crisis-annex.pdf\tall\n"
    assert call("tag", "remove", "crisis*", "all", "never", *at).out == "crisis-annex.pdf\ncrisis.pdf\t2008\tfinance\n"
    listed = call("tag", "--json", *at).document["tags"]
    assert listed == [
        {"tag": tag, "documents": [{"doc_id": "aaaa000000000001", "filename": "crisis.pdf"}]}
        for tag in ("2008", "finance")
    ]


def test_a_tag_chooses_documents(call: Call, copied: Path) -> None:
    at = ("--index", str(copied))
    call("tag", "add", "gardening.pdf", "Green Things", *at)
    for command in ("ask", "search"):
        ran = call(command, "housing tomatoes", "--tag", "green things", "--json", *at)
        pages = ran.document["sources" if command == "ask" else "results"]
        assert [page["filename"] for page in pages] == ["gardening.pdf"]
    ran = call("ask", "housing", "--tag", "green thing", *at)
    assert (ran.code, ran.out) == (3, "")
    assert "no document has the tag 'green thing'" in ran.err
    assert "did you mean Green Things?" in ran.err


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("nowhere.pdf", "x"), 3, "no document matches"),
        (("Title", "x"), 2, "matches 4 documents"),
        (("crisis.pdf", "a\nb"), 2, "cannot be a tag"),
        (("crisis.pdf", ""), 2, "cannot be a tag"),
        (("crisis.pdf", "x" * 101), 2, "cannot be a tag"),
        (("crisis.pdf",), 2, "missing argument 'TAG...'"),
        (("", "x"), 2, "name is empty"),
    ],
)
def test_what_cannot_be_done(call: Call, copied: Path, args: tuple[str, ...], code: int, message: str) -> None:
    ran = call("tag", "add", *args, "--index", str(copied))
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert call("tag", "--index", str(copied)).out == "", "nothing was tagged"


def test_without_an_index(call: Call, tmp_path: Path) -> None:
    at = ("--index", str(tmp_path / "none"))
    assert (call("tag", *at).code, call("tag", "--json", *at).document["tags"]) == (0, [])
    assert call("tag", "add", "a.pdf", "x", *at).code == 3
    assert not (tmp_path / "none").exists()


def test_while_another_process_writes(call: Call, copied: Path) -> None:
    with write_lock(IndexPaths(copied)):
        assert call("tag", "add", "crisis.pdf", "x", "--index", str(copied)).out == "crisis.pdf\tx\n"


def test_names_are_shown_safely(call: Call, copied: Path) -> None:
    ran = call("tag", "add", "cccc000000000003", "[red]x[/red]", "--index", str(copied))
    assert ran.out == "evil\\n[bold]x[b]\\x1b[31m\\u202e--json.pdf\t[red]x[/red]\n"


def test_tags_go_with_their_document(call: Call, copied: Path) -> None:
    at = ("--index", str(copied))
    call("tag", "add", "crisis.pdf", "x", *at)
    assert call("remove", "crisis.pdf", *at).code == 0
    assert call("tag", *at).out == ""
