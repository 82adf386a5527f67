"""Conversations with an index: sessions, and what it is told and recalls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from typing import Any

    from research.index.index import Index
    from research.memories import AskedTurn, Forgotten, Memory, NewMemory, Recall, RemovedSession, Session


class Memories:
    """What an index is told and recalls."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def remember(
        self,
        text: str,
        *,
        tenant: str = "",
        type: str = "memory",
        category: str = "",
        importance: float = 0.5,
        tags: Sequence[str] = (),
        namespace: str = "",
        session: str = "",
        persona: str = "",
        speaker: str = "",
        metadata: Mapping[str, Any] | None = None,
        created_at: str | datetime = "",
        expires_at: str | datetime = "",
        key: str = "",
        id: str = "",
    ) -> Memory:
        """Remember a text. A short write: accepted within a second, also while an ingest runs, or BusyError; durable
        when it returns. Telling the same again, or under the same `key`, tells nothing new."""
        from research.memories import NewMemory

        new = NewMemory(
            text, id, type, category, importance, tuple(tags), namespace, session, persona, speaker, metadata or {},
            created_at, expires_at, key,
        )  # fmt: skip
        [memory] = self._index.memory_store().remember([new], self._index.tenant_of(tenant))
        return memory

    def remember_batch(
        self, memories: Iterable[NewMemory | Mapping[str, Any] | str], *, tenant: str = ""
    ) -> list[Memory]:
        """Remember several, in order: texts, records, or objects as `ctx remember --import` reads them."""
        from research.conversation import read_memory
        from research.memories import NewMemory

        read = [
            each if isinstance(each, NewMemory) else read_memory({"text": each} if isinstance(each, str) else each)
            for each in memories
        ]
        return self._index.memory_store().remember(read, self._index.tenant_of(tenant))

    def recall(
        self,
        query: str,
        *,
        tenant: str = "",
        session: str | None = None,
        persona: str | None = None,
        namespace: str | None = None,
        top_k: int = 8,
        types: Sequence[str] = (),
        tags: Sequence[str] = (),
        threshold: float = 0.0,
        near_session: str = "",
        salience: bool = False,
        now: datetime | None = None,
    ) -> Recall:
        """The memories of a tenant that most likely answer, by words and vectors; each with a score that means the same
        as a page's. `session`, `namespace`, `types` and `tags` restrict it, `persona` to that one's and nobody's.
        `near_session` only prefers. With `salience` the best are ordered by score and recency, as of `now`."""
        from research.memories import Within

        recalled = self._index.memory_store().recall(
            query,
            tenant=self._index.tenant_of(tenant),
            top_k=top_k,
            within=Within(session, persona, namespace, tuple(types), tuple(tags)),
            threshold=threshold,
            near_session=near_session,
            salience=salience,
            now=now,
        )
        self._index.access.shown(recalled.memories, "recall", lambda each: f"memory:{each.memory.id}")
        return recalled

    def get(self, memory_id: str, *, tenant: str = "", as_told: bool = False) -> Memory:
        """One memory by its id. One that is joined to another is found as that, or `as_told`. Raises
        NothingFoundError."""
        found = self._index.memory_store().get(memory_id, self._index.tenant_of(tenant), as_told=as_told)
        return self._index.access.shown([found], "memories", lambda each: f"memory:{each.id}")[0]

    def feedback(self, memory_id: str, helped: bool, *, tenant: str = "", score: float = 0.0) -> Memory:
        """Tell whether a memory helped: it counts a little more, or less, from then on. `score`: what it had."""
        return self._index.memory_store().feedback(memory_id, helped, tenant=self._index.tenant_of(tenant), score=score)

    def forget(
        self, *memory_ids: str, tenant: str = "", session: str | None = None, everything: bool = False
    ) -> Forgotten:
        """Forget memories by id, those of a session, or all of a tenant, with the summaries made from them. What was
        asked in the session goes with it."""
        tenant = self._index.tenant_of(tenant)
        forgotten = self._index.memory_store().forget(
            *memory_ids, tenant=tenant, session=session, everything=everything
        )
        if session is not None and self._index.exists:
            self._index.session_store().remove(session, tenant)
        self._index.drop_packages()
        return forgotten

    def maintain(self, *, tenant: str | None = None, seconds: float = 10.0) -> int:
        """Remove what has expired and embed what has no vector yet, of one tenant or all, for about so long. How many
        still wait."""
        return self._index.rooms.memories.maintain(tenant, seconds=seconds) if self._index.exists else 0

    def list(
        self,
        *,
        tenant: str = "",
        session: str | None = None,
        persona: str | None = None,
        namespace: str | None = None,
        types: Sequence[str] = (),
        tags: Sequence[str] = (),
        limit: int | None = None,
        newest: bool = True,
        about: str = "",
    ) -> Iterator[Memory]:
        """A tenant's memories, the newest first or last, one by one. `about`: those that have all of these words; what
        is to be deleted is never a matter of likelihood."""
        from research.memories import Within

        if not self._index.exists:
            return iter(())
        within = Within(session, persona, namespace, tuple(types), tuple(tags))
        listed = self._index.memory_store().listed(self._index.tenant_of(tenant), within, limit=limit, newest=newest)
        if about:
            listed = _having(listed, about)
        return self._index.access.each_shown(listed, "memories", lambda each: f"memory:{each.id}")


class Sessions:
    """Conversations with an index that are kept."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def get(self, name: str, *, tenant: str = "") -> list[AskedTurn]:
        """The turns of a conversation, oldest first. Raises NothingFoundError if there is none of this name."""
        from research.conversation import no_session, session_name

        tenant = self._index.tenant_of(tenant)
        found = self._index.session_store().turns(session_name(name), tenant) if self._index.exists else []
        if not found:
            raise no_session(name)
        self._index.access.shown([cited.ref for turn in found for cited in turn.sources], "session")
        return found

    def remove(self, name: str, *, tenant: str = "") -> RemovedSession:
        """Forget a conversation: its turns, the memories that were told in it, and what was made from them. Raises
        NothingFoundError if there is nothing of this name."""
        from research.conversation import no_session, session_name
        from research.memories import RemovedSession

        session, tenant = session_name(name), self._index.tenant_of(tenant)
        if not self._index.exists:
            raise no_session(session)
        turns = self._index.session_store().remove(session, tenant)
        forgotten = self._index.memory_store().forget(tenant=tenant, session=session)
        if not (turns or forgotten.ids):
            raise no_session(session)
        self._index.drop_packages()
        return RemovedSession(session, turns, forgotten.ids, forgotten.summaries)

    def list(self, *, tenant: str = "") -> list[Session]:
        """The conversations of a tenant, the one asked last first."""
        return self._index.session_store().listed(self._index.tenant_of(tenant)) if self._index.exists else []


def _having(memories: Iterable[Memory], about: str) -> Iterator[Memory]:
    from research.store import analyze

    wanted = set(analyze(about))
    return (each for each in memories if wanted and wanted <= set(analyze(f"{each.speaker} {each.text}")))
