"""Full-text search against the pages it stands for: does it still agree, and building it anew."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator

from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import index_name, words_of_name
from research.store.fulltext.analyzer import words


def rebuild_words(catalog: Catalog) -> int:
    """Make `page_words` and `name_words` afresh, all or nothing; returns how many pages there are."""
    with catalog.transaction() as connection:
        # Made anew and not emptied: emptying reads the very index that may be damaged.
        made = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'page_words'").fetchone()[0]
        connection.execute("DROP TABLE page_words")
        connection.execute(made)
        connection.execute("DELETE FROM name_words")
        return fill_words(connection)


def fill_words(connection: sqlite3.Connection) -> int:
    """Fill both where they are empty; part of the caller's transaction. Returns how many pages there are."""
    counts = []
    for page_id, body, section in _analysed(connection):
        connection.execute(
            "INSERT INTO page_words (rowid, body, section) VALUES (?, ?, ?)", (page_id, " ".join(body), section)
        )
        counts.append((len(body), page_id))
    connection.executemany("UPDATE pages SET words = ? WHERE page_id = ?", counts)
    for doc_id, filename, title in connection.execute("SELECT doc_id, filename, title FROM documents").fetchall():
        index_name(connection, doc_id, filename, title)
    return len(counts)


def words_disagree(catalog: Catalog) -> bool:
    """Whether full-text search lacks a page or a name, has one too many, or knows other words than the text has."""
    connection = catalog.connection
    if pages_disagree(catalog):
        return True
    try:
        for page_id, body, section in _analysed(connection):
            stored = connection.execute("SELECT body, section FROM page_words WHERE rowid = ?", (page_id,)).fetchone()
            if tuple(stored) != (" ".join(body), section):
                return True
        named = connection.execute("SELECT doc_id, word FROM name_words")
        return {(str(row[0]), str(row[1])) for row in named} != _names(connection)
    except sqlite3.DatabaseError:  # FTS5 finds its own tables damaged
        return True


def pages_disagree(catalog: Catalog) -> bool:
    """The quick look: whether full-text search holds exactly the pages there are."""
    try:
        return any(
            catalog.connection.execute(f"SELECT 1 FROM ({one} EXCEPT {other}) LIMIT 1").fetchone()
            for one, other in ((_PAGE_IDS, _WORD_IDS), (_WORD_IDS, _PAGE_IDS))
        )
    except sqlite3.DatabaseError:
        return True


def index_is_damaged(catalog: Catalog) -> bool:
    """FTS5's own check of its index against what it stores. Changes nothing, but needs a writable catalog."""
    try:
        catalog.connection.execute("INSERT INTO page_words (page_words) VALUES ('integrity-check')")
    except sqlite3.DatabaseError:
        return True
    return False


_PAGE_IDS = "SELECT page_id FROM pages"
_WORD_IDS = "SELECT rowid FROM page_words"


def _analysed(connection: sqlite3.Connection) -> Iterator[tuple[int, list[str], str]]:
    """page_id, the words of its text and those of its section, for every page."""
    for page_id, markdown, section in connection.execute("SELECT page_id, markdown, section_path FROM pages"):
        yield page_id, words(_text(markdown)), " ".join(words(section))


def _text(blob: bytes) -> str:
    try:
        return zlib.decompress(blob).decode()
    except (zlib.error, UnicodeDecodeError):  # `store.ailments` has its document read again
        return ""


def _names(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    rows = connection.execute("SELECT doc_id, filename, title FROM documents").fetchall()
    return {(doc_id, word) for doc_id, filename, title in rows for word in words_of_name(filename, title)}
