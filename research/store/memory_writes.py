"""Writing memories: telling, joining, superseding, feedback; and forgetting them with what was made from them. Short
writes, accepted while an ingest runs.

Every function is part of the caller's transaction, and every statement names the tenant first. What takes long (words,
vectors) was worked out before it began.

What goes is gone from every table: words, vectors, sources and feedback belong to their memory.

A memory is superseded by the one that was told to replace it, and by nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.errors import UsageError
from research.memories import Outcome, Within
from research.store.memories import Memories, words_of
from research.store.reader import pack_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MOST_FEEDBACK = 50  # kept of a memory


@dataclass(frozen=True, slots=True)
class Told:
    """A memory as it is written: checked, its words and digest worked out. Times are ISO 8601 in UTC."""

    id: str
    given_id: bool  # the caller's own
    key: str
    digest: str
    type: str
    category: str
    importance: float
    namespace: str
    session: str
    persona: str
    speaker: str
    created_at: str
    expires_at: str
    tags: str  # JSON
    metadata: str  # JSON
    text: str
    body: str  # its words
    sources: tuple[str, ...] = ()  # ids of the memories it sums up
    replaces: str = ""  # the id of the memory that it says anew


# Of these the columns have the names.
_TOLD = (
    "id, key, digest, type, category, importance, namespace, session, persona, speaker, created_at, expires_at, tags,"
    " metadata, text"
)
_SOURCES = "tenant, source_id, memory_no"

A_STEP = 1000
"""Memories that one transaction forgets: short writes find their turn between two."""


class MemoryWrites(Memories):
    """Memories, and what changes them, as part of the caller's transaction."""

    def tell(self, tenant: str, told: Sequence[Told]) -> list[tuple[int, Outcome]]:
        """Write what is new; the number of each, and what came of it. The same told twice is one memory."""
        self._db.execute(
            "INSERT INTO memory_tenants (tenant, version, last_seq) VALUES (?, ?, 0) ON CONFLICT DO NOTHING",
            (tenant, secrets.randbits(60)),  # so that a tenant who was forgotten and comes again is another
        )
        outcomes = []
        for each in told:
            number, outcome = self._tell(tenant, each)
            if each.replaces:
                self._supersede(tenant, each.replaces, number)
            outcomes.append((number, outcome))
        return outcomes

    def _tell(self, tenant: str, told: Told) -> tuple[int, Outcome]:
        known = self._known(tenant, told)
        if known is not None:
            self._tell_again(tenant, known, told.created_at)
            return known, "known"
        same = self._db.value(
            "SELECT memory_no FROM memories WHERE tenant = ? AND digest = ? AND joined_to IS NULL AND expires_at = ''"
            " ORDER BY memory_no",
            (tenant, told.digest),
        )
        # What expires is a memory of its own: it must not be found for longer, nor hide one that stays.
        joined_to = None if told.expires_at else same
        number = self._next_seq(tenant)
        self._insert(tenant, number, told, joined_to)
        if joined_to is not None:
            self._tell_again(tenant, joined_to, told.created_at)
            return number, "joined"
        self.write_words(tenant, number, told.body)
        sources = [(tenant, source, number) for source in told.sources]
        self._db.put_rows("memory_sources", _SOURCES, sources, over=_SOURCES)
        return number, "stored"

    def _known(self, tenant: str, told: Told) -> int | None:
        """The memory that this one was told as before: under its id, its key, or in the same words at the same
        place."""
        if told.given_id:
            row = self._db.execute(
                "SELECT memory_no, text FROM memories WHERE tenant = ? AND id = ?", (tenant, told.id)
            ).fetchone()
            if row is not None and row[1] != told.text:
                raise UsageError(
                    f"the id {told.id!r} is taken by another memory", hint="leave the id out, or forget it first"
                )
            if row is not None:
                return int(row[0])
        if told.key:
            query = "SELECT memory_no FROM memories WHERE tenant = ? AND key = ?"
            known: int | None = self._db.value(query, (tenant, told.key))
            return known
        if told.given_id:
            return None
        # By the digest alone, which few share; a session or a time may be that of all memories.
        rows = self._db.execute(
            "SELECT memory_no, session, text, expires_at FROM memories WHERE tenant = ? AND digest = ?"
            " ORDER BY memory_no",
            (tenant, told.digest),
        )
        same = (told.session, told.text, told.expires_at)
        return next((int(row[0]) for row in rows if (row[1], row[2], row[3]) == same), None)

    def _insert(self, tenant: str, number: int, told: Told, joined_to: int | None) -> None:
        values = [getattr(told, name) for name in _TOLD.split(", ")]
        row = (tenant, number, number, joined_to, told.created_at, "", 0, 0, *values)
        columns = "tenant, memory_no, seq, joined_to, told_at, used_at, helped, not_helped"
        self._db.put_rows("memories", f"{columns}, {_TOLD}", [row])

    def _tell_again(self, tenant: str, number: int, at: str) -> None:
        """What is said once more is as new as that, and what it says may be so again."""
        row = self._db.execute(
            "SELECT told_at, joined_to FROM memories WHERE tenant = ? AND memory_no = ?", (tenant, number)
        ).fetchone()
        if str(row[0]) < at:
            self._db.execute(
                "UPDATE memories SET told_at = ?, superseded_by = NULL, seq = ? WHERE tenant = ? AND memory_no = ?",
                (at, self._next_seq(tenant), tenant, number),
            )
        if row[1] is not None:
            self._tell_again(tenant, int(row[1]), at)

    def _next_seq(self, tenant: str) -> int:
        """The number of one more change."""
        query = "UPDATE memory_tenants SET last_seq = last_seq + 1 WHERE tenant = ? RETURNING last_seq"
        return int(self._db.value(query, (tenant,)))

    def _supersede(self, tenant: str, replaced: str, number: int) -> None:
        """Mark a memory, by its id, as said anew by another. Raises UsageError if there is none."""
        row = self._db.execute(
            "SELECT COALESCE(o.joined_to, o.memory_no), COALESCE(n.joined_to, n.memory_no) FROM memories o"
            " JOIN memories n ON n.tenant = o.tenant WHERE o.tenant = ? AND o.id = ? AND n.memory_no = ?",
            (tenant, replaced, number),
        ).fetchone()
        if row is None:
            raise UsageError(f"no memory has the id {replaced[:80]}", hint="see them with: ctx recall")
        older, newer = int(row[0]), int(row[1])
        if older != newer:
            self._db.execute(
                "UPDATE memories SET superseded_by = CASE WHEN memory_no = ? THEN ? END, seq = ?"
                " WHERE tenant = ? AND memory_no IN (?, ?)",
                (older, newer, self._next_seq(tenant), tenant, older, newer),
            )

    def join(self, tenant: str, number: int, to: int) -> bool:
        """Let a memory be found as another that says the same. False if either is gone or joined by now."""
        rows = self._db.execute(
            "SELECT memory_no, joined_to, created_at FROM memories WHERE tenant = ? AND memory_no IN (?, ?)",
            (tenant, number, to),
        ).fetchall()
        if number == to or len(rows) < 2 or any(row[1] is not None for row in rows):
            return False
        told = next(str(row[2]) for row in rows if int(row[0]) == number)
        for table in ("memory_words", "memory_vectors"):
            self._db.execute(f"DELETE FROM {table} WHERE tenant = ? AND memory_no = ?", (tenant, number))
        self._db.execute(
            "UPDATE memories SET joined_to = ?, superseded_by = NULL, seq = ?"
            " WHERE tenant = ? AND (memory_no = ? OR joined_to = ?)",
            (to, self._next_seq(tenant), tenant, number, number),
        )
        self._db.execute(
            "UPDATE memories SET superseded_by = ? WHERE tenant = ? AND superseded_by = ? AND memory_no <> ?",
            (to, tenant, number, to),
        )
        self._tell_again(tenant, to, told)
        return True

    def write_vectors(self, tenant: str, encoder: str, numbers: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Vectors (n, dim) of memories; of those that are gone or joined by now none is written."""
        query = "SELECT memory_no FROM memories WHERE tenant = ? AND joined_to IS NULL AND memory_no IN"
        there = {int(row[0]) for row in self._db.rows_in(query, numbers, first=(tenant,))}
        packed = zip(numbers, pack_vectors(vectors), strict=True)
        rows = [(tenant, number, encoder, vector) for number, vector in packed if number in there]
        self._db.put_rows("memory_vectors", "tenant, memory_no, encoder, vector", rows, over="tenant, memory_no")

    def give_feedback(self, tenant: str, number: int, *, helped: bool, score: float, at: str) -> None:
        """Keep it, with the last ones before it; the counts are of those that are kept."""
        seq = self._next_seq(tenant)
        row = (tenant, number, seq, int(helped), score, at)
        self._db.put_rows("memory_feedback", "tenant, memory_no, seq, helped, score, given_at", [row])
        kept = self._db.execute(
            "SELECT seq, helped FROM memory_feedback WHERE tenant = ? AND memory_no = ? ORDER BY seq DESC LIMIT ?",
            (tenant, number, _MOST_FEEDBACK),
        ).fetchall()
        self._db.execute(
            "DELETE FROM memory_feedback WHERE tenant = ? AND memory_no = ? AND seq < ?",
            (tenant, number, int(kept[-1][0])),
        )
        good = sum(int(row[1]) for row in kept)
        self._db.execute(
            "UPDATE memories SET helped = ?, not_helped = ?, seq = ? WHERE tenant = ? AND memory_no = ?",
            (good, len(kept) - good, seq, tenant, number),
        )

    def note_used(self, tenant: str, used: Mapping[int, str]) -> None:
        """When memories were last recalled; no reason to read them again."""
        self._db.executemany(
            "UPDATE memories SET used_at = ? WHERE tenant = ? AND memory_no = ? AND used_at < ?",
            [(at, tenant, number, at) for number, at in used.items()],
        )

    def chosen(self, tenant: str, within: Within, limit: int) -> list[int]:
        """The numbers of those of a session or, if it names none, of all; joined ones first, for they hold nobody."""
        among, values = ("", []) if within.session is None else (" AND session = ?", [within.session])
        return self._db.column(
            f"SELECT memory_no FROM memories WHERE tenant = ?{among}"
            " ORDER BY CASE WHEN joined_to IS NULL THEN 1 ELSE 0 END, memory_no LIMIT ?",
            (tenant, *values, limit),
        )

    def expired(self, tenant: str, now: str, limit: int) -> list[int]:
        return self._db.column(
            "SELECT memory_no FROM memories WHERE tenant = ? AND expires_at <> '' AND expires_at <= ? LIMIT ?",
            (tenant, now, limit),
        )

    def summaries(self, tenant: str, numbers: Sequence[int]) -> list[int]:
        """What was made from these memories, and what was made from that."""
        found: dict[int, None] = {}
        waiting = list(numbers)
        while waiting:
            query = "SELECT memory_no FROM memory_sources WHERE tenant = ? AND source_id IN"
            made = [int(row[0]) for row in self._db.rows_in(query, self._ids(tenant, waiting), first=(tenant,))]
            waiting = [number for number in dict.fromkeys(made) if number not in found and number not in numbers]
            found.update(dict.fromkeys(waiting))
        return list(found)

    def forget(self, tenant: str, numbers: Sequence[int]) -> list[str]:
        """These memories, and nothing of what is told of others; their ids."""
        ids = self._ids(tenant, numbers)
        self._db.packages.leave([f"memory:{each}" for each in ids])
        self._db.labels.leave_targets([(tenant, f"memory:{each}") for each in ids])
        gone = set(numbers)
        for number in numbers:
            self._promote(tenant, number, gone)
        query = "UPDATE memories SET superseded_by = NULL, seq = ? WHERE tenant = ? AND superseded_by IN"
        self._db.rows_in(query, numbers, first=(self._next_seq(tenant), tenant))
        self._db.rows_in("DELETE FROM memories WHERE tenant = ? AND memory_no IN", numbers, first=(tenant,))
        self._db.graph.drop_lonely_sessions(tenant)
        self._db.execute("UPDATE memory_tenants SET version = version + 1 WHERE tenant = ?", (tenant,))
        self._db.execute(
            "DELETE FROM memory_tenants WHERE tenant = ? AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.tenant = ?)",
            (tenant, tenant),
        )
        return ids

    def _promote(self, tenant: str, number: int, gone: Iterable[int]) -> None:
        """The first of those that were joined to a memory takes its place: they say the same."""
        rows = self._db.execute(
            "SELECT memory_no, speaker, text, told_at FROM memories WHERE tenant = ? AND joined_to = ?"
            " ORDER BY memory_no",
            (tenant, number),
        ).fetchall()
        left = [row for row in rows if int(row[0]) not in gone]
        if not left:
            return
        heir = int(left[0][0])
        self._db.execute(
            "UPDATE memories SET joined_to = NULL, told_at = ?, seq = ? WHERE tenant = ? AND memory_no = ?",
            (max(str(row[3]) for row in left), self._next_seq(tenant), tenant, heir),
        )
        self._db.execute(
            "UPDATE memories SET joined_to = ?, seq = ? WHERE tenant = ? AND joined_to = ?",
            (heir, self._next_seq(tenant), tenant, number),
        )
        self.write_words(tenant, heir, words_of(text=str(left[0][2]), speaker=str(left[0][1])))

    def _ids(self, tenant: str, numbers: Sequence[int]) -> list[str]:
        query = "SELECT id FROM memories WHERE tenant = ? AND memory_no IN"
        return [str(row[0]) for row in self._db.rows_in(query, numbers, "ORDER BY memory_no", first=(tenant,))]
