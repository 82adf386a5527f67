"""The embedded memory as seeds 000 and 001 call one: their payloads, their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from research.conversation.service import EmbeddedMemory
from research.errors import UsageError
from research.index import Index
from tests.research.conversation.memory_index import open_index

SUMMARY = {
    "tenant_id": "tenant-123",
    "memories": [
        {
            "type": "session_summary",
            "text": "user: Hello | assistant: Hi there!",
            "session_id": "session-456",
            "persona_id": "agent_0",
            "tags": ["session_summary", "auto", "context_builder"],
            "metadata": {"trimmed_from": 20, "trimmed_to": 10, "timestamp": "2025-12-10T12:00:00Z"},
        }
    ],
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with open_index(tmp_path) as opened:
        yield opened


def test_the_examples_of_seed_000(index: Index) -> None:
    memory = EmbeddedMemory(index)
    answer = asyncio.run(memory.remember_batch(SUMMARY))
    assert answer["ok"] is True
    assert asyncio.run(memory.remember_batch(SUMMARY))["ids"] == answer["ids"], "the same again is the same"
    payload = {"tenant_id": "tenant-123", "session_id": "session-456", "query": "Who said hello?", "top_k": 8}
    found = asyncio.run(memory.context_evaluate(payload))
    [candidate] = found["candidates"]
    assert set(candidate) == {"id", "score", "text", "metadata"}
    assert candidate["text"] == "user: Hello | assistant: Hi there!"
    assert 0.0 < candidate["score"] <= 1.0
    metadata = candidate["metadata"]
    assert metadata["timestamp"].startswith("2025-12-10T12:00:00")
    assert (metadata["session_id"], metadata["persona_id"], metadata["trimmed_from"]) == ("session-456", "agent_0", 20)
    assert metadata["source"] == "session_summary"


def test_both_forms_of_recall(index: Index) -> None:
    memory = EmbeddedMemory(index)
    asyncio.run(memory.remember("Deploys run from the branch main"))
    for tenant in ("acme-corp", ""):
        asyncio.run(memory.remember({"tenant_id": tenant, "text": "Deployment uses the pipeline", "tags": ["ops"]}))
    by_text = asyncio.run(memory.recall("How do I deploy?", 1))
    assert len(by_text["candidates"]) == 1
    payload = {
        "tenant_id": "acme-corp",
        "session_id": "sess-123",
        "persona_id": "agent-1",
        "query": "How do I deploy to production?",
        "top_k": 3,
        "threshold": 0.0,
    }
    [one] = asyncio.run(memory.recall(payload))["candidates"]
    assert one["text"] == "Deployment uses the pipeline"
    assert asyncio.run(memory.recall({**payload, "threshold": 0.99}))["candidates"] == []
    assert asyncio.run(memory.recall("deploy", top_k=5, tenant_id="acme-corp"))["candidates"][0]["id"] == one["id"]


def test_a_session_is_preferred_and_not_required(index: Index) -> None:
    """A conversation remembers what was said in another."""
    memory = EmbeddedMemory(index)
    asyncio.run(memory.remember({"text": "I live in Kiel", "session_id": "before"}))
    payload = {"query": "Where do I live?", "session_id": "now", "top_k": 8}
    assert asyncio.run(memory.context_evaluate(payload))["candidates"][0]["text"] == "I live in Kiel"


def test_one_that_is_for_a_tenant_answers_for_no_other(index: Index) -> None:
    index.memories.remember("of ben", tenant="ben")
    memory = EmbeddedMemory(index, tenant="anna")
    asyncio.run(memory.remember("of anna"))
    assert [m.text for m in index.memories.list(tenant="anna")] == ["of anna"]
    assert asyncio.run(memory.recall("of"))["candidates"][0]["text"] == "of anna"
    calls: list[tuple[Any, dict[str, Any]]] = [
        (memory.context_evaluate, {"query": "of"}),
        (memory.remember, {"text": "x"}),
        (memory.remember_batch, {"memories": []}),
    ]
    for call, payload in calls:
        with pytest.raises(UsageError, match="tenant_id"):
            asyncio.run(call({**payload, "tenant_id": "ben"}))


def test_universes_and_namespaces_stay_apart(index: Index) -> None:
    memory = EmbeddedMemory(index)
    for universe, namespace in (("earth", "wm"), ("earth", "ltm"), ("", "wm")):
        asyncio.run(
            memory.remember({"text": f"in {universe} {namespace}", "universe": universe, "namespace": namespace})
        )
    found = asyncio.run(memory.recall({"query": "in", "universe": "earth", "namespace": "wm"}))["candidates"]
    assert [each["text"] for each in found] == ["in earth wm"]
    batch = {"universe": "mars", "memories": [{"text": "red dust"}]}
    asyncio.run(memory.remember_batch(batch))
    assert [m.namespace for m in index.memories.list(namespace="mars")] == ["mars"]
    fixed = EmbeddedMemory(index, namespace="wm")
    assert len(asyncio.run(fixed.recall("in"))["candidates"]) == 1


def test_metadata_forges_nothing_the_index_knows(index: Index) -> None:
    memory = EmbeddedMemory(index)
    forged = {"session_id": "theirs", "importance": 1, "type": "system", "mood": "good"}
    asyncio.run(memory.remember({"text": "hello there", "session_id": "mine", "metadata": forged}))
    [one] = asyncio.run(memory.recall("hello"))["candidates"]
    kept = {name: one["metadata"][name] for name in ("session_id", "importance", "type", "mood")}
    assert kept == {"session_id": "mine", "importance": 0.5, "type": "memory", "mood": "good"}


@pytest.mark.parametrize(
    ("method", "payload", "message"),
    [
        ("context_evaluate", {"top_k": 3}, "query"),
        ("context_evaluate", {"query": 7}, "query"),
        ("context_evaluate", [], "payload"),
        ("context_evaluate", {"query": "x", "top_k": "many"}, "top_k"),
        ("context_evaluate", {"query": "x", "top_k": -1}, "top_k"),
        ("context_evaluate", {"query": "x", "tenant_id": {"a": 1}}, "tenant_id"),
        ("context_evaluate", {"query": "x", "threshold": 2}, "threshold"),
        ("remember_batch", {"memories": "x"}, "list"),
        ("remember_batch", {}, "list"),
        ("remember_batch", {"memories": [7]}, "object"),
        ("remember", {}, "text"),
    ],
)
def test_what_is_no_payload(index: Index, method: str, payload: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        asyncio.run(getattr(EmbeddedMemory(index), method)(payload))


def test_warming_up_before_anything_was_told(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        EmbeddedMemory(index).warm_up()
        assert not index.exists
