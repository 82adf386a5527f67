"""What can be read from, and written in a transaction, with the repositories that say what is where: a seam for a
snapshot, the catalog as it is now, or another database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from research.store.paths import IndexPaths

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.store.documents import Documents
    from research.store.governance import Audit, Governance, Labels
    from research.store.graph import Graph
    from research.store.item_writes import ItemWrites
    from research.store.items import Items
    from research.store.ledger import Ledger
    from research.store.lookups import Lookups
    from research.store.memories import Memories, Sessions
    from research.store.memory_writes import MemoryWrites
    from research.store.names import Names
    from research.store.packages import Packages
    from research.store.pages import Pages
    from research.store.vectors import Chunks, Visual
    from research.store.words import ItemSearch, PageSearch

# SQLite's default limit on variables in one statement was 999 for a long time.
_SLICE = 900

T = TypeVar("T")
DriverError = sqlite3.Error  # what a database raises where nothing here has given it a name


class Rows(Protocol):
    """What a statement gives back."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


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

# The repositories: where each is, for who reads and for who may write. A module is loaded with its first use.
_REPOSITORIES = {
    "audit": "governance.Audit",
    "chunks": "vectors.Chunks",
    "documents": "documents.Documents",
    "governance": "governance.Governance",
    "graph": "graph.Graph",
    "item_words": "words.ItemSearch",
    "items": "items.Items",
    "labels": "governance.Labels",
    "ledger": "ledger.Ledger",
    "lookups": "lookups.Lookups",
    "memories": "memories.Memories",
    "names": "names.Names",
    "packages": "packages.Packages",
    "pages": "pages.Pages",
    "sessions": "memories.Sessions",
    "visual": "vectors.Visual",
    "words": "words.PageSearch",
}
_WRITING = _REPOSITORIES | {"items": "item_writes.ItemWrites", "memories": "memory_writes.MemoryWrites"}


