"""ctx graph: what is near, as a tree, JSON, DOT and Mermaid; whatever the titles hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cli.graph import as_dot, as_mermaid, as_text
from cli.schemas import load
from research.graph import Edge, ShownGraph, ShownNode


def test_a_document_with_its_pages(call, copied: Path) -> None:
    ran = call("graph", "crisis.pdf", "--hops", "3", "--index", str(copied))
    assert ran.code == 0
    first, *others = ran.out.splitlines()
    assert first.startswith("crisis.pdf")
    assert "[document:" in first
    assert any("crisis.pdf, page 2" in line and "contains" in line for line in others)


def test_the_document_is_one_of_the_schema(call, copied: Path) -> None:
    document = call("graph", "crisis.pdf", "--json", "--index", str(copied)).document
    assert list(Draft202012Validator(load("graph")).iter_errors(document)) == []
    assert document == call("graph", "crisis.pdf", "--format", "json", "--index", str(copied)).document
    (ref,) = document["refs"]
    assert (document["nodes"][0]["ref"], document["nodes"][0]["hop"]) == (ref, 0)
    assert document["edges"]
    page = next(node["ref"] for node in document["nodes"] if node["hop"])
    assert ref in call("graph", page, "--index", str(copied)).out


def test_what_is_not_there(call, copied: Path) -> None:
    for thing in ("nothing.pdf", "page:0000000000000000#1", "memory:mem-0", "commit:abc", "code:a.py#b", "section:x"):
        ran = call("graph", thing, "--index", str(copied))
        assert (ran.code, ran.out) == (3, ""), thing


@pytest.mark.parametrize("wrong", [["--hops", "4"], ["--kinds", "loves"], ["--format", "png"], ["--limit", "0"]])
def test_what_is_refused(call, copied: Path, wrong: list[str]) -> None:
    ran = call("graph", "crisis.pdf", *wrong, "--index", str(copied))
    assert (ran.code, ran.out) == (2, "")


def test_what_is_left_out_is_told(call, copied: Path) -> None:
    assert "only the nearest 1 are shown" in call("graph", "crisis.pdf", "--limit", "1", "--index", str(copied)).err


def _hostile(title: str) -> ShownGraph:
    nodes = [
        ShownNode("document:a", "document", title, 0, 1.0, title),
        ShownNode("page:a#1", "page", "", 1, 0.4, title, 1),
    ]
    return ShownGraph(["document:a"], nodes, [Edge("document:a", "contains", "page:a#1")])


@pytest.mark.parametrize(
    "title",
    [
        '"]; x [label="',
        "\\",
        '\\"',
        "a\nb -> c",
        "\x1b[31m",
        '"] --> z',
        "`|{}<script>",
        "#quot;",
        "%%{init}%%",
        "\u202e",
    ],
)
def test_titles_end_nothing(title: str) -> None:
    """Whatever a title is, there are as many lines and statements as with a plain one."""
    hostile, plain = _hostile(title), _hostile("plain")
    for made in (as_dot, as_mermaid, as_text):
        assert len(made(hostile).splitlines()) == len(made(plain).splitlines())
        assert "\x1b" not in made(hostile)
    for line in as_dot(hostile).splitlines():
        assert line.replace('\\"', "").count('"') % 2 == 0
        assert "\\\\" not in line
    drawn = as_mermaid(hostile)
    assert drawn.count('"') == as_mermaid(plain).count('"')
    assert not set("<>`{}\\") & set(drawn.replace("-->", ""))
