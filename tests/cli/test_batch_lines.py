"""The lines of a batch: what each asks, and why it cannot be asked."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.batch_lines import KEYS, Line, open_lines, parse_line, read_lines
from research.errors import UsageError


def asked(raw: bytes | str) -> Line:
    return parse_line(1, raw.encode() if isinstance(raw, str) else raw)


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
        ('{"question": "\\ud800 lone"}', "??? lone".replace("???", "\ufffd\ufffd\ufffd")),
    ],
)
def test_a_line_is_a_question(raw: str, question: str) -> None:
    line = asked(raw)
    assert (line.error, line.question, line.id) == (None, question, None)
    assert (line.options, line.filters) == ({}, {})


def test_an_object_may_say_more() -> None:
    line = asked(
        '{"question": "a", "id": "q-7", "max_tokens": 500, "max_sources": 2, "num_results": 3, "mode": "lexical",'
        ' "doc": ["x", "y"], "not_doc": "z", "under": "f", "pages": "3-5", "since": "2026", "until": null, "tag": "t"}'
    )
    assert (line.error, line.id) == (None, "q-7")
    assert line.options == {"max_tokens": 500, "max_sources": 2, "num_results": 3, "mode": "lexical"}
    assert line.filters == {
        "doc": ["x", "y"], "not_doc": "z", "under": "f", "pages": "3-5", "since": "2026", "tag": "t",
    }  # fmt: skip


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
        ('{"question": "a", "id": 3, "max_token": 5}', 3, "unknown key 'max_token'"),
        ('{"question": "a", "query": "b"}', None, "the same key"),
        ('{"question": 7, "id": 3}', 3, "the question must be a text"),
        ('{"question": ["a"]}', None, "the question must be a text"),
        ('{"question": "a", "id": true}', None, "id must be a text or a number"),
        ('{"question": "a", "id": {}}', None, "id must be a text or a number"),
        ('{"question": "a", "id": 1e999}', None, "id must be a text or a number"),
        ('{"question": "a", "id": NaN}', None, "id must be a text or a number"),
        ('{"question": "a", "id": 3, "max_tokens": 0}', 3, "max_tokens: 0 is too small"),
        ('{"question": "a", "id": 3, "max_tokens": "500"}', 3, "max_tokens must be a whole number"),
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


def test_the_hint_for_an_unknown_key_names_the_known_ones() -> None:
    error = asked('{"frage": "a"}').error
    assert error is not None
    assert all(key in error.hint for key in KEYS)


def test_lines_are_counted_from_one_and_end_in_any_way() -> None:
    lines = list(read_lines(io.BytesIO(b"\xef\xbb\xbffirst\r\n\nthird\n\xef\xbb\xbffourth")))
    assert [(line.number, line.question) for line in lines] == [
        (1, "first"), (2, ""), (3, "third"), (4, "\ufefffourth"),
    ]  # fmt: skip
    assert [line.number for line in lines if line.error] == [2]


def test_a_line_that_is_too_long_costs_only_itself() -> None:
    most = 1 << 20
    stream = io.BytesIO(b"a" * most + b"\r\n" + b"b" * (3 * most) + b"\nafter\n" + b"c" * (most + 1))
    lines = list(read_lines(stream))
    assert [bool(line.error) for line in lines] == [False, True, False, True]
    assert (len(lines[0].question), lines[2].question) == (most, "after")
    assert "longer than 1,048,576 bytes" in str(lines[1].error)
    assert stream.closed


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(raw: bytes) -> None:
    lines = list(read_lines(io.BytesIO(raw)))
    assert len(lines) == raw.count(b"\n") + bool(raw and not raw.endswith(b"\n"))
    assert all(bool(line.question) != bool(line.error) for line in lines)


@pytest.mark.parametrize(("name", "message"), [("none.txt", "No such file"), (".", "Is a directory"), ("\0", "null")])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(read_lines(open_lines(str(tmp_path / name), quiet=True)))
