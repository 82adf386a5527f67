"""What `debug` tells of one turn: how the memory service did, what was left out, and how long each phase took.

It is JSON-ready and holds no text of a memory or a message.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from research.conversation.budget import Fitted
from research.conversation.health import SomabrainHealthState
from research.conversation.history import Window
from research.conversation.turn import Turn


@dataclass(slots=True)
class TurnReport:
    """Filled while a turn is built."""

    turn: Turn
    state: SomabrainHealthState  # of the memory service, when the turn began
    limit: int  # tokens
    retrieval: str = "off"  # "ok", "failed", "skipped" (it was not asked) or "off" (there is none)
    reason: str = ""
    candidates: int = 0
    dropped: Counter[str] = field(default_factory=Counter)  # memories that were found and not used
    summary: str = "none"  # "stored", "failed", "known" (nothing new, or not enough yet), "not yet" or "none"
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    @contextmanager
    def phase(self, name: str, timer: AbstractContextManager[None]) -> Iterator[None]:
        begun = time.perf_counter()
        with timer:
            try:
                yield
            finally:
                self.seconds[name] = time.perf_counter() - begun

    def to_debug(self, fitted: Fitted, window: Window) -> dict[str, Any]:
        seconds = {**self.seconds, "total": time.perf_counter() - self.begun}
        return {
            "somabrain_state": self.state.value,
            "snippet_ids": [snippet.id for snippet in fitted.snippets],
            "session_id": self.turn.session_id,
            "tenant_id": self.turn.tenant_id,
            "persona_id": self.turn.persona_id,
            "snippet_count": len(fitted.snippets),
            "snippet_tokens": fitted.counts["snippets"],
            "history_count": len(fitted.history),
            "total_tokens": fitted.counts["snippets"] + fitted.counts["history"],
            "context_prompt_tokens": fitted.tokens,
            "max_prompt_tokens": self.limit,
            "retrieval": {"status": self.retrieval, "reason": self.reason, "candidates": self.candidates},
            "dropped": dict(+self.dropped),
            "history": {"given": window.length, "considered": len(window.entries), "odd": dict(+window.skipped)},
            "summary": self.summary,
            "cut": fitted.cut,
            "notes": self.notes,
            "seconds": {name: round(passed, 6) for name, passed in seconds.items()},
        }
