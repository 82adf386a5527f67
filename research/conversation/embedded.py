"""The memory of an index in the shape of seed 000's SomaBrainClient: payloads in, dictionaries out.

So a context builder takes the embedded memory or a remote one alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from research.conversation.intake import name_of, read_memory
from research.conversation.memory import share
from research.errors import UsageError
from research.memories import TOP_K, NewMemory

if TYPE_CHECKING:
    from research.index import Index

_OF_THE_PAYLOAD = ("universe", "namespace")


class EmbeddedMemory:
    """The memory of an index as seed 000 and 001 call one. Nothing of it waits in the caller's event loop."""

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
        return await self._index.workers.run(self.evaluate, payload | more, name="memories")

    async def remember(self, payload: Mapping[str, Any] | str, **more: Any) -> dict[str, Any]:
        """Tell one memory: its text, or its fields beside `tenant_id`."""
        return await asyncio.to_thread(self.tell, {"text": payload, **more} if isinstance(payload, str) else payload)

    async def remember_batch(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Tell several: {"tenant_id": …, "memories": [{"text", "type", "session_id", "tags", "metadata"}]}."""
        return await asyncio.to_thread(self.tell_all, payload)

    def warm_up(self) -> None:
        """Load the encoder and the memories before the first question."""
        self._index.recall("hello", tenant=self._tenant or "", top_k=1)

    def evaluate(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        given = _payload(payload)
        query = given.get("query")
        if not isinstance(query, str):
            raise UsageError("query must be text", hint='{"query": "…", "top_k": 8}')
        found = self._index.recall(
            query,
            tenant=self._owner(given),
            top_k=TOP_K if given.get("top_k") is None else given["top_k"],
            persona=name_of("persona_id", given.get("persona_id")) or None,
            namespace=self._place(given) or None,
            threshold=share("threshold", given.get("threshold") or 0.0),
            near_session=name_of("session_id", given.get("session_id")),
        )
        return {"candidates": [each.candidate() for each in found.memories]}

    def tell(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        given = _payload(payload)
        [memory] = self._index.remember_batch([self._new(given, given)], tenant=self._owner(given))
        return {"ok": True, "id": memory.id, "outcome": memory.outcome}

    def tell_all(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        given = _payload(payload)
        listed = given.get("memories")
        if isinstance(listed, str | Mapping) or not isinstance(listed, Sequence):
            raise UsageError("memories must be a list", hint='{"tenant_id": "…", "memories": [{"text": "…"}]}')
        told = self._index.remember_batch([self._new(each, given) for each in listed], tenant=self._owner(given))
        return {"ok": True, "ids": [each.id for each in told], "outcomes": [each.outcome for each in told]}

    def _new(self, memory: Mapping[str, Any], given: Mapping[str, Any]) -> NewMemory:
        if memory is given:
            memory = {name: value for name, value in given.items() if name not in _OF_THE_PAYLOAD}
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
