"""What reading and writing functions need of the catalog: a seam for a snapshot, the catalog as it is, or another
database; and what the catalog says of itself, values by name and counters that only grow.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from research.store.files.paths import IndexPaths

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# SQLite's default limit on variables in one statement was 999 for a long time.
_SLICE = 900

T = TypeVar("T")


class Rows(Protocol):
    """What a statement gives back."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What reading needs of a connection."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows: ...


class Writer(Connection, Protocol):
    """What writing needs of a connection, which is in its caller's transaction."""

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> object: ...


DriverError = sqlite3.Error  # what a database raises where nothing here has given it a name


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


def put_rows(connection: Writer, table: str, columns: str, rows: Iterable[Sequence[object]], *, over: str = "") -> None:
    """Insert rows. `over`: the columns by which a row that is there is known, and then written over."""
    names = columns.split(", ")
    statement = f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(names))})"
    if over:
        changed = ", ".join(f"{name} = excluded.{name}" for name in names if name not in over.split(", "))
        statement += f" ON CONFLICT ({over}) DO " + (f"UPDATE SET {changed}" if changed else "NOTHING")
    connection.executemany(statement, list(rows))


def write_meta(connection: Writer, values: Mapping[str, str]) -> None:
    put_rows(connection, "meta", "key, value", values.items(), over="key")


def count_up(connection: Writer, key: str) -> None:
    """Add one to a counter among the values by name."""
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, '1')"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)",
        (key,),
    )


def bump_revision(connection: Writer) -> None:
    """Count a change that the collections must follow though no vector changed: a new name, a drawn page."""
    count_up(connection, REVISION)


def pack_vectors(vectors: NDArray[np.float32]) -> list[bytes]:
    """Vectors (n, dim) as the catalog keeps them: half precision, little endian."""
    return [row.tobytes() for row in vectors.astype("<f2")]


def unpack_vectors(blobs: Sequence[bytes]) -> NDArray[np.float16]:
    """Vectors (n, dim) of the same size, at least one."""
    import numpy as np

    return np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), -1)


def reserve_sequence(connection: Writer, table: str, count: int) -> int:
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


def batched(items: Sequence[T], *, values: int = 1) -> Iterator[list[T]]:
    """Parts small enough for one statement's variables, where an item takes so many `values`."""
    size = _SLICE // values
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def rows_in(
    connection: Connection, query: str, values: Sequence[Any], then: str = "", *, first: Sequence[Any] = ()
) -> Iterator[Any]:
    """Run a query that ends in IN, with some of the values at a time, and give all rows; `then` follows the values.
    `first`: what the query has before them."""
    for part in batched(values):
        yield from connection.execute(f"{query} ({placeholders(part)}) {then}", (*first, *part)).fetchall()


def placeholders(values: Sequence[object]) -> str:
    """The question marks of an IN list."""
    return ",".join("?" * len(values))
