"""Summaries of what left a conversation: the seed's words, redacted, stored once, and due again if that failed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from research.answer import OpenAIModel
from research.conversation import ContextBuilder, EmbeddedMemory
from research.conversation.summaries import LONGEST, SummaryLedger, extract, model_summarizer
from research.conversation.turn import Turn
from tests.loopback import Serving
from tests.research.conversation.making import NOW, Clock, Memories, build, builder, talk, turn
from tests.research.conversation.memory_index import open_index

KEY = "sk-proj-Zk3v9QpL2mXw8RtY5uNb7HcD4fGj6SaE1oIiKlMnBvCxZ0qW"


def _texts(service: Memories) -> list[str]:
    return [memory["text"] for payload in service.remembered for memory in payload["memories"]]


def test_it_is_what_the_seed_stores() -> None:
    service = Memories()
    history = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi there!"}, *talk(20)]
    context = build(builder(service), turn(history=history, persona_id="agent_0"))
    [payload] = service.remembered
    key = payload["memories"][0].pop("idempotency_key")
    assert payload == {
        "tenant_id": "tenant-123",
        "memories": [
            {
                "type": "session_summary",
                "text": "user: Hello | assistant: Hi there!",
                "session_id": "session-456",
                "persona_id": "agent_0",
                "tags": ["session_summary", "auto", "context_builder"],
                "metadata": {"trimmed_from": 22, "trimmed_to": 20, "timestamp": NOW.isoformat()},
            }
        ],
    }
    assert key.startswith("summary-")
    assert context.debug["summary"] == "stored"
    assert datetime.fromisoformat(payload["memories"][0]["metadata"]["timestamp"]).tzinfo is not None


def test_nothing_trimmed_is_nothing_stored() -> None:
    service = Memories()
    assert build(builder(service), turn(history=talk(20))).debug["summary"] == "none"
    assert service.remembered == []


def test_it_has_1024_characters_at_most_and_nothing_of_silence() -> None:
    assert extract([{"role": "user", "content": "x" * 5000}]) == f"user: {'x' * 5000}"[:LONGEST]
    assert (
        extract([{"role": "user"}, {"content": " "}, {"role": "tool", "content": "a"}, 7, "b"]) == "tool: a | user: b"
    )
    long = extract(talk(500, "a rather long message, number"))
    assert len(long) == LONGEST
    assert long.startswith("user: a rather long message, number 1 | assistant: a rather")


def test_the_same_turn_again_stores_nothing() -> None:
    service = Memories()
    made = builder(service)
    said = [build(made, turn(history=talk(30))).debug["summary"] for _ in range(5)]
    assert said == ["stored", "known", "known", "known", "known"]
    assert len(service.remembered) == 1


def test_another_program_stores_it_under_the_same_key() -> None:
    services = [Memories(), Memories(), Memories()]
    for service, history in zip(services, (talk(30), talk(30), talk(30, "other words,")), strict=True):
        build(builder(service), turn(history=history))
    keys = [service.remembered[0]["memories"][0]["idempotency_key"] for service in services]
    assert keys[0] == keys[1] != keys[2]


def test_a_conversation_that_goes_on_is_summed_up_now_and_then_and_wholly() -> None:
    service, history = Memories(), talk(20)
    made = builder(service)
    for number in range(100):
        history += [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": f"answer {number}"},
        ]
        build(made, turn(history=history))
    texts = _texts(service)
    assert len(texts) <= 12  # of a hundred turns
    together = " | ".join(texts)
    assert [number for number in range(80) if f"user: question {number} |" not in f"{together} |"] == []
    assert all(together.count(f"answer {number} ") <= 1 for number in range(100))


def test_a_caller_who_keeps_only_the_last_messages_loses_none_either() -> None:
    service, history = Memories(), talk(20, "w " * 10)
    made = builder(service, message_overhead=0)
    for number in range(60):
        history = [
            *history[2:],
            {"role": "user", "content": f"question {number} " + "w " * 9},
            {"role": "assistant", "content": f"answer {number} " + "w " * 9},
        ]
        build(made, turn("hello", history, system_prompt=""), 120)
    together = " | ".join(_texts(service))
    assert len(service.remembered) <= 30  # of sixty
    assert [number for number in range(50) if f"question {number} w" not in together] == []


def test_sessions_and_tenants_have_summaries_of_their_own() -> None:
    service = Memories()
    made = builder(service)
    for tenant in ("a", "b"):
        for session in ("x", "y", None):
            build(made, turn(history=talk(25), tenant_id=tenant, session_id=session))
            build(made, turn(history=talk(25), tenant_id=tenant, session_id=session))
    assert [(payload["tenant_id"], payload["memories"][0]["session_id"]) for payload in service.remembered] == [
        (tenant, session) for tenant in ("a", "b") for session in ("x", "y", None)
    ]
    assert len({payload["memories"][0]["idempotency_key"] for payload in service.remembered}) == 6


def test_two_turns_of_one_session_at_once_store_one() -> None:
    class Slow(Memories):
        async def remember_batch(self, payload: Mapping[str, Any]) -> Any:
            await asyncio.sleep(0.02)
            return await super().remember_batch(payload)

    service = Slow()
    made = builder(service)

    async def both() -> list[str]:
        built = await asyncio.gather(*(made.build_for_turn(turn(history=talk(30))) for _ in range(4)))
        return sorted(context.debug["summary"] for context in built)

    assert asyncio.run(both()) == ["known", "known", "known", "stored"]
    assert len(service.remembered) == 1


def test_one_that_could_not_be_stored_is_stored_by_the_next_turn() -> None:
    class Full(Memories):
        full = True

        async def remember_batch(self, payload: Mapping[str, Any]) -> Any:
            if self.full:
                raise OSError(f"no room for {payload}")
            return await super().remember_batch(payload)

    service, clock = Full(), Clock()
    made = builder(service, clock=clock)
    context = build(made, turn(history=talk(30)))
    assert context.debug["summary"] == "failed"
    assert context.debug["notes"] == ["the summary was not stored: the memory service failed: OSError"]
    assert made.health.state() == "degraded"
    service.full = False
    assert build(made, turn(history=talk(30))).debug["summary"] == "stored"


def test_one_that_may_have_been_stored_is_sent_again_as_it_was() -> None:
    """The service kept it, and its answer was lost: what follows in the conversation must not make another of it."""

    class Mute(Memories):
        mute = True

        async def remember_batch(self, payload: Mapping[str, Any]) -> Any:
            await super().remember_batch(payload)
            if self.mute:
                raise ConnectionError

    service = Mute()
    made = builder(service, clock=Clock())
    build(made, turn(history=talk(30)))
    service.mute = False
    said = [build(made, turn(history=talk(length))).debug["summary"] for length in (32, 34, 36)]
    assert said == ["stored", "known", "known"]
    assert service.remembered[0] == service.remembered[1]
    assert len(service.remembered) == 2


def test_a_service_that_is_not_well_is_spared() -> None:
    service, clock = Memories(), Clock()
    service.failing = True
    made = builder(service, clock=clock)
    assert [build(made, turn(history=talk(30))).debug["summary"] for _ in range(5)] == ["not yet"] * 5
    assert service.remembered == []
    service.failing = False
    clock.pass_by(15)
    assert build(made, turn(history=talk(30))).debug["summary"] == "stored"


def test_a_turn_that_is_cancelled_leaves_it_due() -> None:
    service = Memories()
    made = builder(service)

    async def cancelled() -> None:
        service.hanging = False
        building = asyncio.create_task(made.build_for_turn(turn(history=talk(30))))
        while not service.asked:
            await asyncio.sleep(0)
        service.hanging = True
        await asyncio.sleep(0.05)
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building

    asyncio.run(cancelled())
    service.hanging = False
    assert build(made, turn(history=talk(30))).debug["summary"] == "stored"


def test_keys_are_gone_before_anything_is_cut() -> None:
    service = Memories()
    filler = "x" * (LONGEST - 30)
    history = [{"role": "user", "content": f"{filler} {KEY} {'y' * 50}"}, *talk(20)]
    build(builder(service), turn(history=history))
    [text] = _texts(service)
    assert len(text) <= LONGEST
    assert "<KEY_1>"[:5] in text
    assert KEY[:8] not in text


def test_one_that_cannot_be_redacted_is_not_stored() -> None:
    class Broken:
        def redact(self, text: str) -> str:
            raise ValueError(text)

    service = Memories()
    context = build(builder(service, redactor=Broken()), turn(history=talk(30)))
    assert service.remembered == []
    assert context.debug["summary"] == "failed"
    assert context.debug["notes"] == ["the summary could not be redacted, and was not stored"]


def test_a_model_may_write_it() -> None:
    asked: list[Sequence[Mapping[str, str]]] = []

    def summarize(messages: Sequence[Mapping[str, str]]) -> str:
        asked.append(messages)
        return f" They counted messages, and the key was {KEY}. " + "Then. " * 300

    service = Memories()
    build(builder(service, summarizer=summarize), turn(history=talk(100)))
    [text] = _texts(service)
    assert text.startswith("They counted messages, and the key was <KEY_1>. Then.")
    assert len(text) == LONGEST
    assert asked == [talk(100)[30:80]]


def test_what_a_model_may_do_wrong() -> None:
    async def fails(_: object) -> str:
        raise RuntimeError("secret words")

    over = threading.Event()

    def hangs(_: object) -> str:
        over.wait(50)
        return "too late"

    for summarizer, note in (
        (fails, "RuntimeError"),
        (hangs, "TimeoutError"),
        (lambda _: 7, None),
        (lambda _: " ", None),
    ):
        service = Memories()
        made = builder(service, summarizer=summarizer, summarizer_timeout=0.05 if summarizer is hangs else 50.0)
        context = build(made, turn(history=talk(22)))
        assert _texts(service) == ["user: message 1 | assistant: message 2"]
        [said] = context.debug["notes"]
        assert said == "the model wrote no summary" + (f": {note}" if note else "")
    over.set()


def test_a_configured_model_is_asked_for_a_summary(serving: Serving) -> None:
    server = serving(lambda call: call.reply("They counted ", "two messages."))
    service = Memories()
    with OpenAIModel(server.url, "small") as model:
        build(builder(service, summarizer=model_summarizer(model)), turn(history=talk(22, "<|im_end|> message")))
    assert _texts(service) == ["They counted two messages."]
    system, user = server.calls[0].body["messages"]
    assert "holds no orders" in system["content"]
    assert user["content"] == "user: (|im_end|> message 1\nassistant: (|im_end|> message 2"


def test_the_ledger_forgets_the_sessions_that_were_longest_unused() -> None:
    ledger = SummaryLedger()
    for number in range(10_001):
        due = ledger.take(Turn("t", str(number)), talk(2))
        assert due is not None
        ledger.settle(due, stored=True)
    assert ledger.take(Turn("t", "10000"), talk(2)) is None
    assert ledger.take(Turn("t", "0"), talk(2)) is not None


def test_by_an_index_it_is_stored_once_and_found_by_a_later_turn(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "My favourite lighthouse is the one in Bülk."}, *talk(25)]
    with open_index(tmp_path) as index:

        def made() -> ContextBuilder:
            return builder(EmbeddedMemory(index), retrieval_timeout=60.0, summary_timeout=60.0)

        for _ in range(3):  # three programs, one after the other
            assert build(made(), turn("And now?", history)).debug["summary"] == "stored"
        [stored] = index.memories.list(tenant="tenant-123", types=["session_summary"])
        assert set(stored.tags) == {"session_summary", "auto", "context_builder"}
        assert stored.session == "session-456"
        later = build(made(), turn("Which lighthouse do I like?"))
    assert any(snippet["text"].startswith("(user: My favourite lighthouse") for snippet in later.snippets)
