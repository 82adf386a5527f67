"""The words of memories, kept with them: analysed by the rules that questions are read by.

Unlike pages they have no FTS5: how rare a word is must be counted within a tenant, and a tenant's words are few enough
to be held in memory (`research.search.memories`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from research.store.catalog.reader import Connection
from research.store.fulltext.analyzer import analyze

_A_BATCH = 1000


def words_of(text: str, speaker: str) -> str:
    """What stands in the table for what was said."""
    return " ".join(analyze(spoken_text(text, speaker)))


def spoken_text(text: str, speaker: str) -> str:
    """What somebody says, without the name before it: "Anna: I am in Bonn"."""
    before, colon, said = text.partition(":")
    return said.strip() if speaker and colon and before.strip() == speaker and said.strip() else text


def write_words(connection: sqlite3.Connection, tenant: str, memory_no: int, body: str) -> None:
    """Part of the caller's transaction, as is the next."""
    connection.execute(
        "INSERT INTO memory_words (tenant, memory_no, body) VALUES (?, ?, ?)"
        " ON CONFLICT (tenant, memory_no) DO UPDATE SET body = excluded.body",
        (tenant, memory_no, body),
    )


def drop_words(connection: sqlite3.Connection, tenant: str, memory_no: int) -> None:
    connection.execute("DELETE FROM memory_words WHERE tenant = ? AND memory_no = ?", (tenant, memory_no))


def outdated_words(connection: Connection) -> Iterator[tuple[str, int, str | None]]:
    """(tenant, memory_no, words) of whatever has other words than its text says; None: it should have none."""
    tenants = [str(row[0]) for row in connection.execute("SELECT tenant FROM memory_tenants ORDER BY tenant")]
    for tenant in tenants:
        last = 0
        while rows := _rows_after(connection, tenant, last):
            for memory_no, speaker, text, joined_to, body in rows:
                wanted = None if joined_to is not None else words_of(text, speaker)
                if wanted != body:
                    yield tenant, memory_no, wanted
            last = rows[-1][0]


def update_words(connection: sqlite3.Connection) -> int:
    """Bring all of them up to the analyzer; part of the caller's transaction. Returns how many were changed."""
    changed = list(outdated_words(connection))
    for tenant, memory_no, body in changed:
        if body is None:
            drop_words(connection, tenant, memory_no)
        else:
            write_words(connection, tenant, memory_no, body)
    for tenant in dict.fromkeys(tenant for tenant, _, _ in changed):
        connection.execute("UPDATE memory_tenants SET version = version + 1 WHERE tenant = ?", (tenant,))
    return len(changed)


def _rows_after(
    connection: Connection, tenant: str, memory_no: int
) -> list[tuple[int, str, str, int | None, str | None]]:
    rows = connection.execute(
        "SELECT m.memory_no, m.speaker, m.text, m.joined_to, w.body FROM memories m"
        " LEFT JOIN memory_words w ON w.tenant = m.tenant AND w.memory_no = m.memory_no"
        " WHERE m.tenant = ? AND m.memory_no > ? ORDER BY m.memory_no LIMIT ?",
        (tenant, memory_no, _A_BATCH),
    )
    return [(int(row[0]), str(row[1]), str(row[2]), row[3], row[4]) for row in rows.fetchall()]
