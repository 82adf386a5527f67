"""Memories: reading them, and their words, analysed by the rules that questions are read by. Every statement names the
tenant first: what belongs to another is not found by any of them.

What the index as a whole holds (`count`, `tenants`) is for whoever looks after it, and has no text in it.

Unlike pages they have no FTS5: how rare a word is must be counted within a tenant, and a tenant's words are few enough
to be held in memory (`research.search.memories`).

Turns of sessions: what was asked, and the pages that answered. Every statement names the tenant first.

Writing is short, and part of the caller's transaction. Quotes and written answers are text of documents: when one goes
or changes, they go from every turn (`Sessions.leave`), and so does what its words made of a question.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from research.memories import AskedTurn, CitedPage, Memory, Session, Within
from research.store.analyzer import analyze
from research.store.reader import Repository, batched, placeholders, stacked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_VALUES = 10  # a memory, as `batched` counts them: so many are not read before the first is needed
# In the order of `Memory`'s fields, but for what is looked up besides.
_FIELDS = (
    "id, text, type, category, importance, tags, namespace, session, persona, speaker, metadata, created_at, told_at,"
    " last_used_at, expires_at, key, helped, not_helped, joined_to, superseded_by"
)
_COLUMNS = (
    "m.memory_no, m.id, m.text, m.type, m.category, m.importance, m.tags, m.namespace, m.session, m.persona, m.speaker,"
    " m.metadata, m.created_at, m.told_at, m.used_at, m.expires_at, m.key, m.helped, m.not_helped,"
    " COALESCE(j.id, ''), COALESCE(n.id, '')"
)
_TABLES = (
    "memories m LEFT JOIN memories j ON j.tenant = m.tenant AND j.memory_no = m.joined_to"
    " LEFT JOIN memories n ON n.tenant = m.tenant AND n.memory_no = m.superseded_by"
)


@dataclass(frozen=True, slots=True)
class TenantState:
    """What tells whether a tenant's memories are still those that were read."""

    version: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class SearchedRow:
    """A memory as searching needs it: its words and what it is filtered and ordered by."""

    memory_no: int
    joined_to: int | None
    superseded_by: int | None
    type: str
    importance: float
    namespace: str
    session: str
    persona: str
    speaker: str
    created_at: str
    told_at: str
    expires_at: str
    helped: int
    not_helped: int
    tags: str
    ending: str  # the last character
    body: str | None


def _where(within: Within) -> tuple[str, list[Any]]:
    """More conditions, and their values. Tags are one text and are looked at afterwards."""
    parts: list[tuple[str, list[Any]]] = []
    if within.session is not None:
        parts.append(("session = ?", [within.session]))
    if within.persona is not None:
        parts.append(("persona IN ('', ?)", [within.persona]))
    if within.namespace is not None:
        parts.append(("namespace = ?", [within.namespace]))
    if within.types:
        parts.append((f"type IN ({placeholders(within.types)})", list(within.types)))
    return "".join(f" AND {text}" for text, _ in parts), [value for _, values in parts for value in values]


def _memory(tenant: str, row: Sequence[Any], also: tuple[str, ...]) -> Memory:
    fields = dict(zip(_FIELDS.split(", "), tuple(row)[1:], strict=True))
    fields |= {"tags": tuple(json.loads(fields["tags"])), "metadata": json.loads(fields["metadata"])}
    return Memory(**fields, tenant=tenant, also=also)


_A_BATCH = 1000


def words_of(text: str, speaker: str) -> str:
    """What stands in the table for what was said."""
    return " ".join(analyze(spoken_text(text, speaker)))


def spoken_text(text: str, speaker: str) -> str:
    """What somebody says, without the name before it: "Anna: I am in Bonn"."""
    before, colon, said = text.partition(":")
    return said.strip() if speaker and colon and before.strip() == speaker and said.strip() else text


