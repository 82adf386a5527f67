"""What the graph has not seen yet: documents without a mark of today's rules, items and memories after the last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from research.store.catalog.pages import batched, placeholders
from research.store.catalog.reader import Connection, Reader


@dataclass(frozen=True, slots=True)
class GraphedItem:
    """An item as far as the graph needs it."""

    item_no: int
    seq: int
    kind: str
    parent: str
    key: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class GraphedMemory:
    memory_no: int
    seq: int
    id: str
    session: str


def is_behind(reader: Reader, rules: int) -> bool:
    """Whether there is something to do; remembered while nobody writes."""
    known, key = reader.count_cache(), ("graph behind", rules)
    if key not in known:
        known[key] = bool(
            outdated_documents(reader, rules, 1)
            or items_after(reader, items_done(reader, rules), 1)
            or tenants_behind(reader, 1)
        )
    return bool(known[key])


def outdated_documents(reader: Reader, rules: int, limit: int) -> list[str]:
    rows = reader.connection.execute(
        "SELECT d.doc_id FROM documents d"
        " LEFT JOIN graphed_documents g ON g.doc_id = d.doc_id AND g.rules = ?"
        " WHERE g.doc_id IS NULL ORDER BY d.doc_id LIMIT ?",
        (rules, limit),
    )
    return [str(row[0]) for row in rows]


def document_state(connection: Connection, doc_id: str) -> tuple[Any, ...]:
    """What is another when a document's name or text is; empty if it is gone."""
    row = connection.execute(
        "SELECT d.filename, d.title, COUNT(*), SUM(p.words), SUM(LENGTH(p.markdown)) FROM documents d"
        " JOIN pages p ON p.doc_id = d.doc_id WHERE d.doc_id = ? GROUP BY d.filename, d.title",
        (doc_id,),
    ).fetchone()
    return () if row is None else tuple(row)


def items_done(reader: Reader, rules: int) -> int:
    """The last change of an item that is in the graph; 0 under other rules."""
    row = reader.connection.execute("SELECT seq FROM graphed_items WHERE rules = ?", (rules,)).fetchone()
    return 0 if row is None else int(row[0])


def items_after(reader: Reader, seq: int, limit: int) -> list[GraphedItem]:
    """In the order of their changes."""
    rows = reader.connection.execute(
        "SELECT item_no, seq, kind, parent, key, metadata FROM items WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit)
    )
    return [
        GraphedItem(int(row[0]), int(row[1]), str(row[2]), str(row[3]), str(row[4]), json.loads(row[5])) for row in rows
    ]


def parents_metadata(reader: Reader, kind: str, parents: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parent → what is told of it, of those there are."""
    found: dict[str, dict[str, Any]] = {}
    for part in batched(list(dict.fromkeys(parents))):
        query = f"SELECT parent, metadata FROM item_parents WHERE kind = ? AND parent IN ({placeholders(part)})"
        rows = reader.connection.execute(query, (kind, *part))
        found.update((str(row[0]), json.loads(row[1])) for row in rows)
    return found


def first_items(reader: Reader, kind: str, parents: Sequence[str]) -> dict[str, int]:
    """Parent → the number of its first item, of those that have any."""
    found: dict[str, int] = {}
    for part in batched(list(dict.fromkeys(parents))):
        query = (
            "SELECT parent, MIN(item_no) FROM items"
            f" WHERE kind = ? AND parent IN ({placeholders(part)}) GROUP BY parent"
        )
        found.update((str(row[0]), int(row[1])) for row in reader.connection.execute(query, (kind, *part)))
    return found


def tenants_behind(reader: Reader, limit: int) -> list[tuple[str, int]]:
    """(tenant, last change of its memories that is in the graph)."""
    rows = reader.connection.execute(
        "SELECT t.tenant, COALESCE(g.seq, 0) FROM memory_tenants t LEFT JOIN graphed_tenants g ON g.tenant = t.tenant"
        " WHERE COALESCE(g.seq, 0) < t.last_seq ORDER BY t.tenant LIMIT ?",
        (limit,),
    )
    return [(str(row[0]), int(row[1])) for row in rows]


def memories_after(reader: Reader, tenant: str, seq: int, limit: int) -> list[GraphedMemory]:
    """In the order of their changes."""
    rows = reader.connection.execute(
        "SELECT memory_no, seq, id, session FROM memories WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?",
        (tenant, seq, limit),
    )
    return [GraphedMemory(int(row[0]), int(row[1]), str(row[2]), str(row[3])) for row in rows]


def last_change(reader: Reader, tenant: str) -> int:
    row = reader.connection.execute("SELECT last_seq FROM memory_tenants WHERE tenant = ?", (tenant,)).fetchone()
    return 0 if row is None else int(row[0])


def titles(reader: Reader) -> list[tuple[str, str]]:
    """(id, title) of all documents."""
    rows = reader.connection.execute("SELECT doc_id, title FROM documents ORDER BY doc_id")
    return [(str(row[0]), str(row[1])) for row in rows]
