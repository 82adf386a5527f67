"""What may be remembered: bounds, forms and times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from research.conversation.intake import checked, expiry, read_memory, sources_of
from research.errors import UsageError
from research.memories import NewMemory

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": "x" * 1_000_000}, "1,000,000 characters"),
        ({"text": "x" * 20_001}, "at most 20,000"),
        ({"text": " \n "}, "empty"),
        ({"text": 7}, "not a number"),
        ({}, "needs a text"),
        ({"text": "x", "metadata": {"a": "b" * 9_000}}, "may have 8,192"),
        ({"text": "x", "metadata": {"a": float("nan")}}, "no JSON"),
        ({"text": "x", "metadata": {"a": object()}}, "no JSON"),
        ({"text": "x", "metadata": [1]}, "must be an object"),
        ({"text": "x", "metadata": {"a": [[[[[[[[[1]]]]]]]]]}}, "deep"),
        ({"text": "x", "tags": "one"}, "list of texts"),
        ({"text": "x", "tags": ["a"] * 3 + [f"t{n}" for n in range(40)]}, "at most 32 tags"),
        ({"text": "x", "tags": [""]}, "1 to 100"),
        ({"text": "x", "importance": 1.5}, "from 0 to 1"),
        ({"text": "x", "importance": "high"}, "from 0 to 1"),
        ({"text": "x", "importance": float("nan")}, "from 0 to 1"),
        ({"text": "x", "importance": True}, "from 0 to 1"),
        ({"text": "x", "session": "a\nb"}, "one line"),
        ({"text": "x", "session": "s" * 201}, "one line"),
        ({"text": "x", "persona": ["p"]}, "must be text"),
        ({"text": "x", "created_at": "yesterday"}, "no time"),
        ({"text": "x", "expires_at": "soon"}, "no time"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        checked(read_memory(given), NOW)


def test_no_memory_is_no_object() -> None:
    for given in ("text", 7, None, ["text"]):
        with pytest.raises(UsageError, match="an object"):
            read_memory(given)  # type: ignore[arg-type]


def test_names_of_the_seeds_and_of_conversations() -> None:
    new = read_memory(
        {
            "type": "session_summary",
            "text": "user: Hello",
            "session_id": "session-456",
            "persona_id": "agent_0",
            "tags": ["session_summary", "auto"],
            "metadata": {"trimmed_from": 20, "timestamp": "2025-12-10T12:00:00Z"},
            "idempotency_key": "k",
            "tenant_id": "ignored here",
        }
    )
    assert (new.session, new.persona, new.key, new.type) == ("session-456", "agent_0", "k", "session_summary")
    assert checked(new, NOW).created_at == "2025-12-10T12:00:00.000000+00:00"
    turn = read_memory(
        {"id": "D1:3", "speaker": "Ann", "text": "Hi", "timestamp": "2023-05-08T13:56:00", "mood": "good"}
    )
    told = checked(turn, NOW)
    assert (told.id, told.speaker, told.created_at) == ("D1:3", "Ann", "2023-05-08T13:56:00.000000+00:00")
    assert told.metadata == {"mood": "good"}
    assert read_memory({"content": "as some call it"}).text == "as some call it"


def test_who_speaks() -> None:
    assert checked(NewMemory("Hi", metadata={"speaker": "Ann"}), NOW).speaker == "Ann"
    assert checked(NewMemory("Hi", metadata={"role": "user"}), NOW).speaker == "user"
    assert checked(NewMemory("Ann Lee: Hi there", session="s"), NOW).speaker == "Ann Lee"
    assert checked(NewMemory("Hi", speaker="\u0645\u06cc\u200c\u062e"), NOW).speaker == "\u0645\u06cc\u200c\u062e"
    assert checked(NewMemory("Reminder: buy milk"), NOW).speaker == "", "that is no conversation"


def test_times_are_stored_in_one_form() -> None:
    east = datetime(2026, 1, 1, 3, tzinfo=timezone(timedelta(hours=3)))
    for given in ("2026-01-01", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", east):
        assert checked(NewMemory("x", created_at=given), NOW).created_at == "2026-01-01T00:00:00.000000+00:00"
    assert checked(NewMemory("x"), NOW).created_at == "2026-11-01T12:00:00.000000+00:00"
    unreadable = NewMemory("x", metadata={"timestamp": "a while ago"})
    assert checked(unreadable, NOW).created_at == "2026-11-01T12:00:00.000000+00:00"


def test_text_that_cannot_be_stored_is_replaced() -> None:
    told = checked(NewMemory("a\0b\ud800c", metadata={"k": "\ud800"}), NOW)
    assert told.text == "a\ufffdb?c"
    assert told.metadata == {"k": "?"}


def test_how_long_something_lasts() -> None:
    assert expiry("30d", NOW) - NOW == timedelta(days=30)
    assert expiry("12 hours", NOW) - NOW == timedelta(hours=12)
    assert expiry("2w", NOW) - NOW == timedelta(weeks=2)
    assert expiry("2027-01-31", NOW) == datetime(2027, 1, 31, tzinfo=UTC)
    with pytest.raises(UsageError, match="no time"):
        expiry("later", NOW)


def test_sources_are_ids() -> None:
    assert sources_of({"sources": ["a", "b", "a", 7, ""]}) == ("a", "b")
    assert sources_of({"sources": "a"}) == sources_of({}) == ()
