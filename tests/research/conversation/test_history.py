"""Histories as they come: long, odd, with calls of tools. Only their end is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from research.conversation.turn import text_of, window
from tests.research.conversation.making import Memories, build, builder, talk, turn


class _Counted(Sequence[Any]):
    """A history that knows how much of it was read."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self.messages, self.read = messages, 0

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return _Counted(self.messages[at])
        self.read += 1
        return self.messages[at]


def test_of_a_hundred_thousand_messages_the_last_twenty_are_read() -> None:
    for messages, read, kept in ((talk(100_000), 20, 20), ([{"role": "user", "content": " "}] * 100_000, 20 * 51, 0)):
        history = _Counted(messages)
        assert [each.message["content"] for each in window(history).entries] == [
            f"message {number}" for number in range(100_001 - kept, 100_001)
        ]
        assert history.read <= read
    service = Memories()
    context = build(builder(service), turn(history=talk(100_000)))
    assert context.debug["history"] == {"given": 100_000, "considered": 20, "odd": {}}
    [memory] = service.remembered[0]["memories"]
    assert memory["text"].startswith("user: message 1 | assistant: message 2 | ")
    assert memory["metadata"]["trimmed_from"] == 100_000


def test_history_limit_is_a_setting() -> None:
    for limit, kept in ((0, 0), (3, 3), (50, 30)):
        assert build(builder(Memories(), history_limit=limit), turn(history=talk(30))).debug["history_count"] == kept


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("text", "text"),
        (b"bytes \xff", "bytes �"),
        (42, "42"),
        (
            [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:…"}}],
            "look\n[image_url]",
        ),
        (["one", {"text": "two"}, None, 3, {}], "one\ntwo"),
        ({"type": "text", "text": "alone"}, "alone"),
    ],
)
def test_any_content_is_text(content: Any, text: str) -> None:
    assert text_of(content) == text


def test_odd_entries_are_passed_over_or_mended_and_told() -> None:
    history = [
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "moderator", "content": "order!"},
        {"content": "nobody said"},
        {"role": 7, "content": ["a", "b"]},
        None,
        17,
        "just words",
        {"role": " Assistant ", "content": "yes", "name": "bot", "secret_field": "x"},
    ]
    context = build(builder(Memories()), turn(history=history))
    assert context.history == [
        {"role": "user", "content": "order!"},
        {"role": "user", "content": "nobody said"},
        {"role": "user", "content": "a\nb"},
        {"role": "user", "content": "just words"},
        {"role": "assistant", "content": "yes", "name": "bot"},
    ]
    assert context.debug["history"]["odd"] == {"not_a_message": 2, "without_content": 2, "unknown_role": 3}


CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q": "Kiel"}'}}


def test_calls_of_tools_stay_with_their_answers() -> None:
    history = [
        {"role": "tool", "content": "lost answer", "tool_call_id": "call_0"},
        {"role": "user", "content": "find it"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "found", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "Here it is."},
    ]
    context = build(builder(Memories()), turn(history=history))
    assert context.history == [
        {"role": "user", "content": "find it"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "found", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "Here it is."},
    ]
    assert context.debug["history"]["odd"] == {"tool_without_call": 1}


def test_a_call_and_its_answers_are_kept_or_left_out_together() -> None:
    history = [
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "word " * 30, "tool_call_id": "call_1"},
        {"role": "tool", "content": "two", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "Here it is."},
    ]
    made = builder(Memories(), message_overhead=0)
    small = build(made, turn("hello", history, system_prompt=""), 30)
    assert [message["content"] for message in small.history] == ["Here it is."]
    large = build(made, turn("hello", history, system_prompt=""), 60)
    assert len(large.history) == 4
    assert large.token_counts["history"] > 30 + 1 + 3  # what is called costs, too


def test_a_call_that_nobody_answered_is_taken_off() -> None:
    history = [
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
        {"role": "assistant", "content": None, "tool_calls": [CALL, "nonsense"]},
    ]
    assert build(builder(Memories()), turn(history=history)).history == [{"role": "assistant", "content": "I look."}]


@pytest.mark.parametrize("history", [None, (), [], iter(talk(2)), "hello", {"role": "user", "content": "hello"}, 5])
def test_anything_may_stand_for_a_history(history: Any) -> None:
    context = build(builder(Memories()), turn(history=history))
    assert context.debug["history_count"] in (0, 1, 2)
