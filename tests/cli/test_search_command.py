"""ctx search and the snippets it shows."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from tests.cli.answers import without_escapes


def test_piped_a_result_is_one_line_of_four_fields(call, filled: Path) -> None:
    ran = call("search", "housing", "bubble", "--num-results", "3", "--index", str(filled))
    assert ran.code == 0
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert [line[0] for line in lines] == ["1", "2", "3"]
    assert all(len(line) == 4 for line in lines)
    assert lines[0][2] == "crisis.pdf:2"
    assert "housing bubble burst" in lines[0][3]


def test_json(call, filled: Path) -> None:
    document = call("search", "housing", "--json", "--index", str(filled)).document
    assert list(document) == [
        "schema", "query", "searched", "rewrites", "answered_by", "confidence", "results", "coverage", "timings",
    ]  # fmt: skip
    assert document["schema"] == "ctx.search/2"
    assert list(document["results"][0]) == [
        "citation", "doc_id", "filename", "page", "page_label", "section_path", "relevance_score", "raw_score",
        "snippet", "ref", "link", "title", "source_path", "ocr", "image_path", "thumbnail_path", "visual_match",
        "regions", "legs", "suspicious", "file_id",
    ]  # fmt: skip
    assert document["results"][0]["citation"] == 1


def test_on_a_terminal(on_terminal, filled: Path) -> None:
    ran = on_terminal(["search", "housing", "bubble", "--explain", "--index", str(filled)])
    shown = without_escapes(ran.out)
    assert re.search(r"^ \[1\] crisis\.pdf p\. 2 \(ii\)  0\.\d{3} · The crisis > Causes$", shown, re.MULTILINE)
    assert re.search(r"^     .*The housing bubble burst", shown, re.MULTILINE)
    assert re.search(r"\x1b\[1mhousing\x1b\[0m \x1b\[1mbubble\x1b\[0m", ran.out), "the words that fit are bold"
    assert "How the scores arose" in shown


def test_on_a_narrow_terminal(on_terminal, filled: Path) -> None:
    ran = on_terminal(["search", "zebra bubble tomatoes", "--index", str(filled)], columns=50, rows=12)
    shown = without_escapes(ran.out).splitlines()
    results = [number for number, line in enumerate(shown) if re.match(r" \[\d\] ", line)]
    assert len(results) == 5
    assert all(after - before <= 2 for before, after in pairwise(results)), "one line of each where rows are few"
    drawn = shown[: results[-1] + 2]
    assert all(len(line) <= 50 for line in drawn)
    assert all(".pdf p. " in shown[number] for number in results), "names stay"
    assert not set(ran.out) & set("\x9b\x07\u202e\u2028")


PAGE = "# Heading\n\n" + "Nothing of note happens here. " * 30 + "The subprime mortgages defaulted. " + "More. " * 90
