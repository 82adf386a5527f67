"""Memory services: what a builder asks of one, and the memory of an index in that shape.

Whatever a service is, no call of it outlasts its time, and failures open the breaker. A context builder takes the
embedded memory or a remote one alike: payloads in, dictionaries out, as seed 000 has them in §16.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from research.conversation.health import CircuitBreaker
from research.conversation.intake import name_of, read_memory, share
from research.conversation.salience import Candidates, read_candidates
from research.errors import SomaClientError, UsageError
from research.memories import TOP_K, NewMemory
from research.parallel import Workers

if TYPE_CHECKING:
    from research.index import Index

T = TypeVar("T")


class MemoryService(Protocol):
    """What a service must have. Methods may be coroutines or block; then they get a thread of their own."""

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
        with nullcontext() if self._guards_itself else self.breaker.guard():
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


class EmbeddedMemory:
    """The memory of an index as seeds 000 and 001 call one. Nothing of it waits in the caller's event loop."""

    def __init__(self, index: Index, tenant: str | None = None, *, namespace: str | None = None) -> None:
        """`tenant`: the only one that is answered for; None believes what a payload says, and is for callers who know
        whose it is. `namespace` is where is told and looked, if a payload names none."""
        self._index = index
        self._tenant = tenant
        self._namespace = namespace

    async def context_evaluate(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """{"candidates": [{"id", "score", "text", "metadata"}]} for {"tenant_id", "session_id", "query", "top_k"}."""
        return await self._index.workers.run(self.evaluate, payload, name="memories")

    async def recall(self, query: str | Mapping[str, Any], top_k: int = TOP_K, **more: Any) -> dict[str, Any]:
        """The same, called with a payload (seed 001) or with a question (seed 000)."""
        payload = dict(query) if isinstance(query, Mapping) else {"query": query, "top_k": top_k}
        return await self.context_evaluate(payload | more)

    async def remember(self, payload: Mapping[str, Any] | str, **more: Any) -> dict[str, Any]:
        """Tell one memory: its text, or its fields beside `tenant_id`."""
        return await asyncio.to_thread(self.tell, {"text": payload, **more} if isinstance(payload, str) else payload)

    async def remember_batch(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Tell several: {"tenant_id": …, "memories": [{"text", "type", "session_id", "tags", "metadata"}]}."""
        return await asyncio.to_thread(self.tell_all, payload)

    def warm_up(self) -> None:
        """Load the encoder and the memories before the first question."""
        self._index.memories.recall("hello", tenant=self._tenant or "", top_k=1)

    def tell(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        given = _payload(payload)
        alone = {name: value for name, value in given.items() if name not in ("universe", "namespace")}
        [memory] = self._index.memories.remember_batch([self._new(alone, given)], tenant=self._owner(given))
        return {"ok": True, "id": memory.id, "outcome": memory.outcome}

    def tell_all(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        given = _payload(payload)
        listed = given.get("memories")
        if isinstance(listed, str | Mapping) or not isinstance(listed, Sequence):
            raise UsageError("memories must be a list", hint='{"tenant_id": "…", "memories": [{"text": "…"}]}')
        told = self._index.memories.remember_batch(
            [self._new(each, given) for each in listed], tenant=self._owner(given)
        )
        return {"ok": True, "ids": [each.id for each in told], "outcomes": [each.outcome for each in told]}

    def evaluate(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        given = _payload(payload)
        query = given.get("query")
        if not isinstance(query, str):
            raise UsageError("query must be text", hint='{"query": "…", "top_k": 8}')
        found = self._index.memories.recall(
            query,
            tenant=self._owner(given),
            top_k=TOP_K if given.get("top_k") is None else given["top_k"],
            persona=name_of("persona_id", given.get("persona_id")) or None,
            namespace=self._place(given) or None,
            threshold=share("threshold", given.get("threshold") or 0.0),
            near_session=name_of("session_id", given.get("session_id")),
        )
        return {"candidates": [each.candidate() for each in found.memories]}

    def _new(self, memory: Mapping[str, Any], given: Mapping[str, Any]) -> NewMemory:
        new = read_memory(memory)
        return replace(new, namespace=new.namespace or self._place(given))

    def _place(self, given: Mapping[str, Any]) -> str:
        """The namespace, within its universe if that is named: those of SA01_NAMESPACE and SA01_MEMORY_NAMESPACE."""
        named = [name_of(name, given.get(name)) for name in ("universe", "namespace")]
        return "/".join(name for name in named if name) or self._namespace or ""

    def _owner(self, given: Mapping[str, Any]) -> str:
        said = name_of("tenant_id", given.get("tenant_id"))
        if self._tenant is None:
            return said
        if said not in ("", self._tenant):
            raise UsageError("tenant_id is not the one that this memory is for")
        return self._tenant


def _payload(payload: object) -> Mapping[str, Any]:
    if not isinstance(payload, Mapping):
        raise UsageError(f"a payload is an object, not {type(payload).__name__}")
    return payload
