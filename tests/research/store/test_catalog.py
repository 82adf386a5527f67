"""Opening the catalog: new, old, too new, damaged, read-only; and its transactions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from index_making import Making

from research.errors import IndexUnusableError
from research.store.catalog import SCHEMA_VERSION, Catalog, version_of
from research.store.paths import IndexPaths


def test_an_empty_file_becomes_a_catalog_even_by_a_reader(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path)
    paths.create()
    paths.catalog.touch()
    with Catalog(paths) as catalog:
        assert version_of(catalog.connection) == SCHEMA_VERSION
        assert catalog.documents.all() == []


def test_many_may_meet_an_empty_catalog_at_once(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    paths.create()
    paths.catalog.touch()
    start, problems = threading.Barrier(8), []

    def open_it() -> None:
        start.wait()
        try:
            Catalog(paths).close()
        except Exception as error:  # noqa: BLE001  a thread's failure must reach the test
            problems.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with Catalog(paths) as catalog:
        assert version_of(catalog.connection) == SCHEMA_VERSION


@pytest.mark.parametrize("writable", [False, True])
def test_a_file_that_is_no_database_is_told(tmp_path: Path, writable: bool) -> None:
    paths = IndexPaths(tmp_path)
    paths.create()
    paths.catalog.write_bytes(b"this is no database" * 1000)
    with pytest.raises(IndexUnusableError, match="not a database") as caught:
        Catalog(paths, writable=writable)
    assert "documents are untouched" in caught.value.hint
    # The error is still held, with all that its frames hold.
    assert str(paths.catalog) not in {os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()}


def test_a_transaction_is_all_or_nothing(making: Making) -> None:
    with pytest.raises(ZeroDivisionError), making.catalog.transaction() as connection:
        connection.execute("INSERT INTO meta VALUES ('a', '1')")
        raise ZeroDivisionError
    assert making.catalog.meta("a", "none") == "none"
    with pytest.raises(IndexUnusableError, match="no such table"), making.catalog.transaction() as connection:
        connection.execute("INSERT INTO meta VALUES ('b', '1')")
        connection.execute("INSERT INTO nowhere VALUES (1)")
    assert making.catalog.meta("b", "none") == "none"


def test_ended_threads_leave_no_connections(making: Making) -> None:
    """A service asks thousands of questions through one catalog, each in a thread of its own."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(40):
        thread = threading.Thread(target=lambda: making.catalog.meta("catalog_id"))
        thread.start()
        thread.join()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 6


@pytest.fixture
def read_only(making: Making) -> Iterator[Path]:
    """An index in a folder that may only be read, reachable by any user."""
    making.add("a.pdf", ["one"])
    making.catalog.close()
    folder = Path(tempfile.mkdtemp())
    root = folder / "index"
    shutil.copytree(making.paths.root, root)
    folder.chmod(0o755)
    for path in root.rglob("*"):
        path.chmod(0o444)
    root.chmod(0o555)
    yield root
    root.chmod(0o755)
    shutil.rmtree(folder)


_READ_AND_WRITE = """
import os, sys
from pathlib import Path
from research.errors import IndexUnusableError
from research.store.catalog import SCHEMA_VERSION, Catalog, version_of
from research.store.paths import write_lock
from research.store.paths import IndexPaths
import filelock, fcntl, encodings.utf_8, logging, research.store.publish, research.store.words
if os.geteuid() == 0:
    os.setuid(65534)  # permissions mean nothing to root
paths = IndexPaths(Path(sys.argv[1]))
with Catalog(paths) as catalog:
    print([document.filename for document in catalog.documents.all()])
try:
    Catalog(paths, writable=True).write_meta({"a": "b"})
except IndexUnusableError as error:
    print(error.hint)
try:
    with write_lock(paths):
        pass
except IndexUnusableError as error:
    print(error)
"""


def test_an_index_that_may_only_be_read_is_read(read_only: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _READ_AND_WRITE, str(read_only)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    listing, writing, locking = run.stdout.splitlines()
    assert listing == "['a.pdf']"
    assert "make the folder writable" in writing
    assert "Permission denied" in locking
    names = sorted(path.name for path in read_only.iterdir())
    assert names == [".gitignore", "catalog.sqlite3", "ctx-index.json"]


def test_changes_that_cannot_be_read_are_told(making: Making, read_only: Path) -> None:
    """A copy of a folder whose last run was killed: what it had committed is in a log that takes a writable folder."""
    read_only.chmod(0o755)
    with Catalog(making.paths, writable=True) as catalog:
        making.catalog = catalog
        making.add("b.pdf", ["two"])
        for ending in ("", "-wal"):
            shutil.copy(f"{making.paths.catalog}{ending}", read_only)
    assert (read_only / "catalog.sqlite3-wal").stat().st_size > 0
    for path in read_only.iterdir():
        path.chmod(0o444)
    read_only.chmod(0o555)
    run = subprocess.run(
        [sys.executable, "-c", _READ_AND_WRITE, str(read_only)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "the newest changes are still in catalog.sqlite3-wal" in run.stderr
    read_only.chmod(0o755)
    with Catalog(IndexPaths(read_only)) as catalog:
        assert len(catalog.documents.all()) == 2, "nothing is lost where the folder may be written"


def test_counts_are_remembered_only_while_nobody_writes(making: Making) -> None:
    making.add("a.pdf", ["walrus", "seal"])
    with Catalog(making.paths) as reader:
        assert reader.pages.count() == 2
        assert reader.count_cache(), "counted once"
        making.add("b.pdf", ["orca"])
        assert reader.pages.count() == 3, "another connection has written"
    assert making.catalog.pages.count() == 3
    with pytest.raises(ZeroDivisionError), making.catalog.transaction() as connection:
        connection.execute("DELETE FROM pages WHERE page = 2")
        assert making.catalog.pages.count() == 2
        raise ZeroDivisionError
    assert making.catalog.pages.count() == 3, "what was counted inside is rolled back, too"
