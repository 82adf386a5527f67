"""SQLite's own: full-text search against the pages, memories and items it stands for. Does it still agree, and
building it anew."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator

from research.errors import CtxError
from research.store.catalog.catalog import Catalog
from research.store.catalog.memories import outdated_words, update_words
from research.store.catalog.pages import batched, placeholders
from research.store.catalog.reader import Connection, Reader, write_meta
from research.store.files.paths import write_lock
from research.store.fulltext import analyzer
from research.store.fulltext.item_words import (
    items_disagree,
    outdated_items,
    rebuild_item_words,
    update_item_words,
)
from research.store.fulltext.search import (
    ANALYZER,
    PageWords,
    forget_pages,
    index_name,
    index_pages,
    is_outdated,
    words_of_name,
)

_VALUES = 4  # a page, as `batched` counts them: pages of one transaction are analysed before it and kept in memory


def rebuild_fulltext(catalog: Catalog) -> int:
    """Make `page_words` and `name_words` afresh, all or nothing; returns how many pages there are.

    Pages are analysed into a table aside, which takes nearly all of the time and keeps nobody from writing.
    """
    connection = catalog.connection
    connection.execute("CREATE TEMP TABLE analysed (page_id INTEGER PRIMARY KEY, body, section, words)")
    try:
        ids = _page_ids(connection)
        for part in batched(ids, values=_VALUES):
            rows = [(page_id, made.body, made.section, made.count) for page_id, made in _analysed(connection, part)]
            connection.executemany("INSERT INTO temp.analysed VALUES (?, ?, ?, ?)", rows)
        with catalog.transaction():
            # Made anew and not emptied: emptying reads the very index that may be damaged.
            made = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'page_words'").fetchone()[0]
            connection.execute("DROP TABLE page_words")
            connection.execute(made)
            connection.execute(
                "INSERT INTO page_words (rowid, body, section) SELECT page_id, body, section FROM temp.analysed"
            )
            counted = "(SELECT a.words FROM temp.analysed a WHERE a.page_id = pages.page_id)"
            connection.execute(f"UPDATE pages SET words = {counted} WHERE words <> {counted}")
            connection.execute("DELETE FROM name_words")
            _index_names(connection)
            update_words(connection)
            rebuild_item_words(connection)
    finally:
        connection.execute("DROP TABLE temp.analysed")
    return len(ids)


def fill_fulltext(connection: sqlite3.Connection) -> int:
    """Fill both where they are empty; part of the caller's transaction. Returns how many pages there are."""
    ids = _page_ids(connection)
    for part in batched(ids, values=_VALUES):
        _index(connection, list(_analysed(connection, part)))
    _index_names(connection)
    update_words(connection)
    update_item_words(connection)
    return len(ids)


def update_fulltext(catalog: Catalog) -> None:
    """Analyse every page again and write those that have other words now. Needs the write lock.

    In many transactions, so that short writes find their turn; what is stored as the analyzer's version comes last, so
    that a run that is stopped begins again.
    """
    for part in batched(_page_ids(catalog.connection), values=_VALUES):
        changed = list(_changed(catalog, part))
        if changed:
            with catalog.transaction() as connection:
                forget_pages(connection, (page_id for page_id, _ in changed))
                _index(connection, changed)
    with catalog.transaction() as connection:
        update_words(connection)
    with catalog.transaction() as connection:
        update_item_words(connection)
    with catalog.transaction() as connection:
        _index_names(connection)


def update_if_outdated(catalog: Catalog) -> bool:
    """For a reader: bring full text up to the analyzer if nobody else is writing. True if that was done."""
    if not is_outdated(catalog):
        return False
    try:
        with write_lock(catalog.paths), Catalog(catalog.paths, writable=True) as opened:  # whose opening does it
            return not is_outdated(opened)
    except (CtxError, OSError):  # busy, or read-only: coverage tells
        return False


def _changed(reader: Reader, page_ids: list[int]) -> Iterator[tuple[int, PageWords]]:
    for page_id, words in _analysed(reader.connection, page_ids):
        row = reader.connection.execute("SELECT body, section FROM page_words WHERE rowid = ?", (page_id,)).fetchone()
        if row is None or tuple(row) != (words.body, words.section):
            yield page_id, words


def _index(connection: sqlite3.Connection, pages: list[tuple[int, PageWords]]) -> None:
    index_pages(connection, pages)
    counts = [(words.count, page_id) for page_id, words in pages]
    connection.executemany("UPDATE pages SET words = ? WHERE page_id = ?", counts)


def _index_names(connection: sqlite3.Connection) -> None:
    for doc_id, filename, title in connection.execute("SELECT doc_id, filename, title FROM documents").fetchall():
        index_name(connection, doc_id, filename, title)
    write_meta(connection, {ANALYZER: analyzer.version()})


def fulltext_disagrees(reader: Reader) -> bool:
    """Whether full-text search lacks a page or a name, has one too many, or knows other words than the text has."""
    connection = reader.connection
    if pages_disagree(reader):
        return True
    try:
        for part in batched(_page_ids(connection), values=_VALUES):
            if next(_changed(reader, part), None) is not None:
                return True
        if next(outdated_words(connection), None) is not None or next(outdated_items(connection), None) is not None:
            return True
        named = connection.execute("SELECT doc_id, word FROM name_words")
        return {(str(row[0]), str(row[1])) for row in named} != _names(connection)
    except sqlite3.DatabaseError:  # FTS5 finds its own tables damaged
        return True


def pages_disagree(reader: Reader) -> bool:
    """The quick look: whether full-text search holds exactly the pages and items there are."""
    try:
        return items_disagree(reader.connection) or any(
            reader.connection.execute(f"SELECT 1 FROM ({one} EXCEPT {other}) LIMIT 1").fetchone()
            for one, other in ((_PAGE_IDS, _WORD_IDS), (_WORD_IDS, _PAGE_IDS))
        )
    except sqlite3.DatabaseError:
        return True


def index_is_damaged(catalog: Catalog) -> bool:
    """FTS5's own check of its index against what it stores. Changes nothing, but needs a writable catalog."""
    try:
        for table in ("page_words", "item_words"):
            catalog.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
    except sqlite3.DatabaseError:
        return True
    return False


_PAGE_IDS = "SELECT page_id FROM pages"
_WORD_IDS = "SELECT rowid FROM page_words"


def _page_ids(connection: Connection) -> list[int]:
    return [int(row[0]) for row in connection.execute(f"{_PAGE_IDS} ORDER BY page_id")]


def _analysed(connection: Connection, page_ids: list[int]) -> Iterator[tuple[int, PageWords]]:
    rows = connection.execute(
        f"SELECT page_id, markdown, section_path FROM pages WHERE page_id IN ({placeholders(page_ids)})", page_ids
    )
    for page_id, markdown, section in rows.fetchall():
        yield int(page_id), PageWords.of(_text(markdown), section)


def _text(blob: bytes) -> str:
    try:
        return zlib.decompress(blob).decode()
    except (zlib.error, UnicodeDecodeError):  # `upkeep.integrity` has its document read again
        return ""


def _names(connection: Connection) -> set[tuple[str, str]]:
    rows = connection.execute("SELECT doc_id, filename, title FROM documents").fetchall()
    return {(doc_id, word) for doc_id, filename, title in rows for word in words_of_name(filename, title)}
