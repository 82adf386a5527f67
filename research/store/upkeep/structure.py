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
        keys: dict[int, list[sqlite3.Row]] = {}
        for column in connection.execute(f'PRAGMA foreign_key_list("{table}")').fetchall():
            keys.setdefault(int(column["id"]), []).append(column)
        for columns in keys.values():
            parent = str(columns[0]["table"])
            # Without columns named, a reference means the parent's primary key.
            primary = [
                str(row["name"])
                for row in sorted(connection.execute(f'PRAGMA table_info("{parent}")'), key=lambda row: int(row["pk"]))
                if row["pk"]
            ]
            pairs = [
                (str(each["from"]), each["to"] or primary[int(each["seq"])])
                for each in sorted(columns, key=lambda each: int(each["seq"]))
            ]
            same = " AND ".join(f'p."{target}" = "{table}"."{column}"' for column, target in pairs)
            yield f'DELETE FROM "{table}" WHERE NOT EXISTS (SELECT 1 FROM "{parent}" p WHERE {same})'
