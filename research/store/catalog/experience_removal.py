"""Removing experiences, in one transaction with what was made of them: a value is a sentence of one experience and the
number of those that share it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence

from research.store.catalog.catalog import Catalog
from research.store.catalog.item_writes import remove_numbers
from research.store.catalog.labels import leave_parents
from research.store.catalog.meta import reserve_sequence
from research.store.catalog.pages import batched, placeholders
from research.store.catalog.reader import Connection
from research.store.fulltext.item_words import merge_some

LEAST_MEMBERS = 3
"""Experiences that a value is made of, at least."""


def remove_experiences(catalog: Catalog, ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """The experiences that were there, and the values that went with them. A short write; what goes is overwritten in
    the file."""
    with catalog.short_write(erase=True) as connection:
        gone, values = drop_experiences(connection, ids)
    if gone:
        _erase(catalog)
    return gone, values


def drop_experiences(connection: sqlite3.Connection, ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """The same as part of the caller's transaction."""
    gone: list[str] = []
    for part in batched(list(dict.fromkeys(ids))):
        marks = placeholders(part)
        there = f"SELECT parent FROM item_parents WHERE kind = 'experience' AND parent IN ({marks})"
        gone += [str(row[0]) for row in connection.execute(there, tuple(part))]
        numbers = f"SELECT item_no FROM items WHERE kind = 'experience' AND parent IN ({marks})"
        remove_numbers(connection, [int(row[0]) for row in connection.execute(numbers, tuple(part))])
        connection.execute(f"DELETE FROM item_parents WHERE kind = 'experience' AND parent IN ({marks})", tuple(part))
        leave_parents(connection, "experience", part)
    return gone, drop_from_values(connection, set(gone)) if gone else []


def _erase(catalog: Catalog) -> None:
    """What full-text search still holds of them on disk, in many short writes; and the log, where all of it stands."""
    left, first = True, True
    while left:
        with catalog.short_write(erase=True) as connection:
            left, first = merge_some(connection, first=first), False
    catalog.shrink_log()


def drop_from_values(connection: sqlite3.Connection, gone: Collection[str]) -> list[str]:
    """Values that quote one of these go, and those that are left with few members; the others become smaller. The keys
    of those that went. Part of the caller's transaction."""
    removed: list[tuple[int, str]] = []
    for number, key, written in connection.execute(
        "SELECT item_no, key, metadata FROM items WHERE kind = 'value' ORDER BY item_no"
    ).fetchall():
        metadata = json.loads(written)
        members = [str(each) for each in metadata.get("members") or ()]
        left = [each for each in members if each not in gone]
        size = int(metadata.get("cluster_size") or 0) - len(members) + len(left)
        if metadata.get("experience") in gone or (len(left) < len(members) and size < LEAST_MEMBERS):
            removed.append((int(number), str(key)))
        elif len(left) < len(members):
            changed = json.dumps(
                {**metadata, "members": left, "cluster_size": size}, ensure_ascii=False, sort_keys=True
            )
            connection.execute(
                "UPDATE items SET metadata = ?, seq = ? WHERE item_no = ?",
                (changed, reserve_sequence(connection, "items", 1), int(number)),
            )
    remove_numbers(connection, [number for number, _ in removed])
    return [key for _, key in removed]


def values_of_nobody(connection: Connection) -> list[int]:
    """The numbers of values that quote an experience which is not there."""
    there = {str(row[0]) for row in connection.execute("SELECT parent FROM item_parents WHERE kind = 'experience'")}
    rows = connection.execute("SELECT item_no, metadata FROM items WHERE kind = 'value'").fetchall()
    return [int(number) for number, written in rows if _quoted(written) not in there]


def _quoted(metadata: str) -> str:
    try:
        return str(json.loads(metadata)["experience"])
    except (ValueError, KeyError, TypeError):  # of a damaged catalog
        return ""
