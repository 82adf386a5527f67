"""SQLite's own: what full-text search holds of pages and of documents' names, kept with them.

Every function is part of the caller's transaction. Words are analysed before it begins (`PageWords.of`): that takes
most of the time, and short writes wait for a transaction to end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from research.store.fulltext.analyzer import name_words, words


@dataclass(frozen=True, slots=True)
class PageWords:
    """A page as full-text search sees it."""

    body: str
    section: str
    count: int  # words of the body

    @classmethod
    def of(cls, markdown: str, section_path: str) -> PageWords:
        body = words(markdown)
        return cls(" ".join(body), " ".join(words(section_path)), len(body))


def index_pages(connection: sqlite3.Connection, pages: Iterable[tuple[int, PageWords]]) -> None:
    """New pages, by their page_id."""
    connection.executemany(
        "INSERT INTO page_words (rowid, body, section) VALUES (?, ?, ?)",
        ((page_id, page.body, page.section) for page_id, page in pages),
    )


def forget_pages(connection: sqlite3.Connection, page_ids: Iterable[int]) -> None:
    connection.executemany("DELETE FROM page_words WHERE rowid = ?", ((page_id,) for page_id in page_ids))


def forget_document(connection: sqlite3.Connection, doc_id: str) -> None:
    """All its pages; before they are deleted."""
    connection.execute("DELETE FROM page_words WHERE rowid IN (SELECT page_id FROM pages WHERE doc_id = ?)", (doc_id,))


def index_name(connection: sqlite3.Connection, doc_id: str, filename: str, title: str) -> None:
    """The words a document can be called by, in place of those it had."""
    connection.execute("DELETE FROM name_words WHERE doc_id = ?", (doc_id,))
    found = words_of_name(filename, title)
    connection.executemany("INSERT INTO name_words VALUES (?, ?)", [(word, doc_id) for word in sorted(found)])


def words_of_name(filename: str, title: str) -> set[str]:
    stem = filename.rsplit(".", 1)[0]
    # BestBuy_2023 answers to "best buy" and to "bestbuy".
    return {*name_words(stem), *words(stem.replace("_", " ")), *words(title)}