class Memories(Repository):
    """Memories of tenants. Every method but those for whoever looks after the index names the tenant first."""

    def state(self, tenant: str) -> TenantState | None:
        """None: nothing is remembered for this tenant."""
        row = self._db.execute("SELECT version, last_seq FROM memory_tenants WHERE tenant = ?", (tenant,)).fetchone()
        return None if row is None else TenantState(int(row[0]), int(row[1]))

    def rows_after(self, tenant: str, seq: int) -> list[SearchedRow]:
        """Every memory that was told or changed after this, in the order of arrival."""
        return self._db.records(
            SearchedRow,
            "SELECT m.memory_no, m.joined_to, m.superseded_by, m.type, m.importance, m.namespace, m.session, m.persona,"
            " m.speaker, m.created_at, m.told_at, m.expires_at, m.helped, m.not_helped, m.tags,"
            " substr(m.text, length(m.text)), w.body"
            " FROM memories m LEFT JOIN memory_words w ON w.tenant = m.tenant AND w.memory_no = m.memory_no"
            " WHERE m.tenant = ? AND m.seq > ? ORDER BY m.memory_no",
            (tenant, seq),
        )

    def vectors(
        self, tenant: str, encoder: str, numbers: Sequence[int] | None = None
    ) -> tuple[list[int], NDArray[np.float32]]:
        """Those that this encoder made, of all memories or of these: their numbers, in order, and (n, dim)."""
        import numpy as np

        query = "SELECT memory_no, vector FROM memory_vectors WHERE tenant = ? AND encoder = ?"
        of, order = (tenant, encoder), "ORDER BY memory_no"
        if numbers is None:
            rows = self._db.execute(f"{query} {order}", of).fetchall()
        else:
            rows = list(self._db.rows_in(f"{query} AND memory_no IN", numbers, order, first=of))
        found, vectors = stacked(rows)
        return found, vectors.astype(np.float32)

    def get(self, tenant: str, numbers: Sequence[int]) -> dict[int, Memory]:
        """By their numbers, with the ids that are joined to them."""
        query = f"SELECT {_COLUMNS} FROM {_TABLES} WHERE m.tenant = ? AND m.memory_no IN"
        rows = self._db.rows_in(query, numbers, first=(tenant,))
        also = self._joined(tenant, [row[0] for row in rows])
        return {int(row[0]): _memory(tenant, row, tuple(also.get(row[0], ()))) for row in rows}

    def numbers(self, tenant: str, ids: Iterable[str]) -> dict[str, int]:
        """id → number, for those there are."""
        query = "SELECT id, memory_no FROM memories WHERE tenant = ? AND id IN"
        return {str(name): int(number) for name, number in self._db.rows_in(query, ids, first=(tenant,))}

    def select(
        self, tenant: str, within: Within, *, now: str = "", limit: int | None = None, newest: bool = True
    ) -> Iterator[Memory]:
        """Those that a restriction leaves, the newest first or last; `now`: without what has expired."""
        where, values = _where(within)
        if now:
            where, values = f"{where} AND (expires_at = '' OR expires_at > ?)", [*values, now]
        order = "DESC" if newest else "ASC"
        query = f"SELECT memory_no FROM memories WHERE tenant = ?{where} ORDER BY created_at {order}, memory_no {order}"
        numbers = self._db.column(query, (tenant, *values))
        yield from islice(self._with_tags(tenant, numbers, within.tags), limit)

    def _with_tags(self, tenant: str, numbers: list[int], tags: tuple[str, ...]) -> Iterator[Memory]:
        for part in batched(numbers, values=_VALUES):
            found = self.get(tenant, part)
            yield from (found[number] for number in part if set(tags) <= set(found[number].tags))

    def pending_vectors(self, tenant: str, encoder: str, limit: int) -> list[tuple[int, str, str]]:
        """(number, speaker, text) of what has no vector of this encoder, the newest first."""
        rows = self._db.execute(
            "SELECT m.memory_no, m.speaker, m.text FROM memories m"
            " LEFT JOIN memory_vectors v ON v.tenant = m.tenant AND v.memory_no = m.memory_no AND v.encoder = ?"
            " WHERE m.tenant = ? AND m.joined_to IS NULL AND v.memory_no IS NULL ORDER BY m.memory_no DESC LIMIT ?",
            (encoder, tenant, limit),
        )
        return [(int(row[0]), str(row[1]), str(row[2])) for row in rows]

    def tenants(self) -> list[str]:
        """Everyone something is remembered for."""
        return self._db.column("SELECT tenant FROM memory_tenants ORDER BY tenant")

    def count(self) -> tuple[int, int]:
        """How many there are, and how many of them no encoder has seen yet."""
        row = self._db.execute(
            "SELECT (SELECT COUNT(*) FROM memories), (SELECT COUNT(*) FROM memory_words), COUNT(*) FROM memory_vectors"
        ).fetchone()
        return int(row[0]), max(0, int(row[1]) - int(row[2]))

    def _joined(self, tenant: str, numbers: list[int]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        query = "SELECT joined_to, id FROM memories WHERE tenant = ? AND joined_to IN"
        for number, name in self._db.rows_in(query, numbers, "ORDER BY joined_to, memory_no", first=(tenant,)):
            found.setdefault(int(number), []).append(str(name))
        return found

    def write_words(self, tenant: str, memory_no: int, body: str) -> None:
        """Part of the caller's transaction, as is the next."""
        row = (tenant, memory_no, body)
        self._db.put_rows("memory_words", "tenant, memory_no, body", [row], over="tenant, memory_no")

    def drop_words(self, tenant: str, memory_no: int) -> None:
        self._db.execute("DELETE FROM memory_words WHERE tenant = ? AND memory_no = ?", (tenant, memory_no))

    def outdated_words(self) -> Iterator[tuple[str, int, str | None]]:
        """(tenant, memory_no, words) of whatever has other words than its text says; None: it should have none."""
        query = (
            "SELECT m.memory_no, m.speaker, m.text, m.joined_to, w.body FROM memories m"
            " LEFT JOIN memory_words w ON w.tenant = m.tenant AND w.memory_no = m.memory_no"
            " WHERE m.tenant = ? AND m.memory_no > ? ORDER BY m.memory_no LIMIT ?"
        )
        for tenant in self.tenants():
            last = 0
            while rows := self._db.execute(query, (tenant, last, _A_BATCH)).fetchall():
                for memory_no, speaker, text, joined_to, body in rows:
                    wanted = None if joined_to is not None else words_of(text, speaker)
                    if wanted != body:
                        yield tenant, int(memory_no), wanted
                last = int(rows[-1][0])

    def update_words(self) -> int:
        """Bring all of them up to the analyzer; part of the caller's transaction. Returns how many were changed."""
        changed = list(self.outdated_words())
        for tenant, memory_no, body in changed:
            if body is None:
                self.drop_words(tenant, memory_no)
            else:
                self.write_words(tenant, memory_no, body)
        for tenant in dict.fromkeys(tenant for tenant, _, _ in changed):
            self._db.execute("UPDATE memory_tenants SET version = version + 1 WHERE tenant = ?", (tenant,))
        return len(changed)


_TURN = ("number", "asked_at", "model", "question", "searched", "answer")
LONGEST_TEXT = 1 << 16  # characters of a question, a quote or an answer; what is longer loses its end


def _packed(quotes: Sequence[str]) -> str:
    return json.dumps([quote[:LONGEST_TEXT] for quote in quotes], ensure_ascii=False)


class Sessions(Repository):
    """Turns of sessions, with the pages that they cite."""

    def add(self, tenant: str, session: str, turn: AskedTurn) -> int:
        """Its number in the session. Pages of documents that are gone meanwhile are left out."""
        query = "SELECT COALESCE(MAX(turn_no), 0) + 1 FROM turns WHERE tenant = ? AND session = ?"
        number = int(self._db.value(query, (tenant, session)))
        texts = [text[:LONGEST_TEXT] for text in (turn.question, turn.searched, turn.answer)]
        row = (tenant, session, number, turn.asked_at, turn.model, *texts)
        self._db.put_rows("turns", "tenant, session, turn_no, asked_at, model, question, searched, answer", [row])
        query = "SELECT doc_id FROM documents WHERE doc_id IN"
        there = {row[0] for row in self._db.rows_in(query, [each.doc_id for each in turn.sources])}
        cited = [
            (each.citation, each.doc_id, each.page, each.relevance_score, _packed(each.quotes))
            for each in turn.sources
            if each.doc_id in there
        ]
        columns = "tenant, session, turn_no, citation, doc_id, page, score, quotes"
        self._db.put_rows("turn_sources", columns, [(tenant, session, number, *each) for each in cited])
        return number

    def keep_answer(self, tenant: str, session: str, number: int, *, answer: str, model: str) -> None:
        """What a model wrote to a turn."""
        self._db.execute(
            "UPDATE turns SET answer = ?, model = ? WHERE tenant = ? AND session = ? AND turn_no = ?",
            (answer[:LONGEST_TEXT], model, tenant, session, number),
        )

    def turns(self, tenant: str, session: str, *, last: int | None = None) -> list[AskedTurn]:
        """All of them or the last, oldest first."""
        rows = self._db.execute(
            "SELECT turn_no, asked_at, model, question, searched, answer FROM turns WHERE tenant = ? AND session = ?"
            " ORDER BY turn_no DESC LIMIT ?",
            (tenant, session, (1 << 62) if last is None else last),
        ).fetchall()[::-1]
        sources = self._sources(tenant, session, int(rows[0][0])) if rows else {}
        return [AskedTurn(**dict(zip(_TURN, row, strict=True)), sources=tuple(sources.get(row[0], ()))) for row in rows]

    def all(self, tenant: str) -> list[Session]:
        """The one asked last first."""
        return self._db.records(
            Session,
            "SELECT t.session, COUNT(*), MIN(t.asked_at), MAX(t.asked_at),"
            " (SELECT f.question FROM turns f WHERE f.tenant = t.tenant AND f.session = t.session"
            " ORDER BY f.turn_no LIMIT 1)"
            " FROM turns t WHERE t.tenant = ? GROUP BY t.tenant, t.session ORDER BY MAX(t.asked_at) DESC, t.session",
            (tenant,),
        )

    def count(self) -> tuple[int, int]:
        """Sessions and turns of everybody: how many there are, and nothing of them."""
        row = self._db.execute(
            "SELECT COUNT(*), COALESCE(SUM(turns), 0)"
            " FROM (SELECT COUNT(*) AS turns FROM turns GROUP BY tenant, session) AS sessions"
        ).fetchone()
        return int(row[0]), int(row[1])

    def remove(self, tenant: str, session: str) -> int:
        """How many turns it had."""
        turns = self._db.column(
            "DELETE FROM turns WHERE tenant = ? AND session = ? RETURNING turn_no", (tenant, session)
        )
        self._db.labels.leave_targets([(tenant, f"session:{session}")])
        return len(turns)

    def leave(self, doc_ids: Collection[str], heir: str = "") -> None:
        """These documents are gone, and with them what was quoted and written from them. Citations pass to `heir`, if
        their file holds another document now."""
        gone = sorted(set(doc_ids) - {heir})
        self._db.rows_in(
            "UPDATE turns SET answer = '', searched = question WHERE (tenant, session) IN"
            " (SELECT tenant, session FROM turn_sources WHERE doc_id IN",
            gone,
            ")",
        )
        if heir:
            self._db.rows_in("UPDATE turn_sources SET doc_id = ?, quotes = '[]' WHERE doc_id IN", gone, first=(heir,))
        else:
            self._db.rows_in("DELETE FROM turn_sources WHERE doc_id IN", gone)

    def lost_documents(self) -> list[str]:
        """Ids that turns cite and that mean no document, which no run of ours leaves behind."""
        return self._db.column(
            "SELECT DISTINCT doc_id FROM turn_sources s"
            " WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.doc_id = s.doc_id) ORDER BY doc_id"
        )

    def _sources(self, tenant: str, session: str, first: int) -> dict[int, list[CitedPage]]:
        rows = self._db.execute(
            "SELECT turn_no, citation, doc_id, page, score, quotes, filename FROM turn_sources"
            " JOIN documents USING (doc_id) WHERE tenant = ? AND session = ? AND turn_no >= ?"
            " ORDER BY turn_no, citation",
            (tenant, session, first),
        )
        found: dict[int, list[CitedPage]] = {}
        for number, citation, doc_id, page, score, quotes, filename in rows:
            cited = CitedPage(citation, doc_id, page, score, tuple(json.loads(quotes)), filename)
            found.setdefault(int(number), []).append(cited)
        return found
