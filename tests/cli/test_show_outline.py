"""ctx show --outline: a document's table of contents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.answers import without_escapes
from tests.cli.test_schemas import validate


def test_it_is_a_line_a_heading(call, filled: Path) -> None:
    for name in ("crisis.pdf", "aaaa0000", "Title of crisis.pdf", "/gone/crisis.pdf"):
        ran = call("show", name, "--outline", "--index", str(filled))
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == "1\t1\tThe crisis\n2\t2\tCauses\n2\t3\tAnswers\n"


def test_json(call, filled: Path) -> None:
    document = call("show", "crisis.pdf", "--outline", "--depth", "1", "--json", "--index", str(filled)).document
    assert (document["filename"], document["num_pages"], document["pages"]) == ("crisis.pdf", 3, [])
    [entry] = document["entries"]
    assert entry == {
        "level": 1,
        "title": "The crisis",
        "page": 1,
        "page_label": "i",
        "ref": "page:aaaa000000000001#1",
        "link": "file:///gone/crisis.pdf#page=1",
    }
    for name in ("crisis.pdf", "gardening.pdf", "crisis-annex.pdf", "cccc000000000003"):
        document = call("show", name, "--outline", "--json", "--index", str(filled)).document
        assert document["schema"] == "ctx.outline/1"
        validate(document)


def test_without_headings_the_pages_are_listed(call, filled: Path) -> None:
    ran = call("show", "gardening.pdf", "--outline", "--index", str(filled))
    assert (ran.code, ran.out) == (0, "1\t1\tTomatoes need sun, water and patience.\n")
    assert ran.err == "ctx: note: this document has no headings; its pages are listed by what they begin with\n"
    assert call("show", "gardening.pdf", "--outline", "--quiet", "--index", str(filled)).err == ""


def test_on_a_terminal_deeper_headings_stand_further_in(on_terminal, filled: Path) -> None:
    ran = on_terminal(["show", "crisis.pdf", "--outline", "--index", str(filled)])
    lines = [line.rstrip() for line in without_escapes(ran.out).splitlines()]
    assert lines == ["crisis.pdf", "Title of crisis.pdf", "1  The crisis", "2    Causes", "3    Answers"]
    hostile = on_terminal(["show", "cccc000000000003", "--outline", "--index", str(filled)], env={"CTX_LINKS": "off"})
    assert "owned" in hostile.out
    assert "\x1b]0" not in hostile.out
    assert "\u202e" not in hostile.out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["nowhere.pdf", "--outline"], 3, "no document matches 'nowhere.pdf'"),
        (["cris", "--outline"], 2, "matches 2 documents"),
        (["crisis.pdf", "--outline", "--depth", "0"], 2, "0 is too small; the least is 1"),
        (["crisis.pdf", "1", "--outline"], 2, "--outline is of the whole document"),
        (["crisis.pdf", "--depth", "1"], 2, "--depth is for headings"),
    ],
)
def test_what_is_wrong_is_said(call, filled: Path, args: list[str], code: int, words: str) -> None:
    ran = call("show", *args, "--index", str(filled))
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
