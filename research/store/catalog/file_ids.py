"""What stays with a file when its content changes: its lasting id, the ids its documents had before, and its tags.

`doc_id` comes from the content. `file_id` is given once and goes over to whatever the file holds next. Ids that were
given out before, in citations and scripts, go on meaning what the file holds now (`former_ids`, always one step); an id
that a document has today means that document.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from research.store.catalog.reader import Reader
from research.store.catalog.tags import write_tags


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What a document takes over from itself, when it is read again, and from what stood at its path before."""

    file_id: str  # empty: none of them had one
    former_ids: frozenset[str]
    tags: frozenset[str]
    added: str  # when this content was first added; empty if it is new


def inheritance(connection: sqlite3.Connection, doc_id: str, path: str) -> Inheritance:
    """Read before anything is deleted; part of the caller's transaction."""
    own = connection.execute("SELECT file_id, timestamp FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()
    # A document with a copy elsewhere stays as it is, and keeps what it has.
    gone = connection.execute(
        "SELECT doc_id, file_id FROM documents WHERE doc_id = (SELECT doc_id FROM files WHERE path = ?)"
        " AND doc_id <> ? AND NOT EXISTS (SELECT 1 FROM files other"
        " WHERE other.doc_id = documents.doc_id AND other.path <> ?)",
        (path, doc_id, path),
    ).fetchone()
    both = (doc_id, doc_id if gone is None else gone[0])
    tags = connection.execute("SELECT tag FROM tags WHERE doc_id IN (?, ?)", both)
    former = connection.execute("SELECT former_id FROM former_ids WHERE doc_id IN (?, ?)", both)
    file_id = own[0] if own is not None else gone[1] if gone is not None else ""
    ids = {str(row[0]) for row in former} | (set() if gone is None else {str(gone[0]), str(gone[1])})
    return Inheritance(
        file_id=str(file_id),
        former_ids=frozenset(ids - {doc_id, file_id}),
        tags=frozenset(str(row[0]) for row in tags),
        added=str(own[1]) if own is not None else "",
    )


def hand_over(connection: sqlite3.Connection, doc_id: str, left: Inheritance) -> None:
    """Written once the document is there; part of the caller's transaction."""
    write_tags(connection, doc_id, sorted(left.tags))
    connection.executemany(
        "INSERT INTO former_ids (former_id, doc_id) VALUES (?, ?)"
        " ON CONFLICT (former_id) DO UPDATE SET doc_id = excluded.doc_id",
        [(former_id, doc_id) for former_id in sorted(left.former_ids)],
    )


def new_file_id(connection: sqlite3.Connection, doc_id: str) -> str:
    """One that nothing has or had: the same content may have stood in another file, which has changed since."""
    number, found = 1, f"file-{doc_id}"
    while connection.execute(
        "SELECT 1 FROM documents WHERE file_id = ? UNION ALL SELECT 1 FROM former_ids WHERE former_id = ?",
        (found, found),
    ).fetchone():
        number += 1
        found = f"file-{doc_id}-{number}"
    return found


def current_ids(reader: Reader, ids: Iterable[str]) -> list[str]:
    """The documents that ids (today's, lasting or former) mean now, each once; those that mean none are left out."""
    found: dict[str, None] = {}
    for wanted in ids:
        for query in (
            "SELECT doc_id FROM documents WHERE doc_id = ?",
            "SELECT doc_id FROM documents WHERE file_id = ?",
            "SELECT doc_id FROM former_ids WHERE former_id = ?",
        ):
            row = reader.connection.execute(query, (wanted,)).fetchone()
            if row is not None:
                found[str(row[0])] = None
                break
    return list(found)


def former_ids_beginning(reader: Reader, beginning: str) -> list[str]:
    """The documents that former ids with this beginning (hex digits) mean now."""
    rows = reader.connection.execute(
        "SELECT DISTINCT doc_id FROM former_ids WHERE former_id >= ? AND former_id < ? ORDER BY doc_id",
        (beginning, f"{beginning}g"),
    )
    return [str(row[0]) for row in rows]
