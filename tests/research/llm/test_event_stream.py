"""Server-sent events, cut anywhere, are the same events; fields of the wrong type are none."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.errors import ModelProtocolError
from research.llm.chat import Chunk, EventDecoder, Usage, chunk_of, parse_event
from tests.pace import draws

STREAM = (
    ': comment\r\n\r\ndata: {"a": 1}\r\n\r\nevent: x\ndata: two\ndata:lines\n\n\n\nid: 5\rdata: grün\r\r'
    "retry: 3\n\ndata\n\ndata: last"
).encode()
EVENTS = ['{"a": 1}', "two\nlines", "grün", "", "last"]


def decoded(*pieces: bytes) -> list[str]:
    decoder = EventDecoder()
    found = [event for piece in pieces for event in decoder.feed(piece)]
    return [*found, *decoder.end()]


def test_a_stream_is_taken_apart() -> None:
    assert decoded(STREAM) == EVENTS


@draws(60)
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_wherever_it_is_cut(places: list[int]) -> None:
    cuts = [0, *sorted(places), len(STREAM)]
    assert decoded(*(STREAM[a:b] for a, b in pairwise(cuts))) == EVENTS


def test_bytes_that_are_no_text_break_nothing() -> None:
    assert decoded(b"data: \xff\xfe\n\n") == ["\ufffd\ufffd"]


@pytest.mark.parametrize("data", ["", "x", "[1]", "null", "3", '"text"', "[" * 100_000, '{"a": NaN, '])
def test_what_is_no_object_is_an_error(data: str) -> None:
    with pytest.raises(ModelProtocolError):
        parse_event(data)


@pytest.mark.parametrize(
    ("event", "chunk"),
    [
        ({"choices": [{"delta": {"content": "a"}, "finish_reason": None}]}, Chunk("a")),
        ({"choices": [{"delta": {}, "finish_reason": "length"}]}, Chunk(finish_reason="length")),
        ({"choices": [{"message": {"content": "all"}, "finish_reason": "stop"}]}, Chunk("all", "stop")),
        ({"choices": [{"text": "old"}]}, Chunk("old")),
        ({"choices": [{"delta": {"content": [{"type": "text", "text": "a"}, {"type": "x"}, 5]}}]}, Chunk("a")),
        ({"choices": [{"delta": {"refusal": "I will not."}}]}, Chunk("I will not.")),
        ({"choices": [{"delta": {"reasoning": "hm"}}]}, Chunk(thought=True)),
        (
            {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}},
            Chunk(usage=Usage(5, 2)),
        ),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 2}}, Chunk(usage=Usage(5, 2))),
        ({"choices": [], "usage": {"prompt_tokens": "many", "completion_tokens": -2}}, Chunk()),
        ({"choices": [{"delta": {"content": 5}, "finish_reason": 7}]}, Chunk()),
        ({"choices": ["text"]}, Chunk()),
        ({"choices": [{"delta": "text"}]}, None),
        ({"choices": "text"}, None),
        ({"type": "ping"}, None),
    ],
)
def test_an_event_is_a_chunk_or_nothing(event: object, chunk: Chunk | None) -> None:
    assert chunk_of(parse_event(json.dumps(event))) == chunk
