"""A memory service as a builder uses it: whatever it is, no call outlasts its time, and failures open the breaker.

`MemoryService` is what it must have. Methods may be coroutines or block; then they get a thread of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from research.conversation.breaker import CircuitBreaker
from research.conversation.candidates import Candidates, read_candidates
from research.errors import SomaClientError, UsageError
from research.parallel import Workers

T = TypeVar("T")


class MemoryService(Protocol):
    """Payloads and answers are those of seed 000, §16."""

    async def context_evaluate(self, payload: Mapping[str, Any]) -> Mapping[str, Any]: ...

    async def remember_batch(self, payload: Mapping[str, Any]) -> Mapping[str, Any]: ...

    async def recall(self, query: str | Mapping[str, Any], top_k: int = 8) -> Mapping[str, Any]: ...


class GuardedService:
    """A service with its breaker: its own, if it has one, which it then counts itself."""

    def __init__(self, service: Any, breaker: CircuitBreaker | None = None) -> None:
        own = getattr(service, "breaker", None)
        self.breaker: CircuitBreaker = breaker or (own if isinstance(own, CircuitBreaker) else CircuitBreaker())
        self._guards_itself = self.breaker is own
        self._service = service
        self._workers = Workers("ctx-memory")

    async def evaluate(self, payload: Mapping[str, Any], seconds: float) -> Candidates:
        """Memories for a turn; by `recall` where a service has no `context_evaluate`, as seed 001 calls it."""
        name = "context_evaluate" if hasattr(self._service, "context_evaluate") else "recall"
        return await self._call(name, payload, seconds, read_candidates)

    async def remember(self, payload: Mapping[str, Any], seconds: float) -> object:
        return await self._call("remember_batch", payload, seconds, lambda answer: answer)

    async def warm_up(self) -> None:
        """What the service wants to do before the first turn, if anything. Takes as long as it takes."""
        warm_up = getattr(self._service, "warm_up", None)
        if callable(warm_up):
            await self._workers.call(warm_up)

    async def _call(self, name: str, payload: Mapping[str, Any], seconds: float, read: Callable[[Any], T]) -> T:
        method = getattr(self._service, name, None)
        if not callable(method):
            raise SomaClientError(f"the memory service has no {name}", code="refused", counts=False)
        with self._guard():
            try:
                async with asyncio.timeout(seconds):
                    return read(await self._workers.call(method, payload))
            except TimeoutError:
                if self._guards_itself:  # it was cancelled, and cannot know why
                    self.breaker.failed()
                raise SomaClientError(
                    f"the memory service did not answer within {seconds:g} s",
                    code="timeout",
                    hint="see that it works; retrieval_timeout waits longer",
                ) from None
            except SomaClientError:
                raise
            except UsageError:  # about the turn, and whoever sent that must not stop the turns of others
                raise SomaClientError("the memory service refused the turn", code="refused", counts=False) from None
            except Exception as error:  # noqa: BLE001  the turn goes on; the error's words may hold a memory's text
                raise SomaClientError(f"the memory service failed: {type(error).__name__}") from None

    def _guard(self) -> AbstractContextManager[None]:
        return nullcontext() if self._guards_itself else self.breaker.guard()
