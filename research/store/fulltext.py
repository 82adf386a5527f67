"""SQLite's own: full-text search against the pages, items and memories it stands for. Does it still agree, and
building it anew."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from research.errors import CtxError
from research.store import analyzer
from research.store.catalog import Catalog
from research.store.paths import write_lock
from research.store.reader import Reader, Writer
from research.store.words import ANALYZER, ItemWords, PageWords, columns_of, words_of_name

_BATCH = 225  # rows of one transaction: they are analysed before it and kept in memory

_Row = tuple[int, Sequence[str], Sequence[int]]
"""A page's or item's number, its columns in full-text search, and the measures that are kept with it."""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of full-text search, the table whose rows it stands for, and how they are analysed."""

    name: str
    source: str
    key: str
    measures: str
    analysed: Callable[[Reader, Sequence[int]], Iterator[_Row]]

    @property
    def ids(self) -> str:
        return f"SELECT {self.key} FROM {self.source}"


def rebuild_fulltext(catalog: Catalog) -> int:
    """Make the words of pages, names, items and memories afresh, all or nothing; returns how many pages there are.

    Pages are analysed into a table aside, which takes nearly all of the time and keeps nobody from writing.
    """
    connection = catalog.connection
    connection.execute("CREATE TEMP TABLE analysed (row TEXT)")
    try:
        for part in _parts(connection, _PAGES):
            rows = [(json.dumps(row),) for row in _analysed_pages(connection, part)]
            connection.executemany("INSERT INTO temp.analysed VALUES (?)", rows)
        with catalog.transaction():
            for table in _TABLES:
                # Made anew and not emptied: emptying reads the very index that may be damaged.
                made = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table.name,)).fetchone()[0]
                connection.execute(f"DROP TABLE {table.name}")
                connection.execute(made)
            analysed = connection.execute("SELECT row FROM temp.analysed")
            while few := analysed.fetchmany(_BATCH):
                _write(connection, _PAGES, [json.loads(row[0]) for row in few])
            for part in _parts(connection, _ITEMS):
                _write(connection, _ITEMS, list(_analysed_items(connection, part)))
            connection.execute("DELETE FROM name_words")
            _index_names(connection)
            connection.memories.update_words()
    finally:
        connection.execute("DROP TABLE temp.analysed")
    return int(connection.execute("SELECT COUNT(*) FROM pages").fetchone()[0])


def fill_fulltext(connection: Writer) -> int:
    """Fill it where it is empty; part of the caller's transaction. Returns how many pages there are."""
    for table in _TABLES:
        for part in _parts(connection, table):
            _write(connection, table, list(table.analysed(connection, part)))
    _index_names(connection)
    connection.memories.update_words()
    return int(connection.execute("SELECT COUNT(*) FROM pages").fetchone()[0])


def update_fulltext(catalog: Catalog) -> None:
    """Analyse everything again and write what has other words now. Needs the write lock.

    In many transactions, so that short writes find their turn; what is stored as the analyzer's version comes last, so
    that a run that is stopped begins again.
    """
    for table in _TABLES:
        with catalog.transaction() as connection:
            strangers = connection.execute(f"SELECT rowid FROM {table.name} EXCEPT {table.ids}").fetchall()
            connection.words.forget(table.name, [int(row[0]) for row in strangers])
    for part in _parts(catalog.connection, _PAGES):
        if changed := list(_changed(catalog.connection, _PAGES, part)):
            with catalog.transaction() as connection:
                _write(connection, _PAGES, changed)
    for part in _parts(catalog.connection, _ITEMS):
        with catalog.transaction() as connection:  # short writes change items meanwhile
            _write(connection, _ITEMS, list(_changed(connection, _ITEMS, part)))
    with catalog.transaction() as connection:
        connection.memories.update_words()
    with catalog.transaction() as connection:
        _index_names(connection)


def update_if_outdated(catalog: Catalog) -> bool:
    """For a reader: bring full text up to the analyzer if nobody else is writing. True if that was done."""
    if not catalog.words.is_outdated():
        return False
    try:
        with write_lock(catalog.paths), Catalog(catalog.paths, writable=True) as opened:  # whose opening does it
            return not opened.words.is_outdated()
    except (CtxError, OSError):  # busy, or read-only: coverage tells
        return False


