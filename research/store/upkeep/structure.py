"""SQLite's own: whether the catalog's file is sound, and rows whose parent is gone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress


def damage(connection: sqlite3.Connection, *, quickly: bool = False) -> str:
    """What SQLite finds wrong with the whole file, which is slow on a large one; `quickly` does not compare indexes
    with their tables."""
    found = connection.execute("PRAGMA quick_check(3)" if quickly else "PRAGMA integrity_check(3)")
    answer = [str(row[0]) for row in found]
    return "" if answer == ["ok"] else "; ".join(answer)


def rebuild_indexes(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.DatabaseError):  # the second look finds it as it was and says so
        connection.execute("REINDEX")


def count_orphans(connection: sqlite3.Connection) -> int:
    """Rows whose parent is gone, in whatever tables the catalog has."""
    return len(connection.execute("PRAGMA foreign_key_check").fetchall())


def delete_orphans(connection: sqlite3.Connection) -> None:
    """Delete those rows, and then the ones that lose their parent by it; part of the caller's transaction."""
    while sum(connection.execute(statement).rowcount for statement in _deletions(connection)):
        pass


def _deletions(connection: sqlite3.Connection) -> Iterator[str]:
    tables = [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        for key in connection.execute(f'PRAGMA foreign_key_list("{table}")').fetchall():
            parent, column = str(key["table"]), str(key["from"])
            # Without a column named, a reference means the parent's primary key.
            target = key["to"] or next(
                row["name"] for row in connection.execute(f'PRAGMA table_info("{parent}")') if row["pk"]
            )
            yield f'DELETE FROM "{table}" WHERE "{column}" NOT IN (SELECT "{target}" FROM "{parent}")'
