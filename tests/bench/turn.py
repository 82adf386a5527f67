"""A turn of a conversation: with ten thousand memories on this machine, with none, and while their service is down.

Memories are told as anybody tells them; only their vectors are made up, for to embed them would take minutes.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from research.context import TokenCounter
from research.conversation import (
    ContextBuilder,
    ContextBuilderMetrics,
    EmbeddedMemory,
    SomabrainHealthState,
)
from research.encoders import load_text_encoder
from research.index import Index
from tests.bench.made import Words
from tests.bench.table import line, median, title

MEMORIES, MESSAGES, TURNS = 10_000, 200, 100
_BATCH = 100
_TOPICS = 50

Messages = list[dict[str, str]]


class _Counter:
    """Counts tokens, and how long that took."""

    def __init__(self) -> None:
        self._tokens = TokenCounter()
        self.seconds = 0.0

    def count(self, text: str) -> int:
        begun = time.perf_counter()
        tokens = self._tokens.count(text)
        self.seconds += time.perf_counter() - begun
        return tokens


def run() -> None:
    title(f"A turn with {MEMORIES:,} memories and {MESSAGES} messages of history ({TURNS} turns)")
    words = Words(seed=4)
    roles = ("user", "assistant")
    history = [{"role": roles[at % 2], "content": words.text(at % _TOPICS, 40)} for at in range(MESSAGES)]
    questions = [words.question(at % _TOPICS) for at in range(TURNS)]
    with tempfile.TemporaryDirectory() as folder, Index(Path(folder) / "index") as index:
        _fill(index, words)
        asyncio.run(_measure_all(index, [_turn(question, history) for question in questions]))


def _fill(index: Index, words: Words) -> None:
    told = [words.text(at % _TOPICS, 25) for at in range(MEMORIES)]
    begun = time.perf_counter()
    for start in range(0, MEMORIES, _BATCH):
        index.memories.remember_batch(told[start : start + _BATCH], tenant="t")
    rate = MEMORIES / (time.perf_counter() - begun)
    line(f"remember in batches of {_BATCH}, acknowledged", f"{rate:,.0f}/s", ">= 200/s")
    encoder = load_text_encoder()
    with index.catalog.snapshot() as reader:
        numbers = [number for number, _, _ in reader.memories.pending_vectors("t", encoder.name, MEMORIES)]
    vectors = np.random.default_rng(0).standard_normal((len(numbers), encoder.dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with index.catalog.short_write() as connection:
        connection.memories.write_vectors("t", encoder.name, numbers, vectors)


async def _measure_all(index: Index, turns: list[dict[str, Any]]) -> None:
    counter = _Counter()

    def builder(somabrain: Any, **settings: Any) -> ContextBuilder:
        return ContextBuilder(
            somabrain=somabrain, metrics=ContextBuilderMetrics(), token_counter=counter.count, **settings
        )

    embedded = builder(EmbeddedMemory(index))
    begun = time.perf_counter()
    await embedded.warm_up()
    line("warm_up", f"{(time.perf_counter() - begun) * 1000:.0f} ms")
    await _measure("memory in the index", embedded, counter, turns, "p50 <= 40, p95 <= 80 ms")
    await _measure("no memory", builder(None), counter, turns)
    down = builder(EmbeddedMemory(index), health_provider=lambda: SomabrainHealthState.DOWN)
    await _measure("down", down, counter, turns, "<= 2 ms beyond counting")


async def _measure(
    what: str, builder: ContextBuilder, counter: _Counter, turns: list[dict[str, Any]], against: str = ""
) -> None:
    took, beyond, built = [], [], []
    worked = time.process_time()
    for turn in turns:
        counter.seconds, begun = 0.0, time.perf_counter()
        built.append(await builder.build_for_turn(turn))
        took.append((time.perf_counter() - begun) * 1000)
        beyond.append(took[-1] - counter.seconds * 1000)
    worked = (time.process_time() - worked) / len(turns) * 1000
    line(f"{what}: p50, p95", _percentiles(took), against)
    line("  beyond counting tokens", _percentiles(beyond))
    line("  CPU time of a turn, all threads", f"{worked:.1f} ms")
    seconds = [context.debug["seconds"] for context in built]
    phases = {name: median([each[name] * 1000 for each in seconds]) for name in seconds[-1] if name != "total"}
    told = ", ".join(f"{name} {spent:.2f}" for name, spent in phases.items())
    last = built[-1]
    print(f"  {len(last.snippets)} memories, {len(last.history)} messages, {last.prompt_tokens} tokens; ms: {told}")


def _turn(question: str, history: Messages) -> dict[str, Any]:
    return {
        "tenant_id": "t",
        "session_id": "s",
        "system_prompt": "You are a helpful assistant.",
        "user_message": question,
        "history": history,
    }


def _percentiles(took: list[float]) -> str:
    return f"{median(took):.1f}, {sorted(took)[int(len(took) * 0.95)]:.1f} ms"
