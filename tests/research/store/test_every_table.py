"""Whatever table the catalog has: it is made by a migration, kept in a backup, looked at by restore and by the doctor,
and empty of a document that was removed. A new table fails here until it has its place in each."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from backup_changing import unit_rows
from index_making import Making
from memory_making import tell, told

from research.encoders import pack
from research.graph import update_graph
from research.memories import AskedTurn, CitedPage
from research.records import FailedPage, Line, Page
from research.store import integrity, packages
from research.store.archive import backup
from research.store.catalog import Catalog
from research.store.checks import REBUILT, tables_of
from research.store.governance import AuditRow, Label
from research.store.items import NewItem
from research.store.ledger import FailedFile
from research.store.paths import IndexPaths
from research.store.restoring import restore
from research.store.vectors import PageBlobs

# What tells of the index, of files that are no documents, of memories and of items stays when a document goes.
OF_MEMORIES = {
    "memory_tenants", "memories", "memory_words", "memory_vectors", "memory_sources", "memory_feedback",
}  # fmt: skip
OF_ITEMS = {"item_parents", "items", "item_vectors", "item_words", "item_vocabulary"}
OF_PACKAGES = {"package_requests", "packages"}  # which are kept without text of what is gone
OF_GRAPH = {"nodes", "edges", "graphed_items", "graphed_tenants"}  # items and memories are in it, too
OF_NO_DOCUMENT = {
    "meta", "failed_files", "turns", "labels", "audit", "projections", *OF_PACKAGES, *OF_MEMORIES, *OF_ITEMS, *OF_GRAPH,
}  # fmt: skip


GRAPH = {table for table in REBUILT if not table.endswith(("_words", "_vocabulary"))}
VOCABULARIES = {"page_vocabulary", "item_vocabulary"}  # what FTS5 tells of its own


def _tables(connection: sqlite3.Connection) -> set[str]:
    """Ours, without what SQLite and FTS5 keep for themselves."""
    rows = connection.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
    return {name for name, kind in rows if kind != "shadow" and not name.startswith("sqlite_")}


def _count(catalog: Catalog, table: str) -> int:
    return int(catalog.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def _rows(catalog: Catalog, table: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in catalog.execute(f"SELECT * FROM {table}")), key=repr)


def _fill(making: Making) -> None:
    """At least one row in every table."""
    info = making.add("walrus.pdf", ["walrus", "seal"])
    making.embed()
    making.add("orca.pdf", ["orca, before its file changed"])
    chunk = making.add("orca.pdf", ["orca"])
    page = Page(1, "orca again", ocr_engine="tesseract")
    making.catalog.documents.write_ocr(chunk.doc_id, page, [], [Line("orca", (0, 0, 1, 1)), Line("ice", (0, 0, 1, 1))])
    (due,) = making.catalog.visual.pages_with_new_lines()
    making.catalog.visual.write([PageBlobs(due, b"", b"", b"", pack(unit_rows(2).astype(np.float32)))])
    making.catalog.labels.add_tags([info.doc_id], ["animals"])
    with making.catalog.transaction() as connection:
        connection.ledger.record(info.doc_id, [FailedPage(2, "images", "timeout", "slow")])
    making.catalog.ledger.record_file(FailedFile("/docs/bad.pdf", "ab" * 32, 1, "timeout", "slow"))
    _remember(making)
    _ask(making, info.doc_id)
    _write_code(making)
    _record_access(making)
    _build_package(making, info.doc_id)
    label = Label("memory:first", "classification", "Public", "anna", given_at="2026-01-02T00:00:00+00:00")
    page = f"page:file-{info.doc_id}#1"
    making.catalog.labels.put([label, *(replace(label, target=each, tenant="") for each in (page, "code:/src/a.py"))])
    _relate(making)


def _build_package(making: Making, doc_id: str) -> None:
    whose, at = packages.Whose("anna", "agent"), "2026-01-02T00:00:00+00:00"
    with making.catalog.transaction() as connection:
        connection.packages.put_request(whose, packages.StoredRequest("r1", at, '{"intent":"walrus"}'))
        stored = packages.StoredPackage("ab" * 16, "r1", at, at, "owner", "1-2-3", '{"contextPackageId":"x"}')
        connection.packages.put(whose, stored, [f"page:{doc_id}#1"])
        cached = packages.CachedRow("ab" * 16, "anna", "agent", "owner", "1-2-3", at, at, "cd" * 32, b"{}")
        connection.packages.put_cached(cached)


def _record_access(making: Making) -> None:
    entry = AuditRow(1, "2026-01-02T00:00:00+00:00", "access", "lab", "ann", "d1", 1, "ab" * 32, '{"refs":[]}')
    with making.catalog.transaction() as connection:
        connection.audit.add([entry])


def _relate(making: Making) -> None:
    making.add("reef.pdf", ["see orca.pdf", "see page 1"])
    update_graph(making.catalog)
    with making.catalog.transaction() as connection:
        connection.packages.put_projection("p-1", "2026-01-02T00:00:00+00:00", {"nodes": []})


def _ask(making: Making, doc_id: str) -> None:
    cited = CitedPage(1, doc_id, 1, 0.5, quotes=("walrus",))
    turn = AskedTurn("Where?", "Where? walrus", (cited,), "It is here [1].", "tiny", "2026-01-02T00:00:00+00:00")
    with making.catalog.transaction() as connection:
        assert connection.sessions.add("anna", "thesis", turn) == 1


def _write_code(making: Making) -> None:
    items = [NewItem("/src/a.py#swim", "swim", "def swim(): ...", metadata={"language": "python"}, words="water")]
    making.catalog.items.put("code", "/src/a.py", "1", items)
    making.catalog.items.write_vectors("made-up", [1], unit_rows(1).astype(np.float32))


def _remember(making: Making) -> None:
    tell(making.catalog, "anna", told("the walrus lives in Kiel", id="first"))
    tell(making.catalog, "anna", told("a summary of it", id="summary", sources=("first",)))
    with making.catalog.transaction() as connection:
        connection.memories.write_vectors("anna", "made-up", [1, 2], unit_rows(2).astype(np.float32))
        connection.memories.give_feedback("anna", 1, helped=True, score=0.5, at="2026-01-02T00:00:00+00:00")


@pytest.fixture
def filled(making: Making) -> Making:
    _fill(making)
    empty = {table for table in _tables(making.catalog.connection) if not _count(making.catalog, table)}
    assert empty == set(), "this test fills every table there is"
    return making


def test_it_is_in_a_backup(filled: Making, tmp_path: Path) -> None:
    backup(filled.paths, tmp_path / "backup.zip")
    paths = IndexPaths(tmp_path / "restored")
    restore(paths, tmp_path / "backup.zip")
    with Catalog(paths) as restored:
        for table in _tables(filled.catalog.connection) - {"meta", "memory_tenants"} - VOCABULARIES - GRAPH:
            assert _rows(restored, table) == _rows(filled.catalog, table), table
        assert {table: _count(restored, table) for table in GRAPH} == dict.fromkeys(GRAPH, 0), "it is made anew"
        update_graph(restored)
        assert restored.graph.count() == filled.catalog.graph.count()
        [(tenant, version, last_seq)], [before] = (_rows(each, "memory_tenants") for each in (restored, filled.catalog))
        assert (tenant, last_seq) == (before[0], before[2])
        assert version != before[1], "whoever held them before reads them again"
        assert {key for key, _ in _rows(restored, "meta")} == {key for key, _ in _rows(filled.catalog, "meta")}


def test_it_is_strict_and_looked_at_or_made_anew(filled: Making) -> None:
    connection = filled.catalog.connection
    assert _tables(connection) == {*tables_of(connection), *REBUILT}
    lax = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict"
    )
    assert {str(row[0]) for row in lax} - {"sqlite_schema", "sqlite_sequence"} == set()


def test_the_doctor_finds_rows_that_belong_to_nothing(filled: Making) -> None:
    connection = filled.catalog.connection
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DELETE FROM documents")
    (problem,) = integrity.check_references(filled.catalog)
    assert problem.fix is not None
    problem.fix(filled.catalog)
    for lost in integrity.check_removed(filled.catalog):
        assert lost.fix is not None
        lost.fix(filled.catalog)
    left = {table for table in tables_of(connection) if _count(filled.catalog, table)}
    assert left == OF_NO_DOCUMENT - REBUILT
    connection.execute("DELETE FROM memory_tenants")
    connection.execute("DELETE FROM item_parents")
    (problem,) = integrity.check_references(filled.catalog)
    assert problem.fix is not None
    problem.fix(filled.catalog)
    (lost,) = integrity.check_removed(filled.catalog)
    assert lost.fix is not None
    lost.fix(filled.catalog)
    assert {table for table in tables_of(connection) if _count(filled.catalog, table)} == {
        "meta", "failed_files", "turns", "audit", "projections", *OF_PACKAGES,
    }  # fmt: skip
    (problem,) = integrity.check_fulltext(filled.catalog)
    assert problem.fix is not None
    problem.fix(filled.catalog)
    assert not _count(filled.catalog, "item_words")


def test_a_removed_document_is_gone_from_it(filled: Making) -> None:
    for info in filled.catalog.documents.all():
        filled.catalog.documents.remove(info.doc_id)
    left = {table for table in _tables(filled.catalog.connection) if _count(filled.catalog, table)}
    assert left == OF_NO_DOCUMENT
    [turn] = filled.catalog.sessions.turns("anna", "thesis")
    assert (turn.question, turn.searched, turn.answer, turn.sources) == ("Where?", "Where?", "", ())


def test_a_forgotten_memory_is_gone_from_it(filled: Making) -> None:
    with filled.catalog.transaction() as connection:
        assert connection.memories.summaries("anna", [1]) == [2]
        assert connection.memories.forget("anna", [1, 2]) == ["first", "summary"]
    left = {table for table in _tables(filled.catalog.connection) if _count(filled.catalog, table)}
    assert left & OF_MEMORIES == set()


def test_removed_items_are_gone_from_it(filled: Making) -> None:
    assert filled.catalog.items.remove_parents("code", ["/src/a.py"]) == 1
    left = {table for table in _tables(filled.catalog.connection) if _count(filled.catalog, table)}
    assert left & OF_ITEMS == set()
