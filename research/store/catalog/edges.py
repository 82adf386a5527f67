"""The graph, read: nodes are refs under numbers, edges lead from one to another, one recursive statement walks them;
and what the graph has not seen yet. `edge_writes` has what changes it.

However many edges a node has, and however they run in circles, a walk costs what it may show: of every node it takes
the first edges of both directions, as the indexes have them, so kinds are numbered by what they are worth.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from research.store.catalog.pages import batched, placeholders, rows_in
from research.store.catalog.reader import Connection, Reader

REFERS, CITES, NEWER, CALLS, IMPORTS, SUPPORTS, CHANGES, TOLD_IN, CONTAINS = range(1, 10)

EDGE_KINDS: Mapping[str, int] = {
    "refers": REFERS,  # page → page
    "cites": CITES,  # page or document → document
    "newer": NEWER,  # document → the version before it
    "calls": CALLS,  # code → code
    "imports": IMPORTS,  # code → code
    "supports": SUPPORTS,  # experience → value
    "changes": CHANGES,  # commit → file
    "told_in": TOLD_IN,  # memory → session
    "contains": CONTAINS,  # document → section → page, file → code
}
KIND_NAMES: Mapping[int, str] = {number: name for name, number in EDGE_KINDS.items()}

MOST_SEEDS = 200
_ROWS = 8_000  # that a walk may take, about
_LEAST_EDGES = 3  # of a node in each direction, however many nodes are begun with


@dataclass(frozen=True, slots=True)
class StoredNode:
    node_no: int
    ref: str
    name: str
    hop: int


@dataclass(frozen=True, slots=True)
class StoredEdge:
    source: int
    kind: int
    target: int
    name: int = 0  # by which it is known


def find_nodes(connection: Connection, refs: Iterable[str], tenant: str) -> dict[str, int]:
    """ref → number of those there are: everybody's, and of memories and sessions this tenant's. What stands for itself
    is there as long as an edge leads to it."""
    query = (
        "SELECT n.ref, n.node_no FROM nodes n WHERE (n.tenant IS NULL OR n.tenant = ?)"
        " AND (n.doc_id IS NOT NULL OR n.item_no IS NOT NULL OR n.memory_no IS NOT NULL"
        " OR EXISTS (SELECT 1 FROM edges o WHERE o.source = n.node_no)"
        " OR EXISTS (SELECT 1 FROM edges i WHERE i.target = n.node_no)) AND n.ref IN"
    )
    rows = rows_in(connection, query, list(dict.fromkeys(refs)), first=(tenant,))
    return {str(ref): int(number) for ref, number in rows}


def edges_a_node(seeds: int, hops: int, most: int) -> int:
    """How many edges of a node a walk takes in each direction."""
    share = int((_ROWS / max(1, seeds)) ** (1 / hops) / 2)
    return max(_LEAST_EDGES, min(most, share))


def walk(
    reader: Reader, seeds: Collection[int], *, hops: int, kinds: Sequence[int], fan_out: int, most: int, tenant: str
) -> list[StoredNode]:
    """The nodes that edges of these kinds lead to, in either direction, the nearest first; seeds have hop 0."""
    start = sorted(seeds)[:MOST_SEEDS]
    near = _near_edges("w", kinds)
    rows = reader.connection.execute(
        "WITH RECURSIVE walk (node_no, hop) AS ("
        f"SELECT s.node_no, 0 FROM nodes s WHERE s.node_no IN ({placeholders(start)})"
        " AND (s.tenant IS NULL OR s.tenant = ?)"
        " UNION "
        "SELECT n.node_no, w.hop + 1 FROM walk w"
        f" JOIN edges e ON w.hop < ? AND e.edge_no IN ({near})"
        " JOIN nodes n ON n.node_no = CASE WHEN e.source = w.node_no THEN e.target ELSE e.source END"
        " WHERE n.tenant IS NULL OR n.tenant = ?"
        "), near AS (SELECT node_no, MIN(hop) AS hop FROM walk GROUP BY node_no)"
        " SELECT n.node_no, n.ref, n.name, near.hop FROM near JOIN nodes n ON n.node_no = near.node_no"
        " ORDER BY near.hop, n.node_no LIMIT ?",
        (*start, tenant, hops, *kinds, fan_out, *kinds, fan_out, tenant, most),
    )
    return [StoredNode(*row) for row in rows]


def edges_between(
    reader: Reader, nodes: Collection[int], among: Collection[int], *, kinds: Sequence[int], fan_out: int
) -> tuple[list[StoredEdge], bool]:
    """The edges that a walk takes from these nodes, as far as they lead to one of those `among` them; and whether one
    of them has as many edges as a walk takes, or more."""
    wanted = set(among)
    found: dict[StoredEdge, None] = {}
    taken: Counter[tuple[int, bool]] = Counter()
    for part in batched(sorted(nodes)):
        rows = reader.connection.execute(
            "SELECT w.node_no, e.source, e.kind, e.target, e.name FROM nodes w"
            f" JOIN edges e ON e.edge_no IN ({_near_edges('w', kinds)}) WHERE w.node_no IN ({placeholders(part)})",
            (*kinds, fan_out, *kinds, fan_out, *part),
        )
        for row in rows:
            edge = StoredEdge(int(row[1]), int(row[2]), int(row[3]), int(row[4]))
            taken[int(row[0]), edge.source == int(row[0])] += 1
            if edge.source in wanted and edge.target in wanted:
                found[edge] = None
    full = max(taken.values(), default=0) >= fan_out
    return sorted(found, key=lambda edge: (edge.kind, edge.source, edge.target, edge.name)), full


def _near_edges(of: str, kinds: Sequence[int]) -> str:
    """The first edges of a node in each direction."""
    among = placeholders(kinds)
    return (
        f"SELECT edge_no FROM (SELECT o.edge_no FROM edges o WHERE o.source = {of}.node_no AND o.kind IN ({among})"
        " ORDER BY o.kind, o.target LIMIT ?) AS outgoing"
        " UNION ALL "
        f"SELECT edge_no FROM (SELECT i.edge_no FROM edges i WHERE i.target = {of}.node_no AND i.kind IN ({among})"
        " ORDER BY i.kind, i.source LIMIT ?) AS incoming"
    )


def gone_memories(reader: Reader, tenant: str, refs: Sequence[str], now: str) -> set[str]:
    """Of these `memory:` refs those whose time is over."""
    query = (
        "SELECT n.ref FROM nodes n JOIN memories m ON m.tenant = n.tenant AND m.memory_no = n.memory_no"
        " WHERE n.tenant = ? AND m.expires_at <> '' AND m.expires_at <= ? AND n.ref IN"
    )
    return {str(row[0]) for row in rows_in(reader.connection, query, refs, first=(tenant, now))}


def node_titles(reader: Reader, refs: Sequence[str], tenant: str) -> dict[str, tuple[str, str]]:
    """ref → (file name of its document, what it is called), as far as there is any."""
    query = (
        "SELECT n.ref, COALESCE(d.filename, ''),"
        " CASE WHEN n.name <> '' THEN n.name ELSE COALESCE(i.title, m.text, d.title, '') END"
        " FROM nodes n LEFT JOIN documents d ON d.doc_id = n.doc_id LEFT JOIN items i ON i.item_no = n.item_no"
        " LEFT JOIN memories m ON m.tenant = n.tenant AND m.memory_no = n.memory_no"
        " WHERE (n.tenant IS NULL OR n.tenant = ?) AND n.ref IN"
    )
    rows = rows_in(reader.connection, query, refs, first=(tenant,))
    return {str(ref): (str(filename), str(title)) for ref, filename, title in rows}


def count_wrong(reader: Reader) -> int:
    """Nodes that are not what they go with, edges of no kind, and documents whose pages are not all there: what no
    update leaves behind."""
    row = reader.connection.execute(
        "SELECT (SELECT COUNT(*) FROM nodes WHERE doc_id IS NOT NULL AND ref <> 'document:' || doc_id"
        " AND ref NOT LIKE 'page:' || doc_id || '#%' AND ref NOT LIKE 'section:' || doc_id || '#%')"
        " + (SELECT COUNT(*) FROM nodes WHERE tenant IS NOT NULL AND ref NOT LIKE 'memory:%'"
        " AND ref NOT LIKE 'session:%')"
        " + (SELECT COUNT(*) FROM edges WHERE kind NOT BETWEEN 1 AND ?)"
        " + (SELECT COUNT(*) FROM graphed_documents g JOIN documents d ON d.doc_id = g.doc_id"
        " WHERE d.num_pages <> (SELECT COUNT(*) FROM nodes n WHERE n.doc_id = d.doc_id AND n.ref LIKE 'page:%'))",
        (max(KIND_NAMES),),
    ).fetchone()
    return int(row[0])


def count_graph(reader: Reader) -> tuple[int, int]:
    """How many nodes and edges there are."""
    row: Any = reader.connection.execute("SELECT (SELECT COUNT(*) FROM nodes), (SELECT COUNT(*) FROM edges)").fetchone()
    return int(row[0]), int(row[1])


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
        GraphedItem(number, seq, kind, parent, key, json.loads(told)) for number, seq, kind, parent, key, told in rows
    ]


def parents_metadata(reader: Reader, kind: str, parents: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parent → what is told of it, of those there are."""
    query = "SELECT parent, metadata FROM item_parents WHERE kind = ? AND parent IN"
    rows = rows_in(reader.connection, query, list(dict.fromkeys(parents)), first=(kind,))
    return {str(parent): json.loads(metadata) for parent, metadata in rows}


def first_items(reader: Reader, kind: str, parents: Sequence[str]) -> dict[str, int]:
    """Parent → the number of its first item, of those that have any."""
    query = "SELECT parent, MIN(item_no) FROM items WHERE kind = ? AND parent IN"
    rows = rows_in(reader.connection, query, list(dict.fromkeys(parents)), "GROUP BY parent", first=(kind,))
    return {str(parent): int(number) for parent, number in rows}


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
    return [GraphedMemory(*row) for row in rows]


def last_change(reader: Reader, tenant: str) -> int:
    row = reader.connection.execute("SELECT last_seq FROM memory_tenants WHERE tenant = ?", (tenant,)).fetchone()
    return 0 if row is None else int(row[0])


def titles(reader: Reader) -> list[tuple[str, str]]:
    """(id, title) of all documents."""
    rows = reader.connection.execute("SELECT doc_id, title FROM documents ORDER BY doc_id")
    return [(str(row[0]), str(row[1])) for row in rows]
