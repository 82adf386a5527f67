"""ctx outline: a document's table of contents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cli.schemas import load

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def test_it_is_a_line_a_heading(call, filled: Path) -> None:
    ran = call("outline", "crisis.pdf", "--index", str(filled))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "1\t1\tThe crisis\n2\t2\tCauses\n2\t3\tAnswers\n"


@pytest.mark.parametrize("name", ["aaaa0000", "Title of crisis.pdf", "/gone/crisis.pdf"])
def test_the_document_is_called_as_everywhere(call, filled: Path, name: str) -> None:
    assert "Causes" in call("outline", name, "--index", str(filled)).out


def test_json(call, filled: Path) -> None:
    document = call("outline", "crisis.pdf", "--depth", "1", "--json", "--index", str(filled)).document
    assert document["schema"] == "ctx.outline/1"
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


@pytest.mark.parametrize("name", ["crisis.pdf", "gardening.pdf", "crisis-annex.pdf", "cccc000000000003"])
def test_json_is_as_its_schema_says(call, filled: Path, name: str) -> None:
    document = call("outline", name, "--json", "--index", str(filled)).document
    assert list(Draft202012Validator(load("outline")).iter_errors(document)) == []


def test_without_headings_the_pages_are_listed(call, filled: Path) -> None:
    ran = call("outline", "gardening.pdf", "--index", str(filled))
    assert (ran.code, ran.out) == (0, "1\t1\tTomatoes need sun, water and patience.\n")
    assert ran.err == "ctx: note: this document has no headings; its pages are listed by what they begin with\n"
    assert call("outline", "gardening.pdf", "--quiet", "--index", str(filled)).err == ""
    document = call("outline", "gardening.pdf", "--json", "--quiet", "--index", str(filled)).document
    assert (document["entries"], [page["page"] for page in document["pages"]]) == ([], [1])


def test_on_a_terminal_deeper_headings_stand_further_in(on_terminal, filled: Path) -> None:
    ran = on_terminal(["outline", "crisis.pdf", "--index", str(filled)], env={"NO_COLOR": "1", "CTX_LINKS": "off"})
    lines = [STYLE.sub("", line).rstrip() for line in ran.out.splitlines()]
    assert lines[:2] == ["crisis.pdf", "Title of crisis.pdf"]
    assert lines[2:5] == ["1  The crisis", "2    Causes", "3    Answers"]


def test_a_hostile_name_and_heading_reach_no_terminal(on_terminal, filled: Path) -> None:
    ran = on_terminal(
        ["outline", "cccc000000000003", "--index", str(filled)], env={"NO_COLOR": "1", "CTX_LINKS": "off"}
    )
    assert "owned" in ran.out
    assert "\x1b]0" not in ran.out
    assert "\u202e" not in ran.out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["nowhere.pdf"], 3, "no document matches 'nowhere.pdf'"),
        (["cris"], 2, "matches 2 documents"),
        (["crisis.pdf", "--depth", "0"], 2, "0 is too small; the least is 1"),
        ([], 2, "missing argument 'DOC'"),
    ],
)
def test_what_is_wrong_is_said(call, filled: Path, args: list[str], code: int, words: str) -> None:
    ran = call("outline", *args, "--index", str(filled))
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err


def test_people_who_type_toc_are_told(call) -> None:
    assert "did you mean: ctx outline" in call("toc", "x.pdf").err
