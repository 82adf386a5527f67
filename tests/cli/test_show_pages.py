"""ctx show with several pages, or the whole document."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cli.schemas import load


@pytest.mark.parametrize(
    ("pages", "shown"),
    [
        (["2-3"], [2, 3]),
        (["1,3"], [1, 3]),
        (["3,1"], [3, 1]),  # in the order asked for
        (["2-"], [2, 3]),
        (["-2"], [1, 2]),
        (["1-2,2-3"], [1, 2, 3]),  # each once
        ([], [1, 2, 3]),
    ],
)
def test_ranges(call, filled: Path, pages: list[str], shown: list[int]) -> None:
    ran = call("show", "crisis.pdf", "--json", "--index", str(filled), "--", *pages)
    assert ran.code == 0, ran.err
    assert ran.document["schema"] == "ctx.pages/1"
    assert [page["page"] for page in ran.document["pages"]] == shown
    assert list(Draft202012Validator(load("pages")).iter_errors(ran.document)) == []
    assert ran.document["filename"] == "crisis.pdf"


def test_a_page_of_several_is_what_it_is_alone(call, filled: Path) -> None:
    alone = call("show", "crisis.pdf", "2", "--json", "--index", str(filled)).document
    both = call("show", "crisis.pdf", "1-2", "--json", "--index", str(filled)).document
    assert alone.pop("schema") == "ctx.show/2"
    assert both["pages"][1] == alone


def test_in_a_pipe_form_feeds_part_the_pages(call, filled: Path) -> None:
    ran = call("show", "crisis.pdf", "--index", str(filled))
    first, second, third = ran.out.split("\f")
    assert first == "# The crisis\n\nAn overview of the financial crisis of 2008.\n"
    assert second.startswith("## Causes\n\nThe housing bubble")
    assert third == "Regulators answered with stress tests for banks.\n"


def test_on_a_terminal_each_has_its_head(on_terminal, filled: Path) -> None:
    env = {"NO_COLOR": "1", "PAGER": "cat"}
    ran = on_terminal(["show", "crisis.pdf", "2-3", "--index", str(filled)], env=env)
    assert ran.out.index("page 2 (ii) of 3") < ran.out.index("housing bubble") < ran.out.index("page 3 (1) of 3")


def test_places_of_a_question_on_several_pages(call, filled: Path) -> None:
    asked = ["--for", "Why did the housing bubble burst?", "--json"]
    document = call("show", "crisis.pdf", "1-2", *asked, "--index", str(filled)).document
    assert document["pages"][1]["regions"]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["5-3"], 2, "the pages 5-3 run backwards\nhint: write 3-5"),
        (["0-2"], 2, "there is no page 0"),
        (["two"], 2, "'two' names no pages\nhint: pages count from 1"),
        (["1,,2"], 2, "'1,,2' names no pages"),
        (["1-2-3"], 2, "names no pages"),
        (["2-99"], 3, "crisis.pdf has no pages 2 to 99\nhint: its pages are 1 to 3"),
        (["1,9"], 3, "crisis.pdf has no page 9\nhint: its pages are 1 to 3"),
        (["9-"], 3, "crisis.pdf has no page 9"),
        (["1-2", "--image", "x.png"], 2, "--image draws one page\nhint: name it: ctx show DOC PAGE --image x.png"),
        (["--image", "x.png"], 2, "--image draws one page"),
        (["1-2", "--for", "x"], 2, "--for marks places on an image"),
    ],
)
def test_what_is_wrong_is_said(call, filled: Path, args: list[str], code: int, words: str) -> None:
    ran = call("show", "crisis.pdf", *args, "--index", str(filled))
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
