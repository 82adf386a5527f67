"""The lines of a batch: what each asks, and why it cannot be asked."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.batch import Line, parse_line, read_lines
from cli.call import open_file
from research.errors import UsageError
from research.filters import Filters
from research.request import AskRequest, parameters_of

ALL = AskRequest("", max_tokens=9, filters=Filters(documents=("all.pdf",), tags=("old",)))  # of all lines


def asked(raw: bytes | str) -> Line:
    return parse_line(1, raw.encode() if isinstance(raw, str) else raw, ALL)


def question_of(line: Line) -> str:
    return line.request.question if line.request else ""


@pytest.mark.parametrize(
    ("raw", "question"),
    [
        ("What caused it?\n", "What caused it?"),
        ("  spaces around \r\n", "spaces around"),
        ("Wer haftet für Schäden? 住宅ローン", "Wer haftet für Schäden? 住宅ローン"),
        ('"quoted"', '"quoted"'),
        ("[1] says what?", "[1] says what?"),
        ('{"question": "a"}', "a"),
        ('{"query": " a "}', "a"),
        ('{"question": "\\ud800 lone"}', "\ufffd lone"),
    ],
)
def test_a_line_is_a_question(raw: str, question: str) -> None:
    line = asked(raw)
    assert (line.error, line.request, line.id) == (None, replace(ALL, question=question), None)


def test_an_object_may_say_more() -> None:
    line = asked(
        '{"question": "a", "id": "q-7", "max_tokens": 500, "max_sources": 2, "num_results": 3, "mode": "lexical",'
        ' "doc": ["x", "y"], "not_doc": "z", "under": "f", "pages": "3-5", "since": "2026", "until": null, "tag": "t"}'
    )
    assert (line.error, line.id) == (None, "q-7")
    wanted = Filters(("x", "y"), not_documents=("z",), under=("f",), pages="3-5", since="2026", tags=("t",))
    assert line.request == AskRequest(
        "a", max_tokens=500, max_sources=2, num_results=3, mode="lexical", filters=wanted
    )  # each in place of what holds for all lines


def test_a_filter_takes_the_place_of_the_one_of_its_name() -> None:
    line = asked('{"question": "a", "doc": "x"}')
    assert line.request == replace(ALL, question="a", filters=Filters(("x",), tags=("old",)))


@pytest.mark.parametrize("given_id", ["a", "", 0, -7, 2.5, 10**30])
def test_an_id_comes_back_as_it_was(given_id: object) -> None:
    assert asked(json.dumps({"question": "a", "id": given_id})).id == given_id


@pytest.mark.parametrize(
    ("raw", "known_id", "message"),
    [
        ("", None, "the question is empty"),
        (" \t\r\n", None, "the question is empty"),
        ("{}", None, "the question is empty"),
        ('{"question": " ", "id": 3}', 3, "the question is empty"),
        ('{"question": "a", "id": 3', None, "begins with { but is no JSON"),
        ("{" * 100_000, None, "is no JSON"),
        ('{"question": ' + "[" * 100_000, None, "nested too deeply"),
        ('{"question": "a", "id": ' + "9" * 5_000 + "}", None, "a number in it is too long"),
        ('["a"]', None, "a JSON array"),
        ('{"question": "a", "id": 3, "max_token": 5}', 3, "there is no 'max_token' here"),
        ('{"question": "a", "query": "b"}', None, "the same key"),
        ('{"question": 7, "id": 3}', 3, "question must be a text"),
        ('{"question": ["a"]}', None, "question must be a text"),
        ('{"question": "a", "id": true}', None, "id must be a text or a number"),
        ('{"question": "a", "id": {}}', None, "id must be a text or a number"),
        ('{"question": "a", "id": 1e999}', None, "id must be a text or a number"),
        ('{"question": "a", "id": NaN}', None, "id must be a text or a number"),
        ('{"question": "a", "id": 3, "max_tokens": 0}', 3, "max_tokens: 0 is too small"),
        ('{"question": "a", "id": 3, "max_tokens": "many"}', 3, "max_tokens must be a whole number"),
        ('{"question": "a", "id": 3, "doc": []}', 3, "doc is empty"),
        ('{"question": "a", "id": 3, "tag": ["x", " "]}', 3, "tag is empty"),
        ('{"question": "a", "id": 3, "pages": "three"}', 3, "which is not pages"),
        ('{"question": "a", "id": 3, "since": ["2026"]}', 3, "since must be a text"),
        ('{"question": "a", "id": 3, "max_tokens": 2.5}', 3, "max_tokens must be a whole number"),
        ('{"question": "a", "id": 3, "max_tokens": true}', 3, "max_tokens must be a whole number"),
        ('{"question": "a", "id": 3, "num_results": [1]}', 3, "num_results must be a whole number"),
        ('{"question": "a", "id": 3, "mode": "telepathic"}', 3, "mode cannot be 'telepathic'"),
        (b"na\xefve question", None, "the line is not UTF-8: byte 0xef at 3"),
        ("\ufeffquestion".encode("utf-16"), None, "the line is not UTF-8"),
    ],
)
def test_a_line_that_cannot_be_asked_says_why(raw: bytes | str, known_id: object, message: str) -> None:
    line = asked(raw)
    assert isinstance(line.error, UsageError)
    assert message in line.error.message
    assert line.error.hint
    assert line.id == known_id


def test_the_hint_for_an_unknown_key_names_the_nearest_or_the_known_ones() -> None:
    unlike, alike = asked('{"frage": "a", "question": "b"}').error, asked('{"question": "b", "max_token": 1}').error
    assert unlike is not None
    assert alike is not None
    assert all(each.name in unlike.hint for each in parameters_of("batch"))
    assert alike.hint == "did you mean max_tokens?"


def test_lines_are_counted_from_one_and_end_in_any_way() -> None:
    lines = list(read_lines(io.BytesIO(b"\xef\xbb\xbffirst\r\n\nthird\n\xef\xbb\xbffourth"), ALL))
    assert [(line.number, question_of(line)) for line in lines] == [
        (1, "first"), (2, ""), (3, "third"), (4, "\ufefffourth"),
    ]  # fmt: skip
    assert [line.number for line in lines if line.error] == [2]


def test_a_line_that_is_too_long_costs_only_itself() -> None:
    most = 1 << 20
    stream = io.BytesIO(b"a" * most + b"\r\n" + b"b" * (3 * most) + b"\nafter\n" + b"c" * (most + 1))
    lines = list(read_lines(stream, ALL))
    assert [bool(line.error) for line in lines] == [False, True, False, True]
    assert (len(question_of(lines[0])), question_of(lines[2])) == (most, "after")
    assert "longer than 1,048,576 bytes" in str(lines[1].error)
    assert stream.closed


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(raw: bytes) -> None:
    lines = list(read_lines(io.BytesIO(raw), ALL))
    assert len(lines) == raw.count(b"\n") + bool(raw and not raw.endswith(b"\n"))
    assert all(bool(question_of(line)) != bool(line.error) for line in lines)


@pytest.mark.parametrize(("name", "message"), [("none.txt", "No such file"), (".", "Is a directory"), ("\0", "null")])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(read_lines(open_file(str(tmp_path / name), "a hint"), ALL))
