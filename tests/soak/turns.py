"""Turns by many workers while their memory service is killed, hung and garbled at random, and what must hold then.

The service is a real one behind HTTP, and keeps what it is told by its key. Its answers may be lost after it has kept
something, which is when things are told twice or lost.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from research.conversation import (
    BreakerState,
    CircuitBreaker,
    ContextBuilder,
    ContextBuilderMetrics,
    SomaBrainClient,
    SomaClientError,
    SomaSettings,
)
from tests.serving import Asked, Reply, Served

ILL = ("error", "page", "half", "wrong", "hangs", "loses", "dead")
LIMIT = 0.25  # seconds for the retrieval, and again for a summary
COOLDOWN = WINDOW = 0.2
_ALLOWED = {("CLOSED", "OPEN"), ("OPEN", "HALF_OPEN"), ("HALF_OPEN", "OPEN"), ("HALF_OPEN", "CLOSED")}


class LoggingBreaker(CircuitBreaker):
    """Keeps when it changed to what, and when it let a call through."""

    def __init__(self) -> None:
        super().__init__(cooldown=COOLDOWN, trial=WINDOW)
        self.changes: list[tuple[float, str, str]] = []

    def _become(self, state: BreakerState, since: float | None = None) -> None:
        self.changes.append((time.monotonic(), self._state.value, state.value))
        super()._become(state, since)

    def open_times(self) -> list[tuple[float, float]]:
        """From when to when it was open."""
        found, begun = [], None
        for at, _, state in self.changes:
            if state == "OPEN":
                begun = at
            elif begun is not None:
                found.append((begun, min(at, begun + COOLDOWN)))
                begun = None
        return found


class FaultyMemory:
    """The service: what it keeps lasts, whatever becomes of the process that answers."""

    def __init__(self) -> None:
        self.mode = "well"
        self.kept: dict[str, str] = {}  # by key
        self.unkeyed: Counter[str] = Counter()  # how often a text without a key arrived
        self.arrived: list[float] = []
        self.asked_for: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._served: Served | None = Served(self._answer)
        self.url = self._served.url
        self._port = int(self.url.rpartition(":")[2])

    def turn_to(self, mode: str) -> None:
        self.mode = mode
        if mode == "dead" and self._served is not None:
            self._served.close()
            self._served = None
        elif mode != "dead" and self._served is None:
            self._served = Served(self._answer, self._port)

    def close(self) -> None:
        self.turn_to("dead")

    def _answer(self, asked: Asked) -> Reply:
        mode, telling = self.mode, "remember" in asked.path
        with self._lock:
            self.arrived.append(time.monotonic())
            if not telling:
                self.asked_for[asked.document["top_k"]] += 1
        if telling and mode in ("well", "loses", "nan"):
            self._keep(asked.document)
        ill = {
            "error": Reply({"detail": "ill"}, random.choice((500, 502, 503))),
            "hangs": Reply(never=True),
            "dead": Reply(never=True),  # it is just being killed
            "page": Reply(b"<html>Bad Gateway</html>"),
            "loses": Reply(b"<html>Bad Gateway</html>"),
            "half": Reply(b'{"candidates": [{"id": "1", "sco'),
            "wrong": Reply(b"7" if telling else b'{"candidates": "none"}'),
        }
        if mode in ill or telling:
            return ill.get(mode, Reply({"ok": True}))
        score = b"NaN" if mode == "nan" else b"0.9"
        memories = b", ".join(b'{"id": "m%d", "text": "fact %d", "score": %s}' % (n, n, score) for n in range(9))
        return Reply(b'{"candidates": [' + memories + b"]}")

    def _keep(self, document: dict[str, Any]) -> None:
        with self._lock:
            for memory in document["memories"]:
                key = memory.get("idempotency_key")
                if key is None:
                    self.unkeyed[memory["text"]] += 1
                else:
                    self.kept.setdefault(key, memory["text"])


@dataclass
class TurnSoak:
    turns: int
    workers: int = 8
    seed: int = 0
    every: float = 0.1  # seconds between two changes of the service
    pace: float = 0.06  # seconds between two turns of a worker
    problems: list[str] = field(default_factory=list)
    slowest: float = 0.0
    states: Counter[str] = field(default_factory=Counter)
    summaries: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        self.service = FaultyMemory()
        self.breaker = LoggingBreaker()
        settings = SomaSettings(self.service.url, timeout_seconds=5.0, retry_base_ms=5.0)
        self.client = SomaBrainClient(settings=settings, breaker=self.breaker)
        self.builder = ContextBuilder(
            somabrain=self.client,
            metrics=ContextBuilderMetrics(),
            token_counter=lambda text: len(text.split()),
            degraded_window=WINDOW,
            retrieval_timeout=LIMIT,
            summary_timeout=LIMIT,
        )
        self._lock = threading.Lock()
        self._acknowledged: list[str] = []  # texts and keys
        asyncio.run(self.builder.warm_up())
        over = threading.Event()
        chaos = threading.Thread(target=self._chaos, args=(over,))
        working = [threading.Thread(target=lambda n=n: asyncio.run(self._work(n))) for n in range(self.workers)]
        for thread in (chaos, *working):
            thread.start()
        for thread in working:
            thread.join()
        over.set()
        chaos.join()
        self._check_states()
        self._check_memories()
        asyncio.run(self._check_recovery())
        self.service.close()

    def _chaos(self, over: threading.Event) -> None:
        pick = random.Random(self.seed)
        while not self.summaries["stored"] and not over.wait(0.01):
            pass  # as long as nothing is kept, nothing can be lost
        while not over.wait(self.every * pick.uniform(0.3, 2.0)):
            ill = self.service.mode not in ILL
            self.service.turn_to(pick.choice(ILL) if ill else pick.choice(("well", "nan")))
        self.service.turn_to("well")

    async def _work(self, worker: int) -> None:
        history = [{"role": "user", "content": f"<{worker}.{number}.h> well"} for number in range(22)]
        for number in range(self.turns // self.workers):
            history += [
                {"role": "user", "content": f"<{worker}.{number}.u> hm"},
                {"role": "assistant", "content": "ok"},
            ]
            await self._turn(worker, history)
            await asyncio.sleep(self.pace * random.random())
            if number % 10 == 0:
                await self._tell(f"<{worker}.{number}> told once")
        await self.client.aclose()

    async def _turn(self, worker: int, history: list[dict[str, str]]) -> None:
        begun = time.monotonic()
        turn = {"tenant_id": "t", "session_id": f"s{worker}", "user_message": "what now?", "history": history}
        try:
            context = await self.builder.build_for_turn(turn, max_prompt_tokens=400)
        except Exception as error:  # noqa: BLE001  told at the end
            self.problems.append(f"a turn raised {error!r}")
            return
        debug = context.debug
        with self._lock:
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.states[f"{debug['somabrain_state']}, {debug['retrieval']['status']}"] += 1
            self.summaries[debug["summary"]] += 1
        most = {"normal": 8, "degraded": 3, "down": 0}[debug["somabrain_state"]]
        count = debug["snippet_count"]
        if count not in (0, most) or (debug["retrieval"]["status"] == "ok") != bool(count):
            self.problems.append(f"{count} memories, {debug['somabrain_state']}, {debug['retrieval']}")
        if context.messages[-1]["content"] != "what now?" or context.prompt_tokens > 400:
            self.problems.append("a turn is not what was asked for")

    async def _tell(self, text: str) -> None:
        with suppress(SomaClientError, TimeoutError):
            async with asyncio.timeout(LIMIT):
                await self.client.remember_batch({"tenant_id": "t", "memories": [{"text": text}]})
                self._acknowledged.append(text)

    def _check_states(self) -> None:
        found = {(before, after) for _, before, after in self.breaker.changes}
        if not found <= _ALLOWED:
            self.problems.append(f"the breaker went {found - _ALLOWED}")
        for begun, ended in self.breaker.open_times():
            # What was on its way when it opened may still arrive: one call of each worker.
            arrived = sum(begun < at < ended - 0.01 for at in self.service.arrived)
            if arrived > self.workers:
                self.problems.append(f"{arrived} calls while it was open")
        if set(self.service.asked_for) - {3, 8}:
            self.problems.append(f"asked for {dict(self.service.asked_for)}")

    def _check_memories(self) -> None:
        for text in self._acknowledged:
            if not self.service.unkeyed[text]:
                self.problems.append(f"lost: {text}")
        self.problems += [f"told {times} times: {text}" for text, times in self.service.unkeyed.items() if times > 1]
        if self.summaries["stored"] > len(self.service.kept):
            self.problems.append(f"{self.summaries['stored']} stored, {len(self.service.kept)} kept")
        said = Counter(mark for text in self.service.kept.values() for mark in re.findall(r"<[\d.uh]+>", text))
        self.problems += [f"summed up {times} times: {mark}" for mark, times in said.items() if times > 1]

    async def _check_recovery(self) -> None:
        """The table from end to end, with nobody else there and a clock of its own: well, dead, down, tried, well."""
        passed = 0.0

        def clock() -> float:
            return passed

        settings = SomaSettings(self.service.url, max_retries=0)
        client = SomaBrainClient(settings=settings, breaker=CircuitBreaker(clock=clock))
        builder = ContextBuilder(
            somabrain=client, metrics=ContextBuilderMetrics(), token_counter=len, retrieval_timeout=30.0, clock=clock
        )

        async def states(turns: int) -> list[str]:
            envelope = {"tenant_id": "t", "session_id": "end", "user_message": "?"}
            return [(await builder.build_for_turn(envelope)).debug["somabrain_state"] for _ in range(turns)]

        self.service.turn_to("well")
        found = await states(2)
        self.service.turn_to("dead")
        found += await states(4)
        passed += 15
        found += await states(2)
        passed += 15
        self.service.turn_to("well")
        found += await states(2)
        await client.aclose()
        expected = ["normal"] * 3 + ["degraded"] * 2 + ["down", "degraded", "down", "degraded", "normal"]
        if found != expected:
            self.problems.append(f"the end went {found}")
