"""What can be wrong inside an index, and what mends it. `ctx doctor` looks, `ctx doctor --fix` mends."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from research.store.catalog import failures
from research.store.catalog.catalog import Catalog
from research.store.catalog.ledger import STAGE_OCR, STAGE_VECTORS
from research.store.catalog.vectors import dim_of
from research.store.files import images
from research.store.files.own_files import remove_tree
from research.store.fulltext.rebuild import index_is_damaged, pages_disagree, rebuild_words, words_disagree
from research.store.upkeep.catalog_checks import unit_problem, validate_catalog
from research.store.upkeep.foreign_keys import delete_orphans, orphans
from research.store.vectors import generations

READ_AGAIN = "read them again with: ctx ingest PATH"


@dataclass(frozen=True, slots=True)
class Ailment:
    """One finding. `mend` needs a writable catalog and the write lock; None: nothing here can mend it."""

    name: str
    message: str
    mend: Callable[[Catalog], None] | None
    afterwards: str = ""  # what is left for the user to do


Look = Callable[[Catalog], Iterator[Ailment]]


def structure(catalog: Catalog) -> Iterator[Ailment]:
    """SQLite's own check of the whole file; slow on a large one."""
    answer = [str(row[0]) for row in catalog.connection.execute("PRAGMA integrity_check(3)")]
    if answer != ["ok"]:
        yield Ailment("catalog", f"damaged: {'; '.join(answer)}", _rebuild_indexes)


def references(catalog: Catalog) -> Iterator[Ailment]:
    count = orphans(catalog.connection)
    if count:
        yield Ailment("references", f"{count} rows belong to nothing", _drop_orphans)


def documents(catalog: Catalog) -> Iterator[Ailment]:
    """Documents that are not whole, which no run of ours leaves behind."""
    rows = catalog.connection.execute(
        "SELECT doc_id FROM documents d WHERE reader_version > 0"
        " AND num_pages <> (SELECT COUNT(*) FROM pages p WHERE p.doc_id = d.doc_id)"
    )
    yield from _unreadable({str(row[0]) for row in rows}, "lack pages")


def texts(catalog: Catalog) -> Iterator[Ailment]:
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


def vectors(catalog: Catalog) -> Iterator[Ailment]:
    dim = dim_of(catalog)
    rows = catalog.connection.execute("SELECT seq, vector FROM vectors")
    bad = [int(seq) for seq, vector in rows if unit_problem(vector, dim)] if dim else []
    if bad:
        yield Ailment(
            "vectors",
            f"{len(bad)} vectors have the wrong size or length",
            lambda opened: _drop_vectors(opened, bad),
            "embed them again with: ctx ingest PATH",
        )


def values(catalog: Catalog) -> Iterator[Ailment]:
    """Every value looked at as restore does: what is found here keeps a backup from being made."""
    problem = next(validate_catalog(catalog.connection), None)
    if problem is not None:
        yield Ailment("values", f"the catalog is not as ctx writes it: {problem}", None)


def ledger(catalog: Catalog) -> Iterator[Ailment]:
    """Work that is due and not noted would never be done."""
    for stage, due in ((STAGE_VECTORS, _WITHOUT_VECTORS), (STAGE_OCR, _WITHOUT_OCR)):
        missing = f"{due} AND doc_id NOT IN (SELECT doc_id FROM ledger WHERE stage = '{stage}')"
        count = _count(catalog, f"SELECT COUNT(*) FROM ({missing})")
        if count:
            yield Ailment(
                "ledger",
                f"{count} documents wait for {stage} and nobody knows",
                lambda opened, rows=missing, stage=stage: _change(  # type: ignore[misc]
                    opened, f"INSERT INTO ledger SELECT doc_id, '{stage}' FROM ({rows})"
                ),
                "finish them with: ctx ingest PATH",
            )


def given_up(catalog: Catalog) -> Iterator[Ailment]:
    """A page that was skipped and is not noted would never be tried again."""
    count = failures.nameless(catalog)
    if count:
        message = f"{count} pages were given up and nobody knows"
        yield Ailment("given up", message, failures.name_them, READ_AGAIN)


