"""One question through every door: the same fields, the same check, the same words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from research.errors import UsageError
from research.filters import Filters
from research.request import DOORS, FILTERS, AskRequest, input_schema, parameters_of, read_request


def question_of(door: str) -> dict[str, Any]:
    name = next((each.name for each in parameters_of(door) if each.field == "question"), "")
    return {name: "a"} if name else {}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_takes_its_question_alone(door: str) -> None:
    more = {} if question_of(door) else {"question": "a"}
    assert read_request(door, question_of(door), **more) == AskRequest("a")
    Draft202012Validator.check_schema(input_schema(parameters_of(door)))


def test_every_filter_is_one() -> None:
    assert [each.name for each in FILTERS] == [each.name for each in fields(Filters)]


@pytest.mark.parametrize("door", DOORS)
def test_what_is_misspelt_is_told_with_the_nearest(door: str) -> None:
    for parameter in parameters_of(door):
        if len(parameter.name) > 5:
            with pytest.raises(UsageError) as caught:
                read_request(door, question_of(door) | {parameter.name[:-1]: 1}, question="a")
            assert caught.value.hint == f"did you mean {parameter.name}?"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("max_tokens", 0, "0 is too small; the least is 1"),
        ("max_sources", "many", "must be a whole number, not 'many'"),
        ("num_results", True, "must be a whole number, not true"),
        ("mode", "psychic", "mode cannot be 'psychic'"),
        ("min_score", 2, "min_score cannot be 2"),
        ("min_confidence", "sure", "min_confidence cannot be 'sure'"),
        ("types", ["dreams"], "cannot be 'dreams'"),
        ("types", [], "is empty"),
        ("session", "a\0", "has a NUL"),
        ("session", 7, "must be a text, not 7"),
        ("filters.documents", [7], "must be a list of texts, not 7"),
        ("filters.tags", ["a", " "], "is empty"),
        ("filters.pages", 2.5, "must be a text, a number or a list of these, not 2.5"),
        ("filters.pages", "three", "which is not pages"),
        ("filters.since", ["2026", "2027"], "must be a text, not ['2026', '2027']"),
        ("filters.until", "x" * 39, "which is not a time"),
        ("question", "x" * 20_001, "20,001 characters"),
    ],
)
def test_what_is_wrong_is_told_alike_at_every_door(field: str, value: Any, message: str) -> None:
    doors = [door for door in DOORS if any(each.field == field for each in parameters_of(door))]
    assert doors
    for door in doors:
        name = next(each.name for each in parameters_of(door) if each.field == field)
        more = {} if question_of(door) else {"question": "a"}
        with pytest.raises(UsageError) as caught:
            read_request(door, question_of(door) | {name: value}, **more)
        assert message in caught.value.message, door
        assert caught.value.hint
        assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("door", "given", "wanted"),
    [
        (
            "batch",
            {
                "question": "a", "doc": "a", "not_doc": ["b", "c"], "under": "f", "pages": [3, "5-7"], "since": "2026",
                "until": "2027", "tag": ["x"], "max_tokens": "5",
            },
            AskRequest("a", max_tokens=5, filters=Filters(
                ("a",), ("b", "c"), ("f",), pages="3,5-7", since="2026", until="2027", tags=("x",)
            )),
        ),
        (
            "POST ask",
            {"query": " a ", "filters": {"under": [], "tags": "x"}, "documents": [], "max_tokens": 5.0, "turn": None},
            AskRequest("a", max_tokens=5, documents=(), filters=Filters(tags=("x",))),
        ),
        ("POST ask", {"query": "a", "filters": {}}, AskRequest("a")),
        ("tool ask", {"question": "a", "documents": [], "types": "code, values"},
         AskRequest("a", types=("code", "values"))),
        ("ctx context", {"types": "code,", "same_file": True, "limit": "3"},
         AskRequest("a", types=("code",), same_file=True, limit=3)),
    ],
)  # fmt: skip
def test_what_can_only_mean_one_thing_is_taken_for_it(door: str, given: Mapping[str, Any], wanted: AskRequest) -> None:
    more = {} if question_of(door) else {"question": "a"}
    assert read_request(door, given, **more) == wanted


def test_options_are_named_as_they_are_typed() -> None:
    with pytest.raises(UsageError, match=r"^--not-doc is empty"):
        read_request("ctx ask", {"not_doc": [""]}, question="a")
    with pytest.raises(UsageError, match=r"^--min-score: "):
        read_request("ctx search", {"min_score": "7"}, question="a")
