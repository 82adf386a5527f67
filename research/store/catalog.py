"""SQLite's own: the catalog, one file that is the truth about every document; its connections and snapshots."""

from __future__ import annotations

import os
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from research.errors import (
    RUN_AGAIN,
    BusyError,
    IndexUnusableError,
    NewerIndexError,
    OlderIndexError,
    unusable,
    unusable_catalog,
)
from research.store.paths import CATALOG, IndexPaths, touch_private
from research.store.reader import NO_MASKS, Masks, Reader, Rows, Writer

SCHEMA_VERSION = 15  # of schema.sql
SCHEMA = Path(__file__).with_name("schema.sql")
_OLDEST_SQLITE = (3, 37)  # with STRICT tables
_BUSY_SECONDS = 30.0
_SHORT_BUSY_SECONDS = 1.0
_BREAK_OFF_SECONDS = 0.05  # that a statement may take on, which nobody waits for
_KEPT = 8  # idle connections, each with its own cache of the file
_MOST_COUNTS = 100_000  # remembered; a word of a question is one


class Connection(sqlite3.Connection, Writer):
    """A connection, and what was read on it while nobody had written anything."""

    file = "main"  # what the catalog's file is called on it
    identity: tuple[int, int] | None = None  # of the file
    state: tuple[int, int] | None = None  # of its content when that was read
    settings: dict[str, str]
    counts: dict[object, Any]

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        yield self

    @contextmanager
    def short_write(self, *, erase: bool = False) -> Iterator[Connection]:
        yield self

    def refresh(self) -> None:
        """Forget what was remembered if anybody, this connection included, has written since."""
        state = (self.execute(f"PRAGMA {self.file}.data_version").fetchone()[0], self.total_changes)
        if self.state != state:
            self.settings = {str(key): str(value) for key, value in self.execute("SELECT key, value FROM meta")}
            self.counts = {}
            self.state = state
        elif len(self.counts) > _MOST_COUNTS:
            self.counts = {}


