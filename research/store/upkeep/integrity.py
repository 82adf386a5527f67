"""Integrity checks: what can be wrong inside an index, and what fixes it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from research.store.catalog import ledger, packages
from research.store.catalog.catalog import Catalog
from research.store.catalog.chunk_vectors import dim_of
from research.store.catalog.edge_writes import drop_graph
from research.store.catalog.edges import count_wrong
from research.store.catalog.item_writes import remove_numbers, values_of_nobody
from research.store.catalog.labels import labels_of_nothing, leave_targets
from research.store.catalog.ledger import STAGE_OCR, STAGE_VECTORS
from research.store.catalog.memories import update_words
from research.store.catalog.session_turns import leave_sessions, lost_documents
from research.store.files import images, uploads
from research.store.files.paths import remove_tree
from research.store.fulltext.rebuild import fulltext_disagrees, index_is_damaged, pages_disagree, rebuild_fulltext
from research.store.fulltext.search import is_outdated
from research.store.upkeep import structure
from research.store.upkeep.checks import unit_problem, value_problem
from research.store.vectors import generations

READ_AGAIN = "read them again with: ctx ingest PATH"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `fix` needs a writable catalog and the write lock; None: nothing can fix it."""

    name: str
    message: str
    fix: Callable[[Catalog], None] | None
    remedy: str = ""  # what is left for the user to do


IntegrityCheck = Callable[[Catalog], Iterator[Problem]]


def check_structure(catalog: Catalog) -> Iterator[Problem]:
    """SQLite's own check of the whole file; slow on a large one."""
    yield from _damage(catalog, quickly=False)


def check_structure_quickly(catalog: Catalog) -> Iterator[Problem]:
    """The same without comparing indexes with their tables."""
    yield from _damage(catalog, quickly=True)


def _damage(catalog: Catalog, *, quickly: bool) -> Iterator[Problem]:
    found = structure.damage(catalog.connection, quickly=quickly)
    if found:
        yield Problem("catalog", f"damaged: {found}", lambda opened: structure.rebuild_indexes(opened.connection))


def check_references(catalog: Catalog) -> Iterator[Problem]:
    count = structure.count_orphans(catalog.connection)
    if count:
        yield Problem("references", f"{count} rows belong to nothing", _drop_orphans)


def check_documents(catalog: Catalog) -> Iterator[Problem]:
    """Documents that are not whole, which no run of ours leaves behind."""
    rows = catalog.connection.execute(
        "SELECT doc_id FROM documents d WHERE reader_version > 0"
        " AND num_pages <> (SELECT COUNT(*) FROM pages p WHERE p.doc_id = d.doc_id)"
    )
    yield from _unreadable({str(row[0]) for row in rows}, "lack pages")


def check_texts(catalog: Catalog) -> Iterator[Problem]:
    """Every page and chunk unpacked once."""
    damaged: set[str] = set()
    for query in (
        "SELECT doc_id, markdown FROM pages JOIN documents USING (doc_id) WHERE reader_version > 0",
        "SELECT doc_id, text FROM chunks JOIN pages USING (page_id) JOIN documents USING (doc_id)"
        " WHERE reader_version > 0",
        "SELECT doc_id, lines FROM page_lines JOIN pages USING (page_id) JOIN documents USING (doc_id)"
        " WHERE reader_version > 0",
    ):
        for doc_id, blob in catalog.connection.execute(query):
            try:
                zlib.decompress(blob).decode()
            except (zlib.error, UnicodeDecodeError, TypeError):
                damaged.add(str(doc_id))
    yield from _unreadable(damaged, "have damaged text")


def check_vectors(catalog: Catalog) -> Iterator[Problem]:
    dim = dim_of(catalog)
    rows = catalog.connection.execute("SELECT seq, vector FROM vectors")
    bad = [int(seq) for seq, vector in rows if unit_problem(vector, dim)] if dim else []
    if bad:
        yield Problem(
            "vectors",
            f"{len(bad)} vectors have the wrong size or length",
            lambda opened: _drop_vectors(opened, bad),
            "embed them again with: ctx ingest PATH",
        )


