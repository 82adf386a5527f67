"""Writing what the catalog says of itself: values by name, and counters that only grow. `Reader.meta` reads them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

REVISION = "revision"


def write_meta(connection: sqlite3.Connection, values: Mapping[str, str]) -> None:
    """Part of the caller's transaction, if there is one."""
    connection.executemany(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        list(values.items()),
    )


def revise(connection: sqlite3.Connection) -> None:
    """Count a change that the collections must follow though no vector changed: a new name, a drawn page.

    Part of the caller's transaction, as is the next.
    """
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, '1')"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)",
        (REVISION,),
    )


def reserve_sequence(connection: sqlite3.Connection, table: str, count: int) -> int:
    """The first of `count` numbers that no row of the table has or ever had.

    A counter of our own: a sequence of the database would give numbers out before their rows can be seen, and
    whoever reads "all after the last I know" would miss them.
    """
    key = f"{table}_seq"
    row = connection.execute(
        "SELECT MAX(n) FROM (SELECT CAST(value AS BIGINT) AS n FROM meta WHERE key = ?"
        f" UNION ALL SELECT MAX(seq) AS n FROM {table}) AS given",
        (key,),
    ).fetchone()
    last = int(row[0] or 0)
    write_meta(connection, {key: str(last + count)})
    return last + 1
