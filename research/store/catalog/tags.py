"""Tags: what people call a document. Short writes, accepted while an ingest runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from research.errors import NothingFoundError, UsageError
from research.store.catalog.catalog import Catalog
from research.store.catalog.content import content_changed
from research.store.catalog.reader import Reader

_LONGEST = 100


def is_tag(value: object) -> bool:
    """One line that can be shown and typed."""
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and value == value.strip() and value.isprintable()


def add_tags(catalog: Catalog, doc_ids: Iterable[str], tags: Iterable[str]) -> None:
    """Give documents tags; those they have already stay. Raises `BusyError` if that is not possible within a second."""
    wanted = _checked(tags)
    with catalog.short_write() as connection:
        for doc_id in doc_ids:
            _check_known(connection, doc_id)
            write_tags(connection, doc_id, wanted)
        content_changed(connection)


def remove_tags(catalog: Catalog, doc_ids: Iterable[str], tags: Iterable[str]) -> None:
    """Take tags away; those they have not are no fault."""
    gone = _checked(tags)
    with catalog.short_write() as connection:
        for doc_id in doc_ids:
            _check_known(connection, doc_id)
            connection.executemany("DELETE FROM tags WHERE doc_id = ? AND tag = ?", [(doc_id, tag) for tag in gone])
        content_changed(connection)


def tags_of(reader: Reader, doc_id: str) -> list[str]:
    rows = reader.connection.execute("SELECT tag FROM tags WHERE doc_id = ? ORDER BY tag", (doc_id,))
    return [str(row[0]) for row in rows]


def all_tags(reader: Reader) -> dict[str, list[str]]:
    """tag → the documents that have it, both in order."""
    found: dict[str, list[str]] = {}
    for tag, doc_id in reader.connection.execute("SELECT tag, doc_id FROM tags ORDER BY tag, doc_id"):
        found.setdefault(str(tag), []).append(str(doc_id))
    return found


def write_tags(connection: sqlite3.Connection, doc_id: str, tags: Iterable[str]) -> None:
    """Part of the caller's transaction."""
    connection.executemany(
        "INSERT INTO tags (doc_id, tag) VALUES (?, ?) ON CONFLICT DO NOTHING", [(doc_id, tag) for tag in tags]
    )


def _checked(tags: Iterable[str]) -> list[str]:
    wanted = [tag.strip() for tag in tags]
    for tag in wanted:
        if not is_tag(tag):
            raise UsageError(f"{tag[:_LONGEST]!r} cannot be a tag", hint=f"use one line of up to {_LONGEST} characters")
    return wanted


def _check_known(connection: sqlite3.Connection, doc_id: str) -> None:
    if connection.execute("SELECT 1 FROM documents WHERE doc_id = ?", (doc_id,)).fetchone() is None:
        raise NothingFoundError(f"no document has the id {doc_id}", hint="see them all with: ctx list")
