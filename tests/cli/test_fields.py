"""--fields and --no-text: what of a command's JSON is printed, and that a page's text is in it once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.fields import Shape, shape_for
from cli.schemas import fields_below
from research.errors import UsageError
from tests.in_process import Ran

Call = Callable[..., Ran]

DOCUMENT = {
    "schema": "x",
    "a": {"b": 1, "c": {"d": 2, "e": 3}},
    "list": [{"b": 1, "c": 2}, {"b": 3}],
    "none": None,
    "text": "t",
}


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        (("text",), {"text": "t"}),
        (("a.b",), {"a": {"b": 1}}),
        (("a.c.e", "text"), {"a": {"c": {"e": 3}}, "text": "t"}),
        (("a.c", "a.c.e"), {"a": {"c": {"d": 2, "e": 3}}}),
        (("list.c",), {"list": [{"c": 2}, {}]}),
        (("none.b",), {"none": None}),
        (("nowhere",), {}),
    ],
)
def test_what_is_named_is_kept(kept: tuple[str, ...], left: dict[str, Any]) -> None:
    assert Shape(kept).of(DOCUMENT) == {"schema": "x", **left}


def test_what_is_left_out_is_gone_wherever_it_stands() -> None:
    shaped = Shape(left_out=("a.c.d", "list.b", "text", "none.b")).of(DOCUMENT)
    assert shaped == {"schema": "x", "a": {"b": 1, "c": {"e": 3}}, "list": [{"c": 2}, {}], "none": None}
    assert Shape(("a", "list"), ("a.b",)).of(DOCUMENT)["a"] == {"c": {"d": 2, "e": 3}}
    assert Shape().of(DOCUMENT) == DOCUMENT


def asked(call: Call, filled: Path, *options: str) -> dict[str, Any]:
    ran = call("ask", "housing bubble", "--json", "--index", str(filled), *options)
    assert ran.code == 0, ran.err
    return ran.document


def test_a_page_is_in_the_document_once(call: Call, filled: Path) -> None:
    ran = call("ask", "housing bubble", "--json", "--index", str(filled))
    assert ran.out.count("Regulators answered with stress tests for banks.") == 1 + sum(
        "Regulators answered" in passage["text"] for s in ran.document["sources"] for passage in s["passages"]
    )
    assert "markdown_content" not in ran.document["sources"][0]
    [first, *_] = asked(call, filled, "--fields", "sources.citation,sources.markdown_content")["sources"]
    assert first == {"citation": 1, "markdown_content": first["markdown_content"]}
    assert first["markdown_content"].startswith("## Causes")


def test_without_text_nothing_of_a_page_is_left(call: Call, filled: Path) -> None:
    document = asked(call, filled, "--no-text")
    assert "formatted_text" not in document
    assert {"query", "quotes", "total_tokens", "dropped"} <= set(document)
    for source in document["sources"]:
        assert "markdown_content" not in source
        assert all("text" not in passage and "box" in passage for passage in source["passages"])
    assert all("text" not in quote and "citation" in quote for quote in document["quotes"])
    results = call("search", "housing", "--json", "--no-text", "--index", str(filled)).document["results"]
    assert results
    assert all("snippet" not in result and "page" in result for result in results)


def test_fields_of_both_commands(call: Call, filled: Path) -> None:
    document = asked(call, filled, "--fields", " total_tokens , sources.legs.lexical.score,coverage.legs.name")
    assert set(document) == {"schema", "total_tokens", "sources", "coverage"}
    assert set(document["sources"][0]["legs"]["lexical"]) == {"score"}
    assert {"name": "dense"} in document["coverage"]["legs"]
    ran = call("search", "housing", "--json", "--fields", "results.ref,results.link", "--index", str(filled))
    assert all(set(result) == {"ref", "link"} for result in ran.document["results"])
    whole = asked(call, filled, "--fields", "sources", "--no-text")["sources"][0]
    assert {"filename", "legs", "passages"} <= set(whole)
    assert "markdown_content" not in whole


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (("--fields", "sauces"), "there is no field 'sauces'", "formatted_text"),
        (("--fields", "sources.file"), "there is no field 'sources.file'", "sources.filename"),
        (("--fields", "query.text"), "there is no field 'query.text'", "query has no parts"),
        (("--fields", "sources..page"), "there is no field 'sources..page'", "sources.page"),
        (("--fields", "sources.0.page"), "there is no field", "sources.page"),
        (("--fields", " , "), "--fields needs names", "sources.filename"),
        (("--fields", "formatted_text", "--no-text"), "--no-text leaves out formatted_text", "one of the two"),
    ],
)
def test_names_that_it_has_not(call: Call, filled: Path, options: tuple[str, ...], message: str, hint: str) -> None:
    ran = call("ask", "housing", "--json", "--index", str(filled), *options)
    assert (ran.code, ran.document["exit_code"]) == (2, 2)
    assert message in ran.document["error"]
    assert hint in ran.document["hint"]


@pytest.mark.parametrize("option", [("--fields", "query"), ("--no-text",)])
@pytest.mark.parametrize("command", ["ask", "search"])
def test_they_are_about_json(call: Call, filled: Path, command: str, option: tuple[str, ...]) -> None:
    ran = call(command, "housing", "--index", str(filled), *option)
    assert (ran.code, ran.out) == (2, "")
    assert "add --json" in ran.err


def test_every_field_of_the_schema_can_be_named() -> None:
    for command in ("ask", "search"):
        names = [(command, name) for name in fields_below(command, "") or ()]
        for each, name in names:
            below = fields_below(each, name) or ()
            shape_for(each, ",".join([name, *(f"{name}.{part}" for part in below)]), no_text=False, as_json=True)
    with pytest.raises(UsageError):
        shape_for("search", "sources", no_text=False, as_json=True)
