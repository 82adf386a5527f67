"""What can be wrong inside an index, and what fixes it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

from research.store import files, generations
from research.store.catalog import Catalog, Connection
from research.store.checks import damage_of, delete_orphans, orphans_of, rebuild_indexes, unit_problem, value_problem
from research.store.fulltext import fulltext_disagrees, index_is_damaged, rebuild_fulltext, rows_disagree
from research.store.ledger import STAGE_OCR, STAGE_VECTORS
from research.store.paths import remove_tree
from research.store.reader import Writer

READ_AGAIN = "read them again with: ctx ingest PATH"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `fix` needs a writable catalog and the write lock; None: nothing can fix it."""

    name: str
    message: str
    fix: Callable[[Catalog], object] | None
    remedy: str = ""  # what is left for the user to do


IntegrityCheck = Callable[[Catalog], Iterator[Problem]]


def _if_any(
    name: str, found: Collection[object], message: str, fix: Callable[[Connection], object], remedy: str = ""
) -> Iterator[Problem]:
    """A problem if anything was found, fixed in one transaction. `{}` in the message is how many."""

    def in_transaction(catalog: Catalog) -> None:
        with catalog.transaction() as connection:
            fix(connection)

    if found:
        yield Problem(name, message.format(len(found)), in_transaction, remedy)


def check_structure(catalog: Catalog, *, quickly: bool = False) -> Iterator[Problem]:
    """SQLite's own check of the whole file, slow on a large one; `quickly` does not compare indexes with tables."""
    damage = damage_of(catalog.connection, quickly=quickly)
    if damage:
        yield Problem("catalog", f"damaged: {damage}", lambda opened: rebuild_indexes(opened.connection))


def check_references(catalog: Catalog) -> Iterator[Problem]:
    yield from _if_any("references", orphans_of(catalog.connection), "{} rows belong to nothing", delete_orphans)


def check_documents(catalog: Catalog) -> Iterator[Problem]:
    """Documents that are not whole, which no run of ours leaves behind."""
    rows = catalog.execute(
        "SELECT doc_id FROM documents d WHERE reader_version > 0"
        " AND num_pages <> (SELECT COUNT(*) FROM pages p WHERE p.doc_id = d.doc_id)"
    )
    yield from _unreadable({str(row[0]) for row in rows}, "lack pages")


def check_texts(catalog: Catalog) -> Iterator[Problem]:
    """Every page and chunk unpacked once."""
    damaged: set[str] = set()
    for text in (
        "markdown FROM pages",
        "text FROM chunks JOIN pages USING (page_id)",
        "lines FROM page_lines JOIN pages USING (page_id)",
    ):
        query = f"SELECT doc_id, {text} JOIN documents USING (doc_id) WHERE reader_version > 0"
        for doc_id, blob in catalog.execute(query):
            try:
                zlib.decompress(blob).decode()
            except (zlib.error, UnicodeDecodeError, TypeError):
                damaged.add(str(doc_id))
    yield from _unreadable(damaged, "have damaged text")


def _unreadable(doc_ids: set[str], what: str) -> Iterator[Problem]:
    """They are to be read as if an older reader had read them: the next run puts them in their own place."""
    statement, rows = "UPDATE documents SET reader_version = 0 WHERE doc_id = ?", [(each,) for each in doc_ids]
    yield from _if_any(
        "documents", doc_ids, f"{{}} documents {what}", lambda opened: opened.executemany(statement, rows), READ_AGAIN
    )


def check_vectors(catalog: Catalog) -> Iterator[Problem]:
    """Those of memories and items are made anew by the next question."""
    embed = "embed them again with: ctx ingest PATH"
    for name, table, keys, what, remedy in (
        ("vectors", "vectors", ("seq",), "vectors have the wrong size or length", embed),
        ("memories", "memory_vectors", ("tenant", "memory_no"), "vectors of memories have the wrong length", ""),
        ("items", "item_vectors", ("item_no", "part"), "vectors of items have the wrong length", ""),
    ):
        dim = catalog.chunks.dim() or None if table == "vectors" else None
        rows = catalog.execute(f"SELECT vector, {', '.join(keys)} FROM {table}")
        bad = [tuple(row)[1:] for row in rows if unit_problem(row[0], dim)]
        yield from _if_any(name, bad, f"{{}} {what}", partial(_drop_vectors, table=table, keys=keys, rows=bad), remedy)


