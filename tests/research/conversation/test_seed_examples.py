"""The examples of seeds 000 and 001, called as they are written there."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from typing import Any

import pytest

import research.conversation
from research.context import TokenCounter
from research.conversation import (
    BuiltContext,
    ContextBuilder,
    ContextBuilderMetrics,
    ContextResult,
    NoopRedactor,
    RedactorProtocol,
    SomaBrainClient,
    SomabrainHealthState,
)
from tests.research.conversation.making import Memories, build, builder, memory, talk, turn
from tests.serving import Reply, serving

logger = logging.getLogger(__name__)
count_tokens = TokenCounter().count


def test_the_usage_example(loopback: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 000 §8, with a service behind SA01_SOMA_BASE_URL."""
    answer = {
        "candidates": [
            {
                "id": "mem-001",
                "score": 0.92,
                "text": "Previously stored memory content",
                "metadata": {"source": "conversation", "timestamp": "2025-12-10T10:30:00Z"},
            }
        ]
    }

    async def example() -> Any:
        builder = ContextBuilder(
            somabrain=SomaBrainClient.get(),
            metrics=ContextBuilderMetrics(),
            token_counter=count_tokens,
            health_provider=lambda: SomabrainHealthState.NORMAL,
            on_degraded=lambda duration: logger.warning(f"Degraded for {duration}s"),
        )

        turn_envelope = {
            "tenant_id": "tenant-123",
            "session_id": "session-456",
            "system_prompt": "You are a helpful assistant.",
            "user_message": "What is the capital of France?",
            "history": [
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Hi there!"},
            ],
        }

        context = await builder.build_for_turn(turn_envelope, max_prompt_tokens=4096)
        await SomaBrainClient.get().aclose()
        return context

    with serving(lambda _: Reply(answer)) as service:
        monkeypatch.setenv("SA01_SOMA_BASE_URL", service.url)
        context = asyncio.run(example())
    SomaBrainClient.use(None)
    assert isinstance(context, BuiltContext)
    assert context.system_prompt == "You are a helpful assistant."
    assert context.messages == [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi there!"},
        {
            "role": "system",
            "name": "memory",
            "content": "Relevant memory:\n[1] (conversation)\nPreviously stored memory content",
        },
        {"role": "user", "content": "What is the capital of France?"},
    ]
    assert {"system", "history", "snippets", "user"} <= set(context.token_counts)
    assert context.debug["somabrain_state"] == "normal"
    assert context.debug["snippet_ids"] == ["mem-001"]
    assert (context.debug["session_id"], context.debug["tenant_id"]) == ("session-456", "tenant-123")


def test_the_integration_example_of_seed_001() -> None:
    memories = [memory(f"Production deployment, step {number}.", 0.9) for number in range(20)]
    made = builder(Memories(*memories))
    context = asyncio.run(
        made.build_for_turn(
            turn={
                "tenant_id": "acme-corp",
                "session_id": "sess-123",
                "persona_id": "agent-1",
                "user_message": "How do I deploy to production?",
                "history": [
                    {"role": "user", "content": "Tell me about CI/CD"},
                    {"role": "assistant", "content": "CI/CD stands for..."},
                ],
            },
            max_prompt_tokens=4000,
        )
    )
    assert len(context.snippets) == 8
    assert {"text", "score", "recency", "base_score"} <= set(context.snippets[0])
    assert context.history == context.messages[1:3]
    assert context.debug["snippet_count"] == 8
    assert context.debug["total_tokens"] == context.token_counts["snippets"] + context.token_counts["history"]
    assert {"somabrain_state", "snippet_tokens", "history_count"} <= set(context.debug)
    result = context.result
    assert isinstance(result, ContextResult)
    assert (result.snippets, result.history, result.debug) == (context.snippets, context.history, context.debug)
    assert made.somabrain.asked[0]["persona_id"] == "agent-1"


def test_the_recommended_unit_test() -> None:
    """Seed 000 §19.1."""
    made = ContextBuilder(
        somabrain=Memories(*(memory(f"fact {number}") for number in range(20))),
        metrics=ContextBuilderMetrics(),
        token_counter=lambda s: len(s.split()),
        health_provider=lambda: SomabrainHealthState.NORMAL,
    )
    result = asyncio.run(made.build_for_turn(turn(), max_prompt_tokens=4096))
    assert len(result.debug["snippet_ids"]) <= ContextBuilder.DEFAULT_TOP_K
    assert result.debug["somabrain_state"] == "normal"


def test_what_a_consumer_does_with_the_messages() -> None:
    """Seed 000 §15.3, step 4."""
    context = build(builder(Memories(memory("In Kiel."))), turn(history=talk(3)))
    pairs = [(msg.get("role", "user"), str(msg.get("content", ""))) for msg in context.messages]
    assert [role for role, _ in pairs] == ["system", "user", "assistant", "user", "system", "user"]
    json.dumps(context.to_dict())


def test_the_names_and_numbers_of_the_seed() -> None:
    assert (ContextBuilder.DEFAULT_TOP_K, ContextBuilder.DEGRADED_TOP_K) == (8, 3)
    assert ContextBuilder.DEGRADED_WINDOW_SECONDS == 15
    assert [state.value for state in SomabrainHealthState] == ["normal", "degraded", "down"]
    assert issubclass(SomabrainHealthState, str)
    signature = inspect.signature(ContextBuilder.__init__)
    required = [p.name for p in signature.parameters.values() if p.default is inspect.Parameter.empty]
    assert required == ["self", "somabrain", "metrics", "token_counter"]
    assert all(p.kind is p.KEYWORD_ONLY for p in list(signature.parameters.values())[1:])
    for name in ("redactor", "health_provider", "on_degraded"):
        assert signature.parameters[name].default is None
    build_for_turn = inspect.signature(ContextBuilder.build_for_turn).parameters
    assert (list(build_for_turn)[1:], build_for_turn["max_prompt_tokens"].default) == (
        ["turn", "max_prompt_tokens"],
        4096,
    )
    assert isinstance(NoopRedactor(), RedactorProtocol)


def test_the_threshold_of_seed_001_is_a_setting() -> None:
    memories = [memory("near", 0.5), memory("far", 0.49), memory("nothing", "nonsense")]
    service = Memories(*memories)
    assert len(build(builder(service), turn()).snippets) == 3
    assert "threshold" not in service.asked[0]
    context = build(builder(service, threshold=0.5), turn())
    assert [snippet["text"] for snippet in context.snippets] == ["near"]
    assert service.asked[1]["threshold"] == 0.5
    assert context.debug["dropped"] == {"below_threshold": 2}


def test_the_public_list_is_what_the_module_gives() -> None:
    names = research.conversation.__all__
    assert sorted(names) == names
    for name in names:
        assert getattr(research.conversation, name) is not None
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = research.conversation.Nonsense
