"""Conversations with an index: sessions, and what it is told and recalls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from research.index.base import IndexBase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from typing import Any

    from research.memories import Forgotten, Memory, NewMemory, Recall
    from research.sessions import AskedTurn, RemovedSession, Session


class Conversation(IndexBase):
    """The part of `Index` that remembers."""

    def sessions(self, *, tenant: str = "") -> list[Session]:
        """The conversations of a tenant, the one asked last first."""
        return self._sessions().listed(self._tenant(tenant)) if self.exists else []

    def session(self, name: str, *, tenant: str = "") -> list[AskedTurn]:
        """The turns of a conversation, oldest first. Raises NothingFoundError if there is none of this name."""
        from research.conversation import no_session, session_name

        tenant = self._tenant(tenant)
        found = self._sessions().turns(session_name(name), tenant) if self.exists else []
        if not found:
            raise no_session(name)
        self.access.shown([cited.ref for turn in found for cited in turn.sources], "session")
        return found

    def remove_session(self, name: str, *, tenant: str = "") -> RemovedSession:
        """Forget a conversation: its turns, the memories that were told in it, and what was made from them. Raises
        NothingFoundError if there is nothing of this name."""
        from research.conversation import no_session, session_name
        from research.sessions import RemovedSession

        session, tenant = session_name(name), self._tenant(tenant)
        if not self.exists:
            raise no_session(session)
        turns = self._sessions().remove(session, tenant)
        forgotten = self._memory().forget(tenant=tenant, session=session)
        if not (turns or forgotten.ids):
            raise no_session(session)
        self._drop_packages()
        return RemovedSession(session, turns, forgotten.ids, forgotten.summaries)

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
        [memory] = self._memory().remember([new], self._tenant(tenant))
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
        return self._memory().remember(read, self._tenant(tenant))

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

        recalled = self._memory().recall(
            query,
            tenant=self._tenant(tenant),
            top_k=top_k,
            within=Within(session, persona, namespace, tuple(types), tuple(tags)),
            threshold=threshold,
            near_session=near_session,
            salience=salience,
            now=now,
        )
        self.access.shown(recalled.memories, "recall", lambda each: f"memory:{each.memory.id}")
        return recalled

    def memory(self, memory_id: str, *, tenant: str = "", as_told: bool = False) -> Memory:
        """One memory by its id. One that is joined to another is found as that, or `as_told`. Raises
        NothingFoundError."""
        found = self._memory().get(memory_id, self._tenant(tenant), as_told=as_told)
        return self.access.shown([found], "memories", lambda each: f"memory:{each.id}")[0]

    def memories(
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

        if not self.exists:
            return iter(())
        within = Within(session, persona, namespace, tuple(types), tuple(tags))
        listed = self._memory().listed(self._tenant(tenant), within, limit=limit, newest=newest)
        if about:
            listed = _having(listed, about)
        return self.access.each_shown(listed, "memories", lambda each: f"memory:{each.id}")

    def feedback(self, memory_id: str, helped: bool, *, tenant: str = "", score: float = 0.0) -> Memory:
        """Tell whether a memory helped: it counts a little more, or less, from then on. `score`: what it had."""
        return self._memory().feedback(memory_id, helped, tenant=self._tenant(tenant), score=score)

    def forget(
        self, *memory_ids: str, tenant: str = "", session: str | None = None, everything: bool = False
    ) -> Forgotten:
        """Forget memories by id, those of a session, or all of a tenant, with the summaries made from them. What was
        asked in the session goes with it."""
        tenant = self._tenant(tenant)
        forgotten = self._memory().forget(*memory_ids, tenant=tenant, session=session, everything=everything)
        if session is not None and self.exists:
            self._sessions().remove(session, tenant)
        self._drop_packages()
        return forgotten

    def maintain_memories(self, *, tenant: str | None = None, seconds: float = 10.0) -> int:
        """Remove what has expired and embed what has no vector yet, of one tenant or all, for about so long. How many
        still wait."""
        return self._rooms.memories.maintain(tenant, seconds=seconds) if self.exists else 0


def _having(memories: Iterable[Memory], about: str) -> Iterator[Memory]:
    from research.store import analyze

    wanted = set(analyze(about))
    return (each for each in memories if wanted and wanted <= set(analyze(f"{each.speaker} {each.text}")))
