"""What a question leaves to be written: when memories were used, vectors it made, and what those show to be the same.

A question never waits for it. What cannot be written now, because an ingest is writing, is tried again with the next.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from research.conversation.duplicates import CLOSE, say_the_same
from research.conversation.intake import stored_time
from research.errors import BusyError, CtxError
from research.store.catalog import memory_writes
from research.store.catalog.memories import get_memories, spoken_text

if TYPE_CHECKING:
    from research.memories import Memory
    from research.sources.memories import Embedded, MemoriesSource
    from research.store.catalog.catalog import Catalog

_USED_SECONDS = 60.0  # after which it is written what was recalled
_WAIT = 0.1  # seconds for whoever writes at this moment
_LONGEST_COMPARED = 1_000  # characters of what is compared word by word
_MOST_CLOSE = 5  # memories that a new one is compared with


class Later:
    """Of one open index. May be used by many threads."""

    def __init__(self, catalog: Callable[[], Catalog], source: Callable[[], MemoriesSource]) -> None:
        self._catalog = catalog
        self._source = source
        self._turn = threading.Lock()
        self._used: dict[str, dict[int, str]] = {}  # tenant → number → when
        self._used_since = time.monotonic()
        self._embedded: list[Embedded] = []

    def note(self, tenant: str, used: Sequence[int], embedded: Embedded | None) -> None:
        """Memories were used, or embedded. Vectors are written at once if that is possible, the rest once a minute."""
        at = stored_time(datetime.now(UTC))
        with self._turn:
            self._used.setdefault(tenant, {}).update(dict.fromkeys(used, at))
            if embedded is not None:
                self._embedded.append(embedded)
            due = embedded is not None or time.monotonic() - self._used_since > _USED_SECONDS
        if due:
            with suppress(CtxError):  # busy, or a folder that may only be read
                self.write()

    def take_used(self, tenant: str) -> dict[int, str]:
        """For whoever writes memories of the tenant anyway."""
        with self._turn:
            return self._used.pop(tenant, {})

    def let_go(self, tenant: str) -> None:
        """Of what is held of a tenant."""
        with self._turn:
            self._used.pop(tenant, None)
            self._embedded = [each for each in self._embedded if each.tenant != tenant]

    def write(self) -> None:
        """All of it, in a short write. Raises BusyError if somebody else is writing; then it is kept."""
        with self._turn:
            used, self._used = self._used, {}
            embedded, self._embedded = self._embedded, []
            self._used_since = time.monotonic()
        if not embedded and not any(used.values()):
            return
        same = [(each, self._same_as_before(each)) for each in embedded]
        try:
            with self._catalog().short_write(wait=_WAIT) as connection:
                for tenant, numbers in used.items():
                    memory_writes.note_used(connection, tenant, numbers)
                for each, pairs in same:
                    memory_writes.write_vectors(connection, each.tenant, each.encoder, each.numbers, each.vectors)
                    for number, to in pairs:
                        memory_writes.join(connection, each.tenant, number, to)
        except BusyError:
            with self._turn:
                self._embedded = embedded + self._embedded
                for tenant, numbers in used.items():
                    self._used[tenant] = numbers | self._used.get(tenant, {})
            raise

    def _same_as_before(self, embedded: Embedded) -> list[tuple[int, int]]:
        """Which of the new memories say what another says already: (number, the older one's)."""
        with self._catalog().snapshot() as reader:
            view = self._source().views.get(reader, embedded.tenant, embedded.encoder)
            if view is None:
                return []
            pairs = view.close_pairs(embedded.numbers, embedded.vectors, CLOSE, _MOST_CLOSE)
            meant = sorted({number for pair in pairs for number in pair})
            known = get_memories(reader.connection, embedded.tenant, meant)
        found: dict[int, int] = {}
        for number, to in pairs:
            if number not in found and number in known and to in known and _same(known[number], known[to]):
                found[number] = to
        return list(found.items())


def _same(one: Memory, other: Memory) -> bool:
    if any(each.expires_at or len(each.text) > _LONGEST_COMPARED for each in (one, other)):
        return False
    return say_the_same(spoken_text(one.text, one.speaker), spoken_text(other.text, other.speaker))
