"""Turns of sessions: what was asked, and the pages that answered. Every statement names the tenant first.

Writing is short, and part of the caller's transaction. Quotes and written answers are text of documents: when one goes
or changes, they go from every turn (`leave_sessions`), and so does what its words made of a question.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from research.memories import AskedTurn, CitedPage, Session
from research.store.catalog.labels import leave_targets
from research.store.catalog.pages import batched, placeholders
from research.store.catalog.reader import Reader, Writer, put_rows

_TURN = ("number", "asked_at", "model", "question", "searched", "answer")
LONGEST_TEXT = 1 << 16  # characters of a question, a quote or an answer; what is longer loses its end


def add_turn(connection: Writer, tenant: str, session: str, turn: AskedTurn) -> int:
    """Its number in the session. Pages of documents that are gone meanwhile are left out."""
    number = 1 + int(
        connection.execute(
            "SELECT COALESCE(MAX(turn_no), 0) FROM turns WHERE tenant = ? AND session = ?", (tenant, session)
        ).fetchone()[0]
    )
    texts = [text[:LONGEST_TEXT] for text in (turn.question, turn.searched, turn.answer)]
    row = (tenant, session, number, turn.asked_at, turn.model, *texts)
    put_rows(connection, "turns", "tenant, session, turn_no, asked_at, model, question, searched, answer", [row])
    connection.executemany(
        "INSERT INTO turn_sources (tenant, session, turn_no, citation, doc_id, page, score, quotes)"
        " SELECT ?, ?, ?, ?, doc_id, ?, ?, ? FROM documents WHERE doc_id = ?",
        [
            (tenant, session, number, each.citation, each.page, each.relevance_score, _packed(each.quotes), each.doc_id)
            for each in turn.sources
        ],
    )
    return number


def keep_answer(connection: Writer, tenant: str, session: str, number: int, *, answer: str, model: str) -> None:
    """What a model wrote to a turn."""
    connection.execute(
        "UPDATE turns SET answer = ?, model = ? WHERE tenant = ? AND session = ? AND turn_no = ?",
        (answer[:LONGEST_TEXT], model, tenant, session, number),
    )


def turns_of(reader: Reader, tenant: str, session: str, *, last: int | None = None) -> list[AskedTurn]:
    """All of them or the last, oldest first."""
    rows = reader.connection.execute(
        "SELECT turn_no, asked_at, model, question, searched, answer FROM turns WHERE tenant = ? AND session = ?"
        " ORDER BY turn_no DESC LIMIT ?",
        (tenant, session, (1 << 62) if last is None else last),
    ).fetchall()[::-1]
    sources = _sources(reader, tenant, session, int(rows[0][0])) if rows else {}
    return [AskedTurn(**dict(zip(_TURN, row, strict=True)), sources=tuple(sources.get(row[0], ()))) for row in rows]


def list_sessions(reader: Reader, tenant: str) -> list[Session]:
    """The one asked last first."""
    rows = reader.connection.execute(
        "SELECT t.session, COUNT(*), MIN(t.asked_at), MAX(t.asked_at),"
        " (SELECT f.question FROM turns f WHERE f.tenant = t.tenant AND f.session = t.session"
        " ORDER BY f.turn_no LIMIT 1)"
        " FROM turns t WHERE t.tenant = ? GROUP BY t.tenant, t.session ORDER BY MAX(t.asked_at) DESC, t.session",
        (tenant,),
    )
    return [Session(*row) for row in rows]


def count_turns(reader: Reader) -> tuple[int, int]:
    """Sessions and turns of everybody: how many there are, and nothing of them."""
    row = reader.connection.execute(
        "SELECT COUNT(*), COALESCE(SUM(turns), 0)"
        " FROM (SELECT COUNT(*) AS turns FROM turns GROUP BY tenant, session) AS sessions"
    ).fetchone()
    return int(row[0]), int(row[1])


def remove_session(connection: Writer, tenant: str, session: str) -> int:
    """How many turns it had."""
    row = connection.execute(
        "SELECT COUNT(*) FROM turns WHERE tenant = ? AND session = ?", (tenant, session)
    ).fetchone()
    connection.execute("DELETE FROM turns WHERE tenant = ? AND session = ?", (tenant, session))
    leave_targets(connection, [(tenant, f"session:{session}")])
    return int(row[0])


def leave_sessions(connection: Writer, doc_ids: Collection[str], heir: str = "") -> None:
    """These documents are gone, and with them what was quoted and written from them. Citations pass to `heir`, if their
    file holds another document now."""
    for part in batched(sorted(set(doc_ids) - {heir})):
        among = placeholders(part)
        connection.execute(
            "UPDATE turns SET answer = '', searched = question WHERE (tenant, session) IN"
            f" (SELECT tenant, session FROM turn_sources WHERE doc_id IN ({among}))",
            part,
        )
        if heir:
            connection.execute(
                f"UPDATE turn_sources SET doc_id = ?, quotes = '[]' WHERE doc_id IN ({among})", (heir, *part)
            )
        else:
            connection.execute(f"DELETE FROM turn_sources WHERE doc_id IN ({among})", part)


def lost_documents(reader: Reader) -> list[str]:
    """Ids that turns cite and that mean no document, which no run of ours leaves behind."""
    rows = reader.connection.execute(
        "SELECT DISTINCT doc_id FROM turn_sources s"
        " WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.doc_id = s.doc_id) ORDER BY doc_id"
    )
    return [str(row[0]) for row in rows]


def _sources(reader: Reader, tenant: str, session: str, first: int) -> dict[int, list[CitedPage]]:
    rows = reader.connection.execute(
        "SELECT turn_no, citation, doc_id, page, score, quotes, filename FROM turn_sources"
        " JOIN documents USING (doc_id) WHERE tenant = ? AND session = ? AND turn_no >= ? ORDER BY turn_no, citation",
        (tenant, session, first),
    )
    found: dict[int, list[CitedPage]] = {}
    for number, citation, doc_id, page, score, quotes, filename in rows:
        cited = CitedPage(int(citation), str(doc_id), int(page), float(score), tuple(json.loads(quotes)), str(filename))
        found.setdefault(int(number), []).append(cited)
    return found


def _packed(quotes: Sequence[str]) -> str:
    return json.dumps([quote[:LONGEST_TEXT] for quote in quotes], ensure_ascii=False)