class Catalog(Writer):
    """Opens the catalog for reading or for writing; each thread gets a connection of its own."""

    def __init__(self, paths: IndexPaths, *, writable: bool = False) -> None:
        self._prepare(paths, writable=writable)
        if writable:
            paths.create()
        else:
            paths.refuse_links()
        if not writable and not paths.exists:
            raise paths.nothing_found()
        try:
            self.connection.refresh()
            if not self.connection.settings.get("catalog_id"):
                self.write_meta({"catalog_id": uuid.uuid4().hex})
            if writable:
                self._update_fulltext()
        except sqlite3.Error as error:  # a torn file often opens, and fails at the first look inside
            self.close()
            raise self._explain(error) from error

    def _prepare(self, paths: IndexPaths, *, writable: bool = False) -> None:
        """Nothing is opened yet."""
        self.paths = paths
        self._writable = writable
        self._local = threading.local()
        self._owned: list[tuple[threading.Thread, Connection]] = []
        self._idle: list[Connection] = []
        self._pool = threading.Lock()
        self._identity: tuple[int, int] | None = None  # of the file that is open

    @property
    def connection(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._take()
            with self._pool:
                self._owned.append((threading.current_thread(), connection))
        return connection

    def count_cache(self) -> dict[object, Any]:
        """What was counted before on this thread's connection, for as long as nobody has written anything."""
        connection = self.connection
        if connection.in_transaction:  # what is counted now may be rolled back
            return {}
        connection.refresh()
        return connection.counts

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """The catalog as it is at this moment, for all threads of one question."""
        snapshot, connection = self._begun()
        try:
            yield snapshot
        finally:
            snapshot.end()
            self._give_back(connection)

    def _begun(self) -> tuple[Snapshot, Connection]:
        """A snapshot, and its connection in a transaction."""
        connection = self._lend()
        try:
            connection.execute("BEGIN")
            connection.refresh()  # the first read fixes what all later ones see
        except sqlite3.Error as error:
            self._give_back(connection)
            raise self._explain(error) from error
        except BaseException:
            self._give_back(connection)
            raise
        return Snapshot(self.paths, connection), connection

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All of it or nothing of it."""
        connection = self.connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
            self.check_in_place()
        except sqlite3.OperationalError as error:
            _roll_back(connection)
            raise self._explain(error) from error
        except BaseException:
            _roll_back(connection)
            raise

    @contextmanager
    def short_write(self, *, wait: float | None = None, erase: bool = False) -> Iterator[Connection]:
        """A transaction of a few rows, beside whoever holds the index's write lock. Also of a catalog opened for
        reading. Raises `BusyError` if it cannot begin within a second, or another `wait`. `erase`: what is deleted is
        overwritten in the file."""
        connection = self._open_writable(timeout=_SHORT_BUSY_SECONDS if wait is None else wait)
        try:
            if erase:
                connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            _roll_back(connection)
            if "locked" in str(error):
                raise BusyError("the index is being written", hint="run the same command again") from error
            raise self._explain(error) from error
        finally:
            _roll_back(connection)
            connection.close()

    def shrink_log(self) -> None:
        """Empty the write-ahead log, where what was erased still stands. Whoever reads at this moment keeps it; the
        next writer tries again."""
        with suppress(sqlite3.OperationalError):
            connection = self._open_writable(timeout=_SHORT_BUSY_SECONDS)
            try:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                connection.close()

    def check_in_place(self) -> None:
        """Raise if the file being written is no longer the one in the index folder.

        SQLite goes on writing into a file that was removed, and says that all is well.
        """
        if self._identity != _identity_of(self.paths):
            raise IndexUnusableError(
                f"the index folder {self.paths.root} was removed or replaced while it was written", hint=RUN_AGAIN
            )

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        return self.connection.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> object:
        return self.connection.executemany(sql, parameters)

    def close(self) -> None:
        with self._pool:
            for connection in (*self._idle, *(connection for _, connection in self._owned)):
                connection.close()
            self._idle.clear()
            self._owned.clear()
            self._local = threading.local()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lend(self) -> Connection:
        """A connection for a snapshot: the reading thread's own, where it has one, so that a question opens one."""
        own: Connection | None = getattr(self._local, "connection", None)
        if own is not None and not own.in_transaction and not self._writable:
            self._local.connection = None
            with self._pool:
                self._owned = [entry for entry in self._owned if entry[1] is not own]
            self._give_back(own)
        return self._take()

    def _take(self) -> Connection:
        """An idle connection, or a new one. Those whose threads have ended are idle: every question starts some."""
        with self._pool:
            ended = [entry for entry in self._owned if not entry[0].is_alive()]
            self._owned = [entry for entry in self._owned if entry not in ended]
        for _, connection in ended:
            self._give_back(connection)
        self._follow()
        with self._pool:
            idle = self._idle.pop() if self._idle else None
        return idle or self._connect()

    def _give_back(self, connection: Connection) -> None:
        """Keep it for the next, unless there are enough."""
        try:
            _roll_back(connection)
        except sqlite3.Error:
            connection.close()
            return
        with self._pool:
            if len(self._idle) < _KEPT and connection.identity == self._identity:
                self._idle.append(connection)
                return
        connection.close()

    def _follow(self) -> None:
        """Let a reader go over to the file that was put in place of the one it had open."""
        identity = None if self._writable else _identity_of(self.paths)
        if identity in (None, self._identity):
            return
        with self._pool:
            left, self._idle = self._idle, []
            self._identity = identity
        for connection in left:
            connection.close()

    def _connect(self) -> Connection:
        try:
            connection = self._open_writable() if self._writable else self._open_readable()
        except sqlite3.Error as error:
            raise self._explain(error) from error
        connection.identity = self._identity = self._identity or _identity_of(self.paths)
        return connection

    def _open_writable(self, timeout: float = _BUSY_SECONDS) -> Connection:
        try:
            touch_private(self.paths.catalog)
        except OSError as error:
            raise unusable(f"the catalog in {self.paths.root} failed", error) from error
        connection = _open(f"file:{quote(os.fsencode(self.paths.catalog))}", timeout)
        with _closed_on_failure(connection):
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA journal_mode = WAL")
            # A commit that was reported must survive a power cut, not only a kill.
            connection.execute("PRAGMA synchronous = FULL")
            if version_of(connection) != SCHEMA_VERSION:
                create_schema(connection)
        return connection

    def _open_readable(self) -> Connection:
        name = quote(os.fsencode(self.paths.catalog))
        connection = self._open_file(f"file:{name}?mode=ro")
        try:
            with _closed_on_failure(connection):
                found = version_of(connection, connection.file)
        except sqlite3.OperationalError:
            if os.access(self.paths.root, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                raise
            self._check_no_log()
            # A write-ahead log needs a writable folder; without one the file alone is complete.
            connection = self._open_file(f"file:{name}?immutable=1")
            with _closed_on_failure(connection):
                found = version_of(connection, connection.file)
        if found != SCHEMA_VERSION:
            connection.close()
            self.paths.create()  # an index is marked as ours before it is first written by this version
            return self._open_writable()
        return connection

    def _open_file(self, uri: str) -> Connection:
        """The catalog's file, to be read."""
        return _open(uri)

    def _check_no_log(self) -> None:
        """Raise if the newest changes are not in the file yet: an answer without them is out of date."""
        log = self.paths.catalog.with_name(f"{CATALOG}-wal")
        if log.exists() and log.stat().st_size:
            raise IndexUnusableError(
                f"the folder {self.paths.root} may only be read, and the newest changes are still in {log.name}",
                hint="make the folder writable once, or copy it and name the copy with --index DIR",
            )

    def _update_fulltext(self) -> None:
        """Whoever opens the catalog for writing brings full text up to the analyzer that questions will use."""
        if self.words.is_outdated():
            from research.store.fulltext import update_fulltext

            # What is damaged is left to `ctx doctor --fix`, which opens the catalog as well.
            with suppress(IndexUnusableError, sqlite3.DatabaseError):
                update_fulltext(self)

    def _explain(self, error: sqlite3.Error) -> IndexUnusableError:
        return unusable_catalog(f"the catalog in {self.paths.root} failed", error)


class Snapshot(Reader):
    """The catalog at one moment. Several threads may read from it, one statement at a time.

    SQLite would let them take turns by itself. But Python waits for SQLite's turn without letting other threads go on,
    and for ever if the thread whose turn it is has to call back into Python, as a trace does.
    """

    def __init__(self, paths: IndexPaths, connection: Connection, masks: Masks = NO_MASKS) -> None:
        self.paths = paths
        self.masks = masks
        self._connection = connection
        # Under an identity of its own: what is kept in memory of a view is nobody else's.
        self._settings = {**connection.settings, "catalog_id": masks.view} if masks.view else connection.settings
        self._counts = connection.counts
        self._turn = threading.Lock()
        self._over = False

    def meta(self, key: str, default: str = "") -> str:
        return self._settings.get(key, default)

    def count_cache(self) -> dict[object, Any]:
        return self._counts

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        with self._turn:
            if self._over:
                raise sqlite3.ProgrammingError("the question is over")
            return _Fetched(self._connection.execute(sql, parameters).fetchall())

    def end(self) -> None:
        """Nobody reads from now on: a thread that was given up finds an error here, and not another question's rows."""
        while not self._turn.acquire(timeout=_BREAK_OFF_SECONDS):
            self._connection.interrupt()
        self._over = True
        self._turn.release()


class _Fetched:
    """Rows that were read to the end, so that the next thread can have its turn."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = iter(rows)

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


@contextmanager
def _closed_on_failure(connection: sqlite3.Connection) -> Iterator[None]:
    """An error is kept for a while, by a log or a caller, and what it holds open with it."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def connect(file: Path | str) -> Connection:
    """A file of ours that nobody else has open."""
    return sqlite3.connect(file, isolation_level=None, factory=Connection)


def _open(uri: str, timeout: float = _BUSY_SECONDS, factory: type[Connection] = Connection) -> Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False, factory=factory
    )
    connection.row_factory = sqlite3.Row
    return connection


def version_of(connection: sqlite3.Connection, file: str = "main") -> int:
    """The number of the catalog's schema; 0 for an empty file. Raises for one that another ctx made."""
    found = int(connection.execute(f"PRAGMA {file}.user_version").fetchone()[0])
    check_version("this index", found)
    return found


def check_version(what: str, found: int) -> None:
    if found > SCHEMA_VERSION:
        raise NewerIndexError.of(what, found, SCHEMA_VERSION)
    if 0 < found < SCHEMA_VERSION:
        raise OlderIndexError.of(what)


def create_schema(connection: sqlite3.Connection) -> None:
    """Make an empty file a catalog, if no other process has by now."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise IndexUnusableError(
            f"SQLite {sqlite3.sqlite_version} is too old", hint="use a Python with SQLite 3.37 or newer"
        )
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version_of(connection) == 0:
            for statement in schema_statements():
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def schema_statements() -> Iterator[str]:
    """One by one, because a script run as a whole ends the transaction it stands in."""
    statement = ""
    for line in SCHEMA.read_text(encoding="utf-8").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _identity_of(paths: IndexPaths) -> tuple[int, int] | None:
    try:
        found = paths.catalog.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