def check_memories(catalog: Catalog) -> Iterator[Problem]:
    """What memories say of each other: joined to one that is gone, nobody would find them."""
    for column, lost in (("joined_to", _LOST_JOINS), ("superseded_by", _LOST_NEWER)):
        rows = [(str(row[0]), int(row[1])) for row in catalog.connection.execute(lost)]
        if rows:
            yield Problem(
                "memories",
                f"{len(rows)} memories are {column.replace('_', ' ')} one that is gone",
                lambda opened, rows=rows, column=column: _unlink_memories(opened, column, rows),  # type: ignore[misc]
            )


def check_memory_vectors(catalog: Catalog) -> Iterator[Problem]:
    rows = catalog.connection.execute("SELECT tenant, memory_no, vector FROM memory_vectors")
    bad = [(str(row[0]), int(row[1])) for row in rows if unit_problem(row[2])]
    if bad:
        message = f"{len(bad)} vectors of memories have the wrong length"
        yield Problem("memories", message, lambda opened: _drop_memory_vectors(opened, bad))


def check_sessions(catalog: Catalog) -> Iterator[Problem]:
    """What was quoted from a document that is gone should be, too."""
    lost = lost_documents(catalog)
    if lost:
        message = f"turns of sessions cite {len(lost)} documents that are gone"
        yield Problem("sessions", message, lambda opened: _leave_sessions(opened, lost))


def check_packages(catalog: Catalog) -> Iterator[Problem]:
    """What a package holds of a document that is gone should be, too."""
    lost = packages.lost_documents(catalog)
    if lost:
        message = f"packages hold text of {len(lost)} documents that are gone"
        yield Problem("packages", message, lambda opened: _leave_packages(opened, lost))


def check_item_vectors(catalog: Catalog) -> Iterator[Problem]:
    rows = catalog.connection.execute("SELECT item_no, vector FROM item_vectors")
    bad = sorted({int(row[0]) for row in rows if unit_problem(row[1])})
    if bad:
        message = f"the vectors of {len(bad)} items have the wrong length"
        yield Problem("items", message, lambda opened: _drop_item_vectors(opened, bad))


def check_values_of_experiences(catalog: Catalog) -> Iterator[Problem]:
    """A value is a sentence of an experience, and is removed with it."""
    strangers = values_of_nobody(catalog.connection)
    if strangers:
        message = f"{len(strangers)} values quote experiences that are gone"
        yield Problem("items", message, lambda opened: _drop_items(opened, strangers))


def check_labels(catalog: Catalog) -> Iterator[Problem]:
    """What is removed takes its labels along."""
    lost = labels_of_nothing(catalog)
    if lost:
        message = f"{len(lost)} labels are of things that are gone"
        yield Problem("labels", message, lambda opened: _drop_labels(opened, lost))


def check_graph(catalog: Catalog) -> Iterator[Problem]:
    """All of it can be made anew, and is, by the first question that needs it."""
    wrong = count_wrong(catalog)
    if wrong:
        yield Problem("graph", f"{wrong} parts of it disagree with the catalog", _drop_graph)


def check_values(catalog: Catalog) -> Iterator[Problem]:
    """Every value looked at as restore does: what is found here keeps a backup from being made."""
    problem = value_problem(catalog.connection)
    if problem:
        yield Problem("values", f"the catalog is not as ctx writes it: {problem}", None)


def check_ledger(catalog: Catalog) -> Iterator[Problem]:
    """Work that is due and not noted would never be done."""
    for stage, due in ((STAGE_VECTORS, _WITHOUT_VECTORS), (STAGE_OCR, _WITHOUT_OCR)):
        missing = f"{due} AND doc_id NOT IN (SELECT doc_id FROM ledger WHERE stage = '{stage}')"
        count = _count(catalog, f"SELECT COUNT(*) FROM ({missing}) AS missing")
        if count:
            yield Problem(
                "ledger",
                f"{count} documents wait for {stage} and nobody knows",
                lambda opened, rows=missing, stage=stage: _change(  # type: ignore[misc]
                    opened, f"INSERT INTO ledger SELECT doc_id, '{stage}' FROM ({rows}) AS missing"
                ),
                "finish them with: ctx ingest PATH",
            )