def fulltext_disagrees(reader: Reader) -> bool:
    """Whether full-text search lacks a row or a name, has one too many, or knows other words than the text has."""
    connection = reader
    if rows_disagree(reader):
        return True
    try:
        for table in _TABLES:
            for part in _parts(connection, table):
                if next(_changed(connection, table, part), None) is not None:
                    return True
        if next(connection.memories.outdated_words(), None) is not None:
            return True
        named = connection.execute("SELECT doc_id, word FROM name_words")
        documents = connection.execute("SELECT doc_id, filename, title FROM documents").fetchall()
        names = {(doc_id, word) for doc_id, filename, title in documents for word in words_of_name(filename, title)}
        return {(str(row[0]), str(row[1])) for row in named} != names
    except sqlite3.DatabaseError:  # FTS5 finds its own tables damaged
        return True


def rows_disagree(reader: Reader) -> bool:
    """The quick look: whether full-text search holds exactly the pages and items there are."""
    try:
        for table in _TABLES:
            held = f"SELECT rowid FROM {table.name}"
            for one, other in ((table.ids, held), (held, table.ids)):
                if reader.execute(f"SELECT 1 FROM ({one} EXCEPT {other}) LIMIT 1").fetchone():
                    return True
    except sqlite3.DatabaseError:
        return True
    return False


def index_is_damaged(catalog: Catalog) -> bool:
    """FTS5's own check of its index against what it stores. Changes nothing, but needs a writable catalog."""
    try:
        for table in _TABLES:
            catalog.execute(f"INSERT INTO {table.name} ({table.name}) VALUES ('integrity-check')")
    except sqlite3.DatabaseError:
        return True
    return False


def _parts(connection: Reader, table: _Table) -> Iterator[list[int]]:
    """The numbers of all rows, some at a time."""
    numbers = [int(row[0]) for row in connection.execute(f"{table.ids} ORDER BY {table.key}").fetchall()]
    for start in range(0, len(numbers), _BATCH):
        yield numbers[start : start + _BATCH]


def _changed(connection: Reader, table: _Table, numbers: Sequence[int]) -> Iterator[_Row]:
    """Analyse these rows, and give those that full-text search has other words of."""
    query = f"SELECT rowid, {columns_of(table.name)} FROM {table.name} WHERE rowid IN"
    held = {row[0]: tuple(row[1:]) for row in connection.rows_in(query, numbers)}
    return (row for row in table.analysed(connection, numbers) if held.get(row[0]) != tuple(row[1]))


def _write(connection: Writer, table: _Table, rows: Sequence[_Row]) -> None:
    """Put words and measures in place of those that were there."""
    connection.words.forget(table.name, [row[0] for row in rows])
    connection.words.write(table.name, [row[:2] for row in rows])
    measured = f"({table.measures}) = ({', '.join('?' * len(table.measures.split(',')))})"
    connection.executemany(
        f"UPDATE {table.source} SET {measured} WHERE {table.key} = ? AND NOT {measured}",
        [(*measures, number, *measures) for number, _, measures in rows],
    )


def _index_names(connection: Writer) -> None:
    for doc_id, filename, title in connection.execute("SELECT doc_id, filename, title FROM documents").fetchall():
        connection.words.index_name(doc_id, filename, title)
    connection.write_meta({ANALYZER: analyzer.version()})


def _analysed_pages(connection: Reader, numbers: Sequence[int]) -> Iterator[_Row]:
    query = "SELECT page_id, markdown, section_path FROM pages WHERE page_id IN"
    for page_id, markdown, section in connection.rows_in(query, numbers):
        words = PageWords.of(_text(markdown), section)
        yield int(page_id), words.columns, (words.count,)


def _analysed_items(connection: Reader, numbers: Sequence[int]) -> Iterator[_Row]:
    for item_no, kind, title, text, others in connection.items.texts(numbers):
        words = ItemWords.of(title, text, others)
        yield item_no, words.signed(kind), (words.length, words.title_length)


def _text(blob: bytes) -> str:
    try:
        return zlib.decompress(blob).decode()
    except (zlib.error, UnicodeDecodeError):  # `integrity` has its document read again
        return ""


_PAGES = _Table("page_words", "pages", "page_id", "words", _analysed_pages)
_ITEMS = _Table("item_words", "items", "item_no", "length, title_length", _analysed_items)
_TABLES = (_PAGES, _ITEMS)
