"""Turns with the memory of an index in place of a service: real store, real encoder, no server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from research.context import TokenCounter
from research.conversation import ContextBuilder, ContextBuilderMetrics, EmbeddedMemory
from research.index import Index
from tests.research.conversation.making import talk, turn


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index(tmp_path_factory.mktemp("memory") / "index") as index:
        index.memories.remember_batch(
            [
                {"text": "Ana lives in Kiel, near the harbour.", "metadata": {"source": "conversation"}},
                {"text": "Ana's dog is called Rex."},
                {"text": "The harvest of 1846 failed in most of Ireland."},
            ],
            tenant="tenant-123",
        )
        index.memories.remember("Ana lives in Rome, says another tenant.", tenant="other")
        yield index


def _builder(index: Index, **settings: Any) -> ContextBuilder:
    return ContextBuilder(
        somabrain=EmbeddedMemory(index),
        metrics=ContextBuilderMetrics(),
        token_counter=TokenCounter().count,
        retrieval_timeout=60.0,
        summary_timeout=60.0,
        **settings,
    )


def _build(made: ContextBuilder, envelope: dict[str, Any]) -> Any:
    return asyncio.run(made.build_for_turn(envelope))


def test_a_turn_remembers_what_was_told(index: Index) -> None:
    made = _builder(index)
    asyncio.run(made.warm_up())
    context = _build(made, turn("Where does Ana live?"))
    assert context.messages[-2]["content"].startswith("Relevant memory:\n[1] (conversation)\nAna lives in Kiel")
    assert "Rome" not in str(context.to_dict())
    assert context.debug["retrieval"]["status"] == "ok"
    assert all(0.0 <= snippet["base_score"] <= 1.0 for snippet in context.snippets)
    assert context.snippets[0]["recency"] > 0.99


def test_a_summary_is_stored_once_and_found_by_a_later_turn(index: Index) -> None:
    history = [{"role": "user", "content": "My favourite lighthouse is the one in Bülk."}, *talk(25)]
    for _ in range(3):  # three programs, one after the other
        context = _build(_builder(index), turn("And now?", history))
        assert context.debug["summary"] == "stored"
    stored = list(index.memories.list(tenant="tenant-123", types=["session_summary"]))
    assert len(stored) == 1
    assert set(stored[0].tags) == {"session_summary", "auto", "context_builder"}
    assert stored[0].session == "session-456"
    later = _build(_builder(index), turn("Which lighthouse do I like?"))
    assert any(snippet["text"].startswith("(user: My favourite lighthouse") for snippet in later.snippets)


def test_an_index_that_is_not_there_yet_is_an_empty_memory(tmp_path: Path) -> None:
    with Index(tmp_path / "none") as index:
        context = _build(_builder(index), turn())
    assert context.debug["retrieval"] == {"status": "ok", "reason": "", "candidates": 0}


def test_names_that_an_index_does_not_take_stop_nobody_else(index: Index) -> None:
    made = _builder(index)
    for _ in range(4):
        context = _build(made, turn(session_id="two\nlines"))
        assert context.debug["retrieval"]["reason"] == "the memory service refused the turn"
    assert made.health.state() == "normal"
    assert _build(made, turn("Where does Ana live?")).snippets
