"""The catalog: one SQLite file that is the truth about every document."""

from __future__ import annotations

import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from research.errors import IndexUnusableError, NothingFoundError
from research.store.catalog import schema
from research.store.error_hints import RUN_AGAIN, unusable_catalog
from research.store.files.paths import IndexPaths

_BUSY_SECONDS = 30.0
_KEPT = 4  # connections of ended threads
_MOST_FIGURES = 100_000  # remembered; a word of a question is one


class Catalog:
    """Opens the catalog for reading or for writing; each thread gets a connection of its own."""

    def __init__(self, paths: IndexPaths, *, writable: bool = False) -> None:
        self.paths = paths
        self._writable = writable
        self._local = threading.local()
        self._opened: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._opening = threading.Lock()
        self._identity: tuple[int, int] | None = None  # of the file, while it is open for writing
        if writable:
            paths.create()
        else:
            paths.refuse_links()
        if not writable and not paths.exists:
            raise NothingFoundError(
                f"there is no index at {paths.root}",
                hint="add documents first: ctx ingest PATH",
            )
        try:
            if not self.meta("catalog_id"):
                self.set_meta("catalog_id", uuid.uuid4().hex)
        except sqlite3.Error as error:  # a torn file often opens, and fails at the first look inside
            self.close()
            raise self._explain(error) from error

    @property
    def connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._left_behind() or self._connect()
            self._local.connection = connection
            with self._opening:
                self._opened.append((threading.current_thread(), connection))
        return connection

    def figures(self) -> dict[object, int]:
        """Figures that this thread counted before, for as long as nobody has written anything."""
        connection = self.connection
        if connection.in_transaction:  # what is counted now may be rolled back
            return {}
        state = (connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes)
        if getattr(self._local, "figures_of", None) != state or len(self._local.figures) > _MOST_FIGURES:
            self._local.figures_of, self._local.figures = state, {}
        figures: dict[object, int] = self._local.figures
        return figures

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing of it."""
        connection = self.connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
            self.check_in_place()
        except sqlite3.OperationalError as error:
            self._roll_back(connection)
            raise self._explain(error) from error
        except BaseException:
            self._roll_back(connection)
            raise

    def check_in_place(self) -> None:
        """Raise if the file being written is no longer the one in the index folder.

        SQLite goes on writing into a file that was removed, and says that all is well.
        """
        if self._identity and self._identity != _identity_of(self.paths):
            raise IndexUnusableError(
                f"the index folder {self.paths.root} was removed or replaced while it was written", hint=RUN_AGAIN
            )

    def meta(self, key: str, default: str = "") -> str:
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return default if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def close(self) -> None:
        for _, connection in self._opened:
            connection.close()
        self._opened.clear()
        self._local = threading.local()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _left_behind(self) -> sqlite3.Connection | None:
        """A connection whose thread has ended, to be used again: every question starts threads of its own.

        After a burst of threads a few are kept for the next, the others closed.
        """
        with self._opening:
            left = [entry for entry in self._opened if not entry[0].is_alive()]
            for _, connection in left[_KEPT:]:
                connection.close()
            self._opened = [entry for entry in self._opened if entry not in left[:1] and entry not in left[_KEPT:]]
        if not left:
            return None
        self._roll_back(left[0][1])
        return left[0][1]

    def _connect(self) -> sqlite3.Connection:
        try:
            return self._open_writable() if self._writable else self._open_readable()
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _open_writable(self) -> sqlite3.Connection:
        connection = self._sqlite(f"file:{quote(os.fsencode(self.paths.catalog))}")
        connection.execute("PRAGMA journal_mode = WAL")
        # A commit that was reported must survive a power cut, not only a kill.
        connection.execute("PRAGMA synchronous = FULL")
        schema.migrate(connection)
        self._identity = _identity_of(self.paths)
        return connection

    def _open_readable(self) -> sqlite3.Connection:
        name = quote(os.fsencode(self.paths.catalog))
        connection = self._sqlite(f"file:{name}?mode=ro")
        try:
            found = schema.version_of(connection)
        except sqlite3.OperationalError:
            # A write-ahead log needs a writable folder; on a read-only one the file alone is complete.
            connection.close()
            connection = self._sqlite(f"file:{name}?immutable=1")
            found = schema.version_of(connection)
        if found < schema.VERSION:
            connection.close()
            self.paths.create()  # an index is marked as ours before it is first written by this version
            return self._open_writable()
        return connection

    @staticmethod
    def _sqlite(uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    @staticmethod
    def _roll_back(connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    def _explain(self, error: sqlite3.Error) -> IndexUnusableError:
        return unusable_catalog(f"the catalog in {self.paths.root} failed", error)


def _identity_of(paths: IndexPaths) -> tuple[int, int] | None:
    try:
        found = paths.catalog.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
