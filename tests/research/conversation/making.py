"""Parts for tests of turns: a memory service in this process, a clock that a test turns, a counter for paper."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from research.conversation import BuiltContext, ContextBuilder, ContextBuilderMetrics
from research.errors import SomaClientError

NOW = datetime(2025, 12, 10, 12, 0, tzinfo=UTC)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds


class Memories:
    """A service that answers what it is told to, and keeps what it was asked and given."""

    def __init__(self, *candidates: Any) -> None:
        self.answer: Any = {"candidates": list(candidates)}
        self.asked: list[Mapping[str, Any]] = []
        self.remembered: list[Mapping[str, Any]] = []
        self.failing = False
        self.hanging = False

    async def context_evaluate(self, payload: Mapping[str, Any]) -> Any:
        self.asked.append(payload)
        await self._behave()
        return self.answer

    async def remember_batch(self, payload: Mapping[str, Any]) -> Any:
        await self._behave()
        self.remembered.append(payload)
        return {"ok": True}

    async def _behave(self) -> None:
        if self.hanging:
            await asyncio.sleep(60)
        if self.failing:
            raise SomaClientError("the service is ill", code="busy")


def memory(text: str, score: Any = 0.9, *, days: float = 0.0, **more: Any) -> dict[str, Any]:
    told = {"timestamp": (NOW - timedelta(days=days)).isoformat(), "source": "conversation"}
    return {"id": f"mem-{text[:20]}", "score": score, "text": text, "metadata": told, **more}


def words(text: str) -> int:
    return len(text.split())


def builder(somabrain: Any, token_counter: Callable[[str], int] = words, **settings: Any) -> ContextBuilder:
    settings = {"metrics": ContextBuilderMetrics(), "now": lambda: NOW, **settings}
    return ContextBuilder(somabrain=somabrain, token_counter=token_counter, **settings)


def turn(message: str = "Where does Ana live?", history: Any = (), **more: Any) -> dict[str, Any]:
    return {
        "tenant_id": "tenant-123",
        "session_id": "session-456",
        "system_prompt": "You are a helpful assistant.",
        "user_message": message,
        "history": history,
        **more,
    }


def talk(messages: int, said: str = "message") -> list[dict[str, str]]:
    """user and assistant by turns: "message 1", "message 2" …"""
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": f"{said} {number + 1}"} for number in range(messages)]


def build(made: ContextBuilder, envelope: Any, limit: int = 4096) -> BuiltContext:
    return asyncio.run(made.build_for_turn(envelope, max_prompt_tokens=limit))