def page_images(catalog: Catalog) -> Iterator[Ailment]:
    missing = images.missing(catalog)
    if missing:
        yield Ailment(
            "images",
            f"{len(missing)} page images are gone",
            lambda opened: images.forget(opened, missing),
            "draw them again with: ctx ingest PATH",
        )


def full_text(catalog: Catalog) -> Iterator[Ailment]:
    if pages_disagree(catalog):
        yield _wordy("holds other pages than the catalog")


def full_text_closely(catalog: Catalog) -> Iterator[Ailment]:
    """Every word compared; needs a writable catalog."""
    if index_is_damaged(catalog):
        yield _wordy("is damaged")
    elif words_disagree(catalog):
        yield _wordy("disagrees with the pages")


def leftovers(catalog: Catalog) -> Iterator[Ailment]:
    """What stopped runs left on the disk. Nobody may be writing."""
    paths = catalog.paths
    if generations.has_draft(paths.chroma):
        yield Ailment(
            "leftovers", "an unfinished draft of the collections", lambda _: generations.drop_draft(paths.chroma)
        )
    if paths.has_spooled():
        yield Ailment("leftovers", "pages that a stopped run had read", lambda _: paths.clear_spool())
    if paths.restoring.exists():
        yield Ailment("leftovers", "a stopped restore's files", lambda _: remove_tree(paths.restoring))
    known = {str(row[0]) for row in catalog.connection.execute("SELECT doc_id FROM documents")}
    strangers = images.strangers(paths, known)
    if strangers:
        message = f"{len(strangers)} image folders of documents that are gone"
        yield Ailment("leftovers", message, lambda _: images.sweep(paths, known))


QUICK: tuple[Look, ...] = (documents, ledger, given_up, page_images, full_text, leftovers)
# Each stands on those before it.
THOROUGH: tuple[Look, ...] = (
    structure,
    references,
    documents,
    texts,
    vectors,
    values,
    ledger,
    given_up,
    page_images,
    full_text_closely,
    leftovers,
)

_WITHOUT_VECTORS = (
    "SELECT DISTINCT doc_id FROM pages JOIN chunks USING (page_id) LEFT JOIN vectors USING (chunk_id) WHERE seq IS NULL"
)
_WITHOUT_OCR = "SELECT DISTINCT doc_id FROM pages WHERE needs_ocr"


def _unreadable(doc_ids: set[str], what: str) -> Iterator[Ailment]:
    if doc_ids:
        yield Ailment(
            "documents", f"{len(doc_ids)} documents {what}", lambda opened: _to_be_read(opened, doc_ids), READ_AGAIN
        )


def _to_be_read(catalog: Catalog, doc_ids: set[str]) -> None:
    """As if an older reader had read them: the next run reads them again and puts them in their own place."""
    with catalog.transaction() as connection:
        connection.executemany("UPDATE documents SET reader_version = 0 WHERE doc_id = ?", [(d,) for d in doc_ids])


def _wordy(what: str) -> Ailment:
    return Ailment("full text", f"full-text search {what}", _reword)


def _reword(catalog: Catalog) -> None:
    rebuild_words(catalog)


def _rebuild_indexes(catalog: Catalog) -> None:
    try:
        catalog.connection.execute("REINDEX")
    except sqlite3.DatabaseError:
        return  # the second look finds it as it was and says so


def _drop_orphans(catalog: Catalog) -> None:
    with catalog.transaction() as connection:
        delete_orphans(connection)


def _drop_vectors(catalog: Catalog, sequence: list[int]) -> None:
    with catalog.transaction() as connection:
        connection.executemany("DELETE FROM vectors WHERE seq = ?", [(number,) for number in sequence])


def _change(catalog: Catalog, statement: str, *values: object) -> None:
    with catalog.transaction() as connection:
        connection.execute(statement, values)


def _count(catalog: Catalog, query: str, *values: object) -> int:
    return int(catalog.connection.execute(query, values).fetchone()[0])
