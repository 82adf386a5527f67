"""Conversations: the context of a turn, from what is remembered and what was said, as seeds 000 and 001 have it.

from research.conversation import ContextBuilder, ContextBuilderMetrics, SomaBrainClient

builder = ContextBuilder(somabrain=SomaBrainClient.get(), metrics=ContextBuilderMetrics(), token_counter=count)
context = await builder.build_for_turn(turn, max_prompt_tokens=4096)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from research.conversation.builder import ContextBuilder
    from research.conversation.client import SomaBrainClient, SomaSettings
    from research.conversation.health import (
        BreakerState,
        CircuitBreaker,
        ComponentHealth,
        DegradationLevel,
        DegradationMonitor,
        SomabrainHealthState,
        degradation_monitor,
    )
    from research.conversation.metrics import ContextBuilderMetrics
    from research.conversation.salience import Salience
    from research.conversation.service import EmbeddedMemory, MemoryService
    from research.conversation.summaries import model_summarizer
    from research.conversation.turn import BuiltContext, ContextResult, Turn
    from research.errors import SomaClientError, TurnTooLongError
    from research.governance.redaction import NoopRedactor, RedactorProtocol

_HOMES = {
    "BreakerState": "research.conversation.health",
    "BuiltContext": "research.conversation.turn",
    "CircuitBreaker": "research.conversation.health",
    "ComponentHealth": "research.conversation.health",
    "ContextBuilder": "research.conversation.builder",
    "ContextBuilderMetrics": "research.conversation.metrics",
    "ContextResult": "research.conversation.turn",
    "DegradationLevel": "research.conversation.health",
    "DegradationMonitor": "research.conversation.health",
    "EmbeddedMemory": "research.conversation.service",
    "MemoryService": "research.conversation.service",
    "NoopRedactor": "research.governance.redaction",
    "RedactorProtocol": "research.governance.redaction",
    "Salience": "research.conversation.salience",
    "SomaBrainClient": "research.conversation.client",
    "SomaClientError": "research.errors",
    "SomaSettings": "research.conversation.client",
    "SomabrainHealthState": "research.conversation.health",
    "Turn": "research.conversation.turn",
    "TurnTooLongError": "research.errors",
    "degradation_monitor": "research.conversation.health",
    "model_summarizer": "research.conversation.summaries",
}

__all__ = [
    "BreakerState",
    "BuiltContext",
    "CircuitBreaker",
    "ComponentHealth",
    "ContextBuilder",
    "ContextBuilderMetrics",
    "ContextResult",
    "DegradationLevel",
    "DegradationMonitor",
    "EmbeddedMemory",
    "MemoryService",
    "NoopRedactor",
    "RedactorProtocol",
    "Salience",
    "SomaBrainClient",
    "SomaClientError",
    "SomaSettings",
    "SomabrainHealthState",
    "Turn",
    "TurnTooLongError",
    "degradation_monitor",
    "model_summarizer",
]


def __getattr__(name: str) -> Any:
    """Load a name's module with its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'research.conversation' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
