"""Conversations: the context of a turn, from what is remembered and what was said, as seeds 000 and 001 have it.

from research.conversation import ContextBuilder, ContextBuilderMetrics, SomaBrainClient

builder = ContextBuilder(somabrain=SomaBrainClient.get(), metrics=ContextBuilderMetrics(), token_counter=count)
context = await builder.build_for_turn(turn, max_prompt_tokens=4096)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

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
    from research.conversation.intake import (
        LONGEST_NAME,
        LONGEST_TEXT,
        Imported,
        expiry,
        export_memories,
        import_memories,
        read_memory,
    )
    from research.conversation.memory import Memories
    from research.conversation.messages import memory_label
    from research.conversation.metrics import ContextBuilderMetrics
    from research.conversation.service import EmbeddedMemory, MemoryService
    from research.conversation.sessions import Sessions, no_session, session_name
    from research.conversation.summaries import model_summarizer
    from research.conversation.turn import BuiltContext, ContextResult, Turn
    from research.conversation.turns import MAX_PROMPT_TOKENS, MOST_PROMPT_TOKENS, TurnMaker
    from research.errors import SomaClientError, TurnTooLongError
    from research.governance import NoopRedactor, RedactorProtocol
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "builder": "ContextBuilder NoopRedactor RedactorProtocol",
            "client": "SomaBrainClient SomaClientError SomaSettings",
            "health": (
                "BreakerState CircuitBreaker ComponentHealth DegradationLevel DegradationMonitor "
                "SomabrainHealthState degradation_monitor"
            ),
            "intake": "Imported LONGEST_NAME LONGEST_TEXT expiry export_memories import_memories read_memory",
            "memory": "Memories",
            "messages": "TurnTooLongError memory_label",
            "metrics": "ContextBuilderMetrics",
            "service": "EmbeddedMemory MemoryService",
            "sessions": "Sessions no_session session_name",
            "summaries": "model_summarizer",
            "turn": "BuiltContext ContextResult Turn",
            "turns": "MAX_PROMPT_TOKENS MOST_PROMPT_TOKENS TurnMaker",
        },
    )
