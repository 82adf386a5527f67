"""Rows whose parent is gone, in whatever tables the catalog has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator


def orphans(connection: sqlite3.Connection) -> int:
    return len(connection.execute("PRAGMA foreign_key_check").fetchall())


def delete_orphans(connection: sqlite3.Connection) -> None:
    """Delete them, and then those that lose their parent by it; part of the caller's transaction."""
    while sum(connection.execute(statement).rowcount for statement in _statements(connection)):
        pass


def _statements(connection: sqlite3.Connection) -> Iterator[str]:
    tables = [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        for key in connection.execute(f'PRAGMA foreign_key_list("{table}")').fetchall():
            parent, column = str(key["table"]), str(key["from"])
            # Without a column named, a reference means the parent's primary key.
            target = key["to"] or next(
                row["name"] for row in connection.execute(f'PRAGMA table_info("{parent}")') if row["pk"]
            )
            yield f'DELETE FROM "{table}" WHERE "{column}" NOT IN (SELECT "{target}" FROM "{parent}")'