def check_given_up(catalog: Catalog) -> Iterator[Problem]:
    """A page that was skipped and is not noted would never be tried again."""
    count = ledger.nameless(catalog)
    if count:
        message = f"{count} pages were given up and nobody knows"
        yield Problem("given up", message, ledger.name_them, READ_AGAIN)


def check_images(catalog: Catalog) -> Iterator[Problem]:
    missing = images.missing(catalog)
    if missing:
        yield Problem(
            "images",
            f"{len(missing)} page images are gone",
            lambda opened: images.forget(opened, missing),
            "draw them again with: ctx ingest PATH",
        )


def check_fulltext(catalog: Catalog) -> Iterator[Problem]:
    if pages_disagree(catalog):
        yield _fulltext_problem("holds other pages than the catalog")
    elif is_outdated(catalog):
        yield _fulltext_problem("was made by other rules than questions are read by")


def check_fulltext_words(catalog: Catalog) -> Iterator[Problem]:
    """Every word compared; needs a writable catalog."""
    if index_is_damaged(catalog):
        yield _fulltext_problem("is damaged")
    elif fulltext_disagrees(catalog):
        yield _fulltext_problem("disagrees with the pages")


def check_leftovers(catalog: Catalog) -> Iterator[Problem]:
    """What stopped runs left on the disk. Nobody may be writing."""
    paths = catalog.paths
    if generations.has_draft(paths.chroma):
        yield Problem(
            "leftovers", "an unfinished draft of the collections", lambda _: generations.drop_draft(paths.chroma)
        )
    if paths.has_spooled():
        yield Problem("leftovers", "pages that a stopped run had read", lambda _: paths.clear_spool())
    if uploads.dead_passings(paths):
        yield Problem("leftovers", "files that were not received to their end", lambda _: uploads.sweep(paths))
    if paths.restoring.exists():
        yield Problem("leftovers", "a stopped restore's files", lambda _: remove_tree(paths.restoring))
    known = {str(row[0]) for row in catalog.connection.execute("SELECT doc_id FROM documents")}
    strangers = images.strangers(paths, known)
    if strangers:
        message = f"{len(strangers)} image folders of documents that are gone"
        yield Problem("leftovers", message, lambda _: images.sweep(paths, known))


QUICK: tuple[IntegrityCheck, ...] = (
    check_documents,
    check_ledger,
    check_given_up,
    check_images,
    check_memories,
    check_sessions,
    check_packages,
    check_values_of_experiences,
    check_labels,
    check_graph,
    check_fulltext,
    check_leftovers,
)
# Each stands on those before it.
FULL: tuple[IntegrityCheck, ...] = (
    check_structure,
    check_references,
    check_documents,
    check_texts,
    check_vectors,
    check_memories,
    check_memory_vectors,
    check_sessions,
    check_packages,
    check_item_vectors,
    check_values_of_experiences,
    check_labels,
    check_graph,
    check_values,
    check_ledger,
    check_given_up,
    check_images,
    check_fulltext_words,
    check_leftovers,
)

_WITHOUT_VECTORS = (
    "SELECT DISTINCT doc_id FROM pages JOIN chunks USING (page_id) LEFT JOIN vectors USING (chunk_id) WHERE seq IS NULL"
)
_LOST_JOINS = (
    "SELECT m.tenant, m.memory_no FROM memories m"
    " LEFT JOIN memories j ON j.tenant = m.tenant AND j.memory_no = m.joined_to"
    " WHERE m.joined_to IS NOT NULL AND (j.memory_no IS NULL OR j.joined_to IS NOT NULL)"
)
_LOST_NEWER = (
    "SELECT m.tenant, m.memory_no FROM memories m"
    " LEFT JOIN memories n ON n.tenant = m.tenant AND n.memory_no = m.superseded_by"
    " WHERE m.superseded_by IS NOT NULL AND n.memory_no IS NULL"
)
_WITHOUT_OCR = "SELECT DISTINCT doc_id FROM pages WHERE needs_ocr = 1"


