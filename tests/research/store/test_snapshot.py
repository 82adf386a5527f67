"""A snapshot: the catalog at one moment, for all threads of one question, on one connection."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from index_making import Making

from research.errors import IndexUnusableError
from research.store.catalog import Catalog, Snapshot


@pytest.fixture
def reader(making: Making) -> Iterator[Catalog]:
    making.add("a.pdf", ["walrus and seal", "seal"])
    with Catalog(making.paths) as catalog:
        yield catalog


def _run(tasks: list[Callable[[], None]]) -> None:
    """Each in a thread of its own; the first failure is the test's."""
    problems: list[BaseException] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001  a thread's failure must reach the test
            problems.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def _open_files(catalog: Catalog) -> int:
    """How often this process has the catalog open."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            found += link.readlink() == catalog.paths.catalog
        except FileNotFoundError:  # that of the listing itself
            continue
    return found


def test_a_commit_in_the_middle_changes_nothing(making: Making, reader: Catalog) -> None:
    with reader.snapshot() as snapshot:
        before = snapshot.words.statistics(["seal"]), snapshot.pages.count(), snapshot.documents.all()
        making.add("b.pdf", ["seal"])
        making.catalog.write_meta({"text_encoder": "another"})
        seen: list[object] = []

        def look() -> None:
            seen.append((snapshot.words.statistics(["seal"]), snapshot.pages.count(), snapshot.documents.all()))

        _run([look, look])
        assert seen == [before, before]
        assert snapshot.meta("text_encoder", "none") == "none"
    with reader.snapshot() as snapshot:
        assert snapshot.pages.count() == 3
        assert snapshot.words.statistics(["seal"])[0].pages == 3
        assert snapshot.meta("text_encoder") == "another"


def test_a_removed_page_is_still_there_in_the_snapshot(making: Making, reader: Catalog) -> None:
    (document,) = reader.documents.all()
    with reader.snapshot() as snapshot:
        making.catalog.documents.remove(document.doc_id)
        assert snapshot.pages.markdown(document.doc_id, 2) == "seal"
    assert reader.pages.markdown(document.doc_id, 2) is None


def test_a_writer_has_snapshots_beside_its_transactions(making: Making) -> None:
    making.add("a.pdf", ["one"])
    with making.catalog.snapshot() as snapshot, making.catalog.transaction() as connection:
        connection.execute("DELETE FROM documents")
        assert len(snapshot.documents.all()) == 1
    assert making.catalog.documents.all() == []


def test_a_question_opens_the_catalog_once(making: Making, reader: Catalog) -> None:
    before = _open_files(reader)
    with Catalog(making.paths) as catalog:
        assert catalog.meta("catalog_id")
        for _ in range(3):
            with catalog.snapshot() as snapshot:
                _run([snapshot.documents.all] * 3)
                assert _open_files(catalog) == before + 1
        assert catalog.documents.all()
        assert _open_files(catalog) == before + 1


def test_neither_many_questions_nor_many_threads_leave_connections(reader: Catalog) -> None:
    together = threading.Barrier(50)

    def ask() -> None:
        with reader.snapshot() as snapshot:
            assert snapshot.pages.count() == 2
            together.wait()

    for _ in range(4):
        _run([ask] * 50)
        # SQLite keeps the descriptors of closed connections for the next ones, as long as one is open.
        assert _open_files(reader) <= 52
    for _ in range(500):
        with reader.snapshot() as snapshot:
            assert snapshot.pages.count() == 2
    assert _open_files(reader) <= 52


def test_threads_take_turns_even_under_a_trace(reader: Catalog) -> None:
    """A trace calls back into Python from inside SQLite, where two threads could wait for each other for ever."""
    statements: list[str] = []
    reader.connection.set_trace_callback(statements.append)
    with reader.snapshot() as snapshot:
        ids = [int(row[0]) for row in snapshot.execute("SELECT page_id FROM pages")]

        def look() -> None:
            for _ in range(100):
                assert len(snapshot.pages.get_many(ids)) == 2

        _run([look] * 4)
    assert len(statements) > 400


def test_a_reader_follows_an_index_that_was_put_in_place_of_its_own(making: Making, reader: Catalog) -> None:
    with reader.snapshot() as snapshot:
        assert snapshot.pages.count() == 2
    other = Making(making.paths.root.with_name("other"))
    other.add("b.pdf", ["one", "two", "three"])
    other.catalog.close()
    making.catalog.close()
    shutil.rmtree(making.paths.root)
    other.paths.root.rename(making.paths.root)
    with reader.snapshot() as snapshot:
        assert [document.filename for document in snapshot.documents.all()] == ["b.pdf"]
    assert _open_files(reader) == 1


def test_a_damaged_catalog_is_told(making: Making, reader: Catalog) -> None:
    making.catalog.execute("DROP TABLE meta")
    with pytest.raises(IndexUnusableError, match="no such table"), reader.snapshot():
        pass


def test_an_error_inside_ends_the_snapshot(reader: Catalog) -> None:
    kept: list[Snapshot] = []
    with pytest.raises(ZeroDivisionError), reader.snapshot() as snapshot:
        kept.append(snapshot)
        raise ZeroDivisionError
    assert not reader.connection.in_transaction
