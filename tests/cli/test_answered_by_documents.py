"""A question for documents, as the commands answer it: one page each, and a word that says so."""

from __future__ import annotations

from pathlib import Path

QUESTION = "Which documents mention mortgages?"
NOTE = "answered by 1 document, one page each"


def test_search(call, filled: Path) -> None:
    ran = call("search", QUESTION, "--index", str(filled))
    assert ran.code == 0
    assert [line.split("\t")[2] for line in ran.out.splitlines()] == ["crisis.pdf:2"]
    assert f"ctx: note: {NOTE}\n" in ran.err
    assert call("search", QUESTION, "--quiet", "--index", str(filled)).err == ""


def test_search_json(call, filled: Path) -> None:
    document = call("search", QUESTION, "--json", "--index", str(filled)).document
    assert (document["answered_by"], document["searched"], len(document["results"])) == ("documents", "mortgages", 1)
    other = call("search", "What did mortgages do?", "--json", "--index", str(filled)).document
    assert other["answered_by"] == "pages"


def test_ask(call, filled: Path) -> None:
    ran = call("ask", QUESTION, "--index", str(filled))
    assert f"ctx: note: {NOTE}\n" in ran.err
    assert ran.out.count("[Document ") == 1
    document = call("ask", QUESTION, "--json", "--index", str(filled)).document
    assert (document["answered_by"], len(document["sources"])) == ("documents", 1)