def _drop_vectors(connection: Writer, table: str, keys: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    connection.executemany(f"DELETE FROM {table} WHERE {' AND '.join(f'{key} = ?' for key in keys)}", rows)
    if keys[0] == "tenant":
        _read_again(connection, rows)


def check_memories(catalog: Catalog) -> Iterator[Problem]:
    """What memories say of each other: joined to one that is gone, nobody would find them."""
    for column, also in (("joined_to", " OR o.joined_to IS NOT NULL"), ("superseded_by", "")):
        rows = catalog.execute(
            f"SELECT m.tenant, m.memory_no FROM memories m LEFT JOIN memories o ON o.tenant = m.tenant"
            f" AND o.memory_no = m.{column} WHERE m.{column} IS NOT NULL AND (o.memory_no IS NULL{also})"
        )
        found = [tuple(row) for row in rows]
        message = f"{{}} memories are {column.replace('_', ' ')} one that is gone"
        yield from _if_any("memories", found, message, partial(_unlink_memories, column=column, rows=found))


def _unlink_memories(connection: Writer, column: str, rows: list[tuple[object, ...]]) -> None:
    connection.executemany(f"UPDATE memories SET {column} = NULL WHERE tenant = ? AND memory_no = ?", rows)
    connection.memories.update_words()
    _read_again(connection, rows)


def _read_again(connection: Writer, rows: list[tuple[object, ...]]) -> None:
    """Whoever holds these tenants' memories has to."""
    tenants = [(tenant,) for tenant in {row[0] for row in rows}]
    connection.executemany("UPDATE memory_tenants SET version = version + 1 WHERE tenant = ?", tenants)


def check_removed(catalog: Catalog) -> Iterator[Problem]:
    """What was quoted from a thing, said of it or built of it is gone with it."""
    lost = catalog.sessions.lost_documents()
    message = "turns of sessions cite {} documents that are gone"
    yield from _if_any("sessions", lost, message, lambda opened: opened.sessions.leave(lost))
    owners = catalog.packages.lost_documents()
    message = "packages hold text of {} documents that are gone"
    yield from _if_any("packages", owners, message, lambda opened: opened.packages.leave(owners))
    values = catalog.items.values_of_nobody()
    message = "{} values quote experiences that are gone"
    yield from _if_any("items", values, message, lambda opened: opened.items.remove_numbers(values))
    labels = catalog.labels.lost()
    yield from _if_any(
        "labels", labels, "{} labels are of things that are gone", lambda opened: opened.labels.leave_targets(labels)
    )


def check_graph(catalog: Catalog) -> Iterator[Problem]:
    """All of it can be made anew, and is, by the first question that needs it."""
    yield from _if_any(
        "graph",
        range(catalog.graph.count_wrong()),
        "{} parts of it disagree with the catalog",
        lambda opened: opened.graph.drop(),
    )


def check_values(catalog: Catalog) -> Iterator[Problem]:
    """Every value looked at as restore does: what is found here keeps a backup from being made."""
    problem = value_problem(catalog.connection)
    if problem:
        yield Problem("values", f"the catalog is not as ctx writes it: {problem}", None)


def check_ledger(catalog: Catalog) -> Iterator[Problem]:
    """Work that is due and not noted would never be done."""
    for stage, due in (
        (STAGE_VECTORS, "pages JOIN chunks USING (page_id) LEFT JOIN vectors USING (chunk_id) WHERE seq IS NULL"),
        (STAGE_OCR, "pages WHERE needs_ocr = 1"),
    ):
        missing = (
            f"SELECT DISTINCT doc_id, '{stage}' FROM {due}"
            f" AND doc_id NOT IN (SELECT doc_id FROM ledger WHERE stage = '{stage}')"
        )
        found = catalog.execute(missing).fetchall()
        message, remedy = f"{{}} documents wait for {stage} and nobody knows", "finish them with: ctx ingest PATH"
        yield from _if_any("ledger", found, message, partial(_execute, f"INSERT INTO ledger {missing}"), remedy)


def _execute(statement: str, connection: Writer) -> None:
    connection.execute(statement)


def check_given_up(catalog: Catalog) -> Iterator[Problem]:
    """A page that was skipped and is not noted would never be tried again."""
    count = catalog.ledger.count_unnoted()
    if count:
        message = f"{count} pages were given up and nobody knows"
        yield Problem("given up", message, lambda opened: opened.ledger.note_unnoted(), READ_AGAIN)


def check_images(catalog: Catalog) -> Iterator[Problem]:
    missing = catalog.pages.missing_images()
    if missing:
        message, remedy = f"{len(missing)} page images are gone", "draw them again with: ctx ingest PATH"
        yield Problem("images", message, lambda opened: opened.pages.forget_images(missing), remedy)


def check_fulltext(catalog: Catalog) -> Iterator[Problem]:
    if rows_disagree(catalog):
        yield _fulltext_problem("holds other pages than the catalog")
    elif catalog.words.is_outdated():
        yield _fulltext_problem("was made by other rules than questions are read by")


def check_fulltext_words(catalog: Catalog) -> Iterator[Problem]:
    """Every word compared; needs a writable catalog."""
    if index_is_damaged(catalog):
        yield _fulltext_problem("is damaged")
    elif fulltext_disagrees(catalog):
        yield _fulltext_problem("disagrees with the pages")


def _fulltext_problem(what: str) -> Problem:
    return Problem("full text", f"full-text search {what}", rebuild_fulltext)


def check_leftovers(catalog: Catalog) -> Iterator[Problem]:
    """What stopped runs left on the disk. Nobody may be writing."""
    paths = catalog.paths
    known = {str(row[0]) for row in catalog.execute("SELECT doc_id FROM documents")}
    strangers = files.strange_images(paths, known)
    left: tuple[tuple[object, str, Callable[[], object]], ...] = (
        (
            generations.has_draft(paths.chroma),
            "an unfinished draft of the collections",
            lambda: generations.drop_draft(paths.chroma),
        ),
        (paths.has_spooled(), "pages that a stopped run had read", paths.clear_spool),
        (files.dead_passings(paths), "files that were not received to their end", lambda: files.sweep(paths)),
        (paths.restoring.exists(), "a stopped restore's files", lambda: remove_tree(paths.restoring)),
        (
            strangers,
            f"{len(strangers)} image folders of documents that are gone",
            lambda: files.sweep_images(paths, known),
        ),
    )
    for found, message, remove in left:
        if found:
            yield Problem("leftovers", message, lambda _, remove=remove: remove())  # type: ignore[misc]


QUICK: tuple[IntegrityCheck, ...] = (
    check_documents,
    check_ledger,
    check_given_up,
    check_images,
    check_memories,
    check_removed,
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
    check_memories,
    check_vectors,
    check_removed,
    check_graph,
    check_values,
    check_ledger,
    check_given_up,
    check_images,
    check_fulltext_words,
    check_leftovers,
)
