"""Filters as they are typed: the same for ask and search, each alone and together, and a clear end where none fits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import Ran, run_in_process

Call = Callable[..., Ran]
QUESTION = "housing banks overview tomatoes zebra"


def names(document: dict[str, Any]) -> set[str]:
    pages = document["sources"] if "sources" in document else document["results"]
    return {f"{page['filename'][:6]}:{page['page']}" for page in pages}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--doc", "crisis.pdf"), {"crisis:1", "crisis:2", "crisis:3"}),
        (("--doc", "CRISIS"), {"crisis:1", "crisis:2", "crisis:3"}),
        (("--doc", "/gone/crisis.pdf", "--pages", "2-"), {"crisis:2", "crisis:3"}),
        (("--doc", "gone/*", "--not-doc", "crisis*", "--not-doc", "evil*"), {"garden:1"}),
        (("--doc", "Title of gardening.pdf"), {"garden:1"}),
        (("--doc", "aaaa0", "--doc", "bbbb000000000002", "--pages", "1"), {"crisis:1", "garden:1"}),
        (("--under", "/gone", "--pages", "3"), {"crisis:3"}),
        (("--pages", "2,3"), {"crisis:2", "crisis:3"}),
        (("--since", "2026-01-02", "--until", "2026-01-02", "--pages", "3-"), {"crisis:3"}),
        (("--since", "2026-01-02T03:04:05Z", "--doc", "gardening"), {"garden:1"}),
    ],
)
def test_what_is_left(call: Call, filled: Path, options: tuple[str, ...], found: set[str]) -> None:
    ran = call("ask", QUESTION, *options, "--json", "--index", str(filled))
    assert names(ran.document) == found, ran.err
    assert ran.code == (3 if ran.document["confidence"]["level"] == "none" else 0)
    assert (
        names(call("search", QUESTION, *options, "--mode", "lexical", "--json", "--index", str(filled)).document)
        == found
    )


def test_relative_to_where_it_is_typed(make_pdf: Callable[..., Path], tmp_path: Path) -> None:
    for folder in ("papers", "papers/old", "reports"):
        make_pdf(f"{folder}/a.pdf", [f"The walrus of {folder}."])
    index = ("--index", str(tmp_path / "index"))
    assert run_in_process("ingest", ".", "--no-images", *index, cwd=tmp_path).code == 0
    for cwd, options, found in (
        (tmp_path, ("--under", "papers"), {"papers", "papers/old"}),
        (tmp_path, ("--under", "./papers/old/"), {"papers/old"}),
        (tmp_path / "papers", ("--under", "."), {"papers", "papers/old"}),
        (tmp_path / "papers", ("--doc", "a.pdf", "--under", "old"), {"papers/old"}),
        (tmp_path / "papers", ("--doc", "./a.pdf"), {"papers"}),
        (tmp_path / "reports", ("--doc", "../papers/*"), {"papers", "papers/old"}),
        (tmp_path / "reports", ("--not-doc", "../papers/*"), {"reports"}),
    ):
        ran = run_in_process("search", "walrus", *options, "--json", *index, cwd=cwd)
        paths = {Path(result["source_path"]).parent for result in ran.document["results"]}
        assert paths == {tmp_path / folder for folder in found}, options


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--doc", "nowhere"), 3, "doc: no document matches 'nowhere'"),
        (("--not-doc", "nowhere"), 3, "not_doc: no document matches 'nowhere'"),
        (("--under", "/nowhere"), 3, "no document lies under '/nowhere'"),
        (("--tag", "tax"), 3, "no document has the tag 'tax'"),
        (("--since", "2027"), 3, "no document was added since 2027"),
        (("--pages", "7-"), 3, "no document has pages '7-'"),
        (("--doc", "gardening", "--not-doc", "gard*"), 3, "left by doc 'gardening' and not_doc 'gard*'"),
        (("--pages", "three"), 2, "the filter pages has 'three', which is not pages"),
        (("--until", "soon"), 2, "the filter until has 'soon', which is not a time"),
        (("--since", "2027", "--until", "2026"), 2, "since '2027' is after until '2026'"),
        (("--doc", ""), 2, "--doc is empty"),
    ],
)
def test_what_fits_nothing_is_told(call: Call, filled: Path, options: tuple[str, ...], code: int, message: str) -> None:
    for command in ("ask", "search"):
        ran = call(command, "housing", *options, "--index", str(filled))
        assert (ran.code, ran.out) == (code, "")
        assert message in ran.err
        assert call(command, "housing", *options, "--json", "--index", str(filled)).document["exit_code"] == code
