"""Turns of sessions: what was asked, and the pages that answered. Every statement names the tenant first.

Writing is short, and part of the caller's transaction. Quotes and written answers are text of documents: when one goes
or changes, they go from every turn (`leave_sessions`), and so does what its words made of a question.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from research.memories import AskedTurn, CitedPage, Session
from research.store.reader import Repository

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