class Reader:
    """What can be read from: the catalog as it is now, or a snapshot of it."""

    paths: IndexPaths
    masks: Masks = NO_MASKS
    repositories: Mapping[str, str] = _REPOSITORIES

    audit: Audit
    chunks: Chunks
    documents: Documents
    governance: Governance
    graph: Graph
    item_words: ItemSearch
    items: Items
    labels: Labels
    ledger: Ledger
    lookups: Lookups
    memories: Memories
    names: Names
    packages: Packages
    pages: Pages
    sessions: Sessions
    visual: Visual
    words: PageSearch

    if not TYPE_CHECKING:  # which is to know no other names than these

        def __getattr__(self, name):
            if name not in self.repositories:
                raise AttributeError(name, name=name, obj=self)
            module, kind = self.repositories[name].split(".")
            found = getattr(import_module(f"research.store.{module}"), kind)(self)
            setattr(self, name, found)
            return found

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        raise NotImplementedError

    def value(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """The first value of the first row; None without one."""
        row = self.execute(sql, parameters).fetchone()
        return None if row is None else row[0]

    def column(self, sql: str, parameters: Sequence[Any] = (), /) -> list[Any]:
        """The first value of every row."""
        return [row[0] for row in self.execute(sql, parameters)]

    def record(self, kind: Callable[..., T], sql: str, parameters: Sequence[Any] = (), /) -> T | None:
        """The first row as one of this kind."""
        row = self.execute(sql, parameters).fetchone()
        return None if row is None else kind(*row)

    def records(self, kind: Callable[..., T], sql: str, parameters: Sequence[Any] = (), /) -> list[T]:
        """Every row as one of this kind."""
        return [kind(*row) for row in self.execute(sql, parameters)]

    def meta(self, key: str, default: str = "") -> str:
        """A value that the catalog keeps of itself."""
        found = self.value("SELECT value FROM meta WHERE key = ?", (key,))
        return default if found is None else str(found)

    def count_cache(self) -> dict[object, Any]:
        """What was counted before, for as long as nobody writes."""
        return {}

    def cached(self, key: object, make: Callable[[], T]) -> T:
        """What was made under this key before, for as long as nobody writes."""
        known = self.count_cache()
        if key not in known:
            known[key] = make()
        return cast(T, known[key])

    def rows_in(self, query: str, values: Iterable[Any], then: str = "", *, first: Sequence[Any] = ()) -> list[Any]:
        """Run a statement that ends in IN, with some of the values at a time and each once, and return all rows; `then`
        follows the values. `first`: what the statement has before them."""
        return [
            row
            for part in batched(list(dict.fromkeys(values)))
            for row in self.execute(f"{query} ({placeholders(part)}) {then}", (*first, *part)).fetchall()
        ]


class Writer(Reader):
    """What can be written, too: the catalog, or a connection in its caller's transaction."""

    repositories = _WRITING

    items: ItemWrites
    memories: MemoryWrites

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> object:
        raise NotImplementedError

    def transaction(self) -> AbstractContextManager[Writer]:
        """All of it or nothing of it; part of the transaction that is there already."""
        raise NotImplementedError

    def short_write(self, *, erase: bool = False) -> AbstractContextManager[Writer]:
        """A transaction of a few rows, beside whoever holds the index's write lock. Raises `BusyError` if it cannot
        begin within a second. `erase`: what is deleted is overwritten in the file."""
        raise NotImplementedError

    def shrink_log(self) -> None:
        """Empty the write-ahead log, where what was erased still stands."""
        raise NotImplementedError

    def put_rows(self, table: str, columns: str, rows: Iterable[Sequence[object]], *, over: str = "") -> None:
        """Insert rows. `over`: the columns by which a row that is there is known, and then written over."""
        names = columns.split(", ")
        statement = f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(names))})"
        if over:
            changed = ", ".join(f"{name} = excluded.{name}" for name in names if name not in over.split(", "))
            statement += f" ON CONFLICT ({over}) DO " + (f"UPDATE SET {changed}" if changed else "NOTHING")
        self.executemany(statement, list(rows))

    def write_meta(self, values: Mapping[str, str]) -> None:
        self.put_rows("meta", "key, value", values.items(), over="key")

    def count_up(self, key: str) -> None:
        """Add one to a counter among the values by name."""
        self.execute(
            "INSERT INTO meta (key, value) VALUES (?, '1')"
            " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)",
            (key,),
        )

    def bump_revision(self) -> None:
        """Count a change that the collections must follow though no vector changed: a new name, a drawn page."""
        self.count_up(REVISION)

    def reserve_sequence(self, table: str, count: int) -> int:
        """The first of `count` numbers that no row of the table has or ever had.

        A counter of our own: a sequence of the database would give numbers out before their rows can be seen, and
        whoever reads "all after the last I know" would miss them.
        """
        key = f"{table}_seq"
        last = self.value(
            "SELECT MAX(n) FROM (SELECT CAST(value AS BIGINT) AS n FROM meta WHERE key = ?"
            f" UNION ALL SELECT MAX(seq) AS n FROM {table}) AS given",
            (key,),
        )
        self.write_meta({key: str((last or 0) + count)})
        return (last or 0) + 1


class Repository:
    """Statements about one kind of things. Who only reads has them as well, and writes with none of them."""

    def __init__(self, db: Reader) -> None:
        self._db = cast(Writer, db)


REVISION = "revision"


def pack_vectors(vectors: NDArray[np.float32]) -> list[bytes]:
    """Vectors (n, dim) as the catalog keeps them: half precision, little endian."""
    return [row.tobytes() for row in vectors.astype("<f2")]


def unpack_vectors(blobs: Sequence[bytes]) -> NDArray[np.float16]:
    """Vectors (n, dim) of the same size, at least one."""
    import numpy as np

    return np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), -1)


def stacked(rows: Sequence[Any]) -> tuple[list[int], NDArray[np.float16]]:
    """Rows of a number and a packed vector: the numbers, and the vectors (n, dim)."""
    import numpy as np

    if not rows:
        return [], np.zeros((0, 0), dtype=np.float16)
    return [int(row[0]) for row in rows], unpack_vectors([row[1] for row in rows])


def grouped(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Rows of two values: the first → the second ones."""
    found: dict[str, list[Any]] = {}
    for key, value in rows:
        found.setdefault(str(key), []).append(value)
    return found


def batched(items: Sequence[T], *, values: int = 1) -> Iterator[list[T]]:
    """Parts small enough for one statement's variables, where an item takes so many `values`."""
    size = _SLICE // values
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def placeholders(values: Sequence[object]) -> str:
    """The question marks of an IN list."""
    return ",".join("?" * len(values))