def _unreadable(doc_ids: set[str], what: str) -> Iterator[Problem]:
    if doc_ids:
        yield Problem(
            "documents", f"{len(doc_ids)} documents {what}", lambda opened: _mark_unread(opened, doc_ids), READ_AGAIN
        )


def _mark_unread(catalog: Catalog, doc_ids: set[str]) -> None:
    """As if an older reader had read them: the next run reads them again and puts them in their own place."""
    with catalog.transaction() as connection:
        connection.executemany("UPDATE documents SET reader_version = 0 WHERE doc_id = ?", [(d,) for d in doc_ids])


def _fulltext_problem(what: str) -> Problem:
    return Problem("full text", f"full-text search {what}", _rebuild_fulltext)


def _rebuild_fulltext(catalog: Catalog) -> None:
    rebuild_fulltext(catalog)


def _drop_graph(catalog: Catalog) -> None:
    with catalog.transaction() as connection:
        drop_graph(connection)


def _drop_orphans(catalog: Catalog) -> None:
    with catalog.transaction() as connection:
        structure.delete_orphans(connection)


def _drop_vectors(catalog: Catalog, sequence: list[int]) -> None:
    with catalog.transaction() as connection:
        connection.executemany("DELETE FROM vectors WHERE seq = ?", [(number,) for number in sequence])


def _unlink_memories(catalog: Catalog, column: str, rows: list[tuple[str, int]]) -> None:
    with catalog.transaction() as connection:
        connection.executemany(f"UPDATE memories SET {column} = NULL WHERE tenant = ? AND memory_no = ?", rows)
        update_words(connection)
        _read_again(connection, rows)


def _drop_memory_vectors(catalog: Catalog, rows: list[tuple[str, int]]) -> None:
    """The next question makes them anew."""
    with catalog.transaction() as connection:
        connection.executemany("DELETE FROM memory_vectors WHERE tenant = ? AND memory_no = ?", rows)
        _read_again(connection, rows)


def _leave_sessions(catalog: Catalog, doc_ids: list[str]) -> None:
    with catalog.transaction() as connection:
        leave_sessions(connection, doc_ids)


def _leave_packages(catalog: Catalog, owners: list[str]) -> None:
    with catalog.transaction() as connection:
        packages.leave_packages(connection, owners)


def _drop_labels(catalog: Catalog, lost: list[tuple[str, str]]) -> None:
    with catalog.transaction() as connection:
        for tenant, target in lost:
            leave_targets(connection, tenant, [target])


def _drop_items(catalog: Catalog, numbers: list[int]) -> None:
    with catalog.transaction() as connection:
        remove_numbers(connection, numbers)


def _drop_item_vectors(catalog: Catalog, numbers: list[int]) -> None:
    """The next question makes them anew."""
    with catalog.transaction() as connection:
        connection.executemany("DELETE FROM item_vectors WHERE item_no = ?", [(number,) for number in numbers])


def _read_again(connection: sqlite3.Connection, rows: list[tuple[str, int]]) -> None:
    """Whoever holds these tenants' memories has to."""
    tenants = [(tenant,) for tenant in sorted({tenant for tenant, _ in rows})]
    connection.executemany("UPDATE memory_tenants SET version = version + 1 WHERE tenant = ?", tenants)


def _change(catalog: Catalog, statement: str, *values: object) -> None:
    with catalog.transaction() as connection:
        connection.execute(statement, values)


def _count(catalog: Catalog, query: str, *values: object) -> int:
    return int(catalog.connection.execute(query, values).fetchone()[0])
