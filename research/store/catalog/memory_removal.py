"""Forgetting memories: also what was made from them, and what was joined to them.

Part of the caller's transaction. What goes is gone from every table: words, vectors, facts, sources and feedback belong
to their memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from research.memories import Within
from research.store.catalog.edge_writes import drop_lonely_sessions
from research.store.catalog.labels import leave_targets
from research.store.catalog.memory_writes import facts_of, next_seq, settle_facts
from research.store.catalog.packages import leave_packages
from research.store.catalog.pages import batched, placeholders
from research.store.fulltext.memory_words import words_of, write_words

A_STEP = 1000
"""Memories that one transaction forgets: short writes find their turn between two."""


def chosen(connection: sqlite3.Connection, tenant: str, within: Within, limit: int) -> list[int]:
    """The numbers of those of a session or, if it names none, of all; joined ones first, for they hold nobody."""
    among, values = ("", []) if within.session is None else (" AND session = ?", [within.session])
    rows = connection.execute(
        f"SELECT memory_no FROM memories WHERE tenant = ?{among}"
        " ORDER BY CASE WHEN joined_to IS NULL THEN 1 ELSE 0 END, memory_no LIMIT ?",
        (tenant, *values, limit),
    )
    return [int(row[0]) for row in rows]


def expired(connection: sqlite3.Connection, tenant: str, now: str, limit: int) -> list[int]:
    rows = connection.execute(
        "SELECT memory_no FROM memories WHERE tenant = ? AND expires_at <> '' AND expires_at <= ? LIMIT ?",
        (tenant, now, limit),
    )
    return [int(row[0]) for row in rows]


def summaries_of(connection: sqlite3.Connection, tenant: str, numbers: Sequence[int]) -> list[int]:
    """What was made from these memories, and what was made from that."""
    found: dict[int, None] = {}
    waiting = list(numbers)
    while waiting:
        made: list[int] = []
        for part in batched(_ids(connection, tenant, waiting)):
            query = f"SELECT memory_no FROM memory_sources WHERE tenant = ? AND source_id IN ({placeholders(part)})"
            made += [int(row[0]) for row in connection.execute(query, (tenant, *part))]
        waiting = [number for number in dict.fromkeys(made) if number not in found and number not in numbers]
        found.update(dict.fromkeys(waiting))
    return list(found)


def forget(connection: sqlite3.Connection, tenant: str, numbers: Sequence[int]) -> list[str]:
    """These memories, and nothing of what is told of others; their ids."""
    ids = _ids(connection, tenant, numbers)
    leave_packages(connection, [f"memory:{each}" for each in ids])
    leave_targets(connection, tenant, [f"memory:{each}" for each in ids])
    gone = set(numbers)
    facts = facts_of(connection, tenant, numbers)
    for number in numbers:
        _promote(connection, tenant, number, gone)
    for part in batched(numbers):
        marks = placeholders(part)
        connection.execute(
            f"UPDATE memories SET superseded_by = NULL, seq = ? WHERE tenant = ? AND superseded_by IN ({marks})",
            (next_seq(connection, tenant), tenant, *part),
        )
        connection.execute(f"DELETE FROM memories WHERE tenant = ? AND memory_no IN ({marks})", (tenant, *part))
    settle_facts(connection, tenant, facts)
    drop_lonely_sessions(connection, tenant)
    connection.execute("UPDATE memory_tenants SET version = version + 1 WHERE tenant = ?", (tenant,))
    connection.execute(
        "DELETE FROM memory_tenants WHERE tenant = ? AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.tenant = ?)",
        (tenant, tenant),
    )
    return ids


def _promote(connection: sqlite3.Connection, tenant: str, number: int, gone: Iterable[int]) -> None:
    """The first of those that were joined to a memory takes its place, and its facts: they say the same."""
    rows = connection.execute(
        "SELECT memory_no, speaker, text, told_at FROM memories WHERE tenant = ? AND joined_to = ? ORDER BY memory_no",
        (tenant, number),
    ).fetchall()
    left = [row for row in rows if int(row[0]) not in gone]
    if not left:
        return
    heir = int(left[0][0])
    connection.execute(
        "UPDATE memories SET joined_to = NULL, told_at = ?, seq = ? WHERE tenant = ? AND memory_no = ?",
        (max(str(row[3]) for row in left), next_seq(connection, tenant), tenant, heir),
    )
    connection.execute(
        "UPDATE memories SET joined_to = ?, seq = ? WHERE tenant = ? AND joined_to = ?",
        (heir, next_seq(connection, tenant), tenant, number),
    )
    connection.execute(
        "UPDATE memory_facts SET memory_no = ? WHERE tenant = ? AND memory_no = ?", (heir, tenant, number)
    )
    write_words(connection, tenant, heir, words_of(text=str(left[0][2]), speaker=str(left[0][1])))


def _ids(connection: sqlite3.Connection, tenant: str, numbers: Sequence[int]) -> list[str]:
    found: list[str] = []
    for part in batched(numbers):
        query = f"SELECT id FROM memories WHERE tenant = ? AND memory_no IN ({placeholders(part)}) ORDER BY memory_no"
        found += [str(row[0]) for row in connection.execute(query, (tenant, *part))]
    return found
