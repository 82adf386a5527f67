"""What reading and writing functions need of the catalog: a seam for a snapshot, the catalog as it is, or another
database; and what the catalog says of itself, values by name and counters that only grow.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from research.store.files.paths import IndexPaths


class Rows(Protocol):
    """What a statement gives back."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What reading needs of a connection."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows: ...


@dataclass(frozen=True, slots=True)
class Masks:
    """What a policy left. `view`: of which view of the catalog, empty for all of it; `labels`: of things that are
    masked or withheld, by ref; and the numbers of items and memories whose text is not the stored one: no vector is
    kept of it."""

    view: str = ""
    nothing: bool = False  # is seen
    labels: Mapping[str, str] = field(default_factory=dict)
    items: frozenset[int] = frozenset()
    memories: frozenset[tuple[str, int]] = frozenset()


NO_MASKS = Masks()


class Reader(Protocol):
    """Whatever can be read from: the catalog as it is now, or a snapshot of it."""

    @property
    def masks(self) -> Masks: ...
    @property
    def paths(self) -> IndexPaths: ...
    @property
    def connection(self) -> Connection: ...
    def meta(self, key: str, default: str = "") -> str: ...
    def count_cache(self) -> dict[object, Any]: ...


REVISION = "revision"


def write_meta(connection: sqlite3.Connection, values: Mapping[str, str]) -> None:
    """Part of the caller's transaction, if there is one."""
    connection.executemany(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        list(values.items()),
    )


def bump_revision(connection: sqlite3.Connection) -> None:
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
