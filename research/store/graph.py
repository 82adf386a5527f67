"""The graph: nodes are refs under numbers, edges lead from one to another, one recursive statement walks them; and what
the graph has not seen yet.

However many edges a node has, and however they run in circles, a walk costs what it may show: of every node it takes
the first edges of both directions, as the indexes have them, so kinds are numbered by what they are worth.

What writes is part of the caller's transaction. Whoever removes a document, an item or a memory need not know of
the graph: nodes go with what they stand for. A name that several things have means none of them, or few.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from research.store.pages import batched, placeholders
from research.store.reader import Repository

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


def edges_a_node(seeds: int, hops: int, most: int) -> int:
    """How many edges of a node a walk takes in each direction."""
    share = int((_ROWS / max(1, seeds)) ** (1 / hops) / 2)
    return max(_LEAST_EDGES, min(most, share))


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


# Things that may have a name which is mentioned; with more, it is not known which is meant.
_MOST_HOLDERS = {CITES: 1, IMPORTS: 1, CALLS: 3}
_MOST_COMPARED = 200  # a name that more have says nothing
_MOST_VERSIONS = 100


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node, and what it goes with. Without any of that it stands for itself."""

    ref: str
    name: str = ""
    doc_id: str | None = None
    item_no: int | None = None
    tenant: str | None = None
    memory_no: int | None = None


# Who mentions whom by which name, how many have the name, and whether both stand in one file. Nothing mentions its own
# document.
_MENTIONED = (
    "SELECT m.node_no, m.kind, n.node_no, m.name, (SELECT COUNT(*) FROM node_names h WHERE h.name = m.name),"
    " CASE WHEN a.parent = b.parent THEN 1 ELSE 0 END"
    " FROM mentions m JOIN node_names n ON n.name = m.name"
    " JOIN nodes s ON s.node_no = m.node_no"
    " JOIN nodes t ON t.node_no = n.node_no AND (t.doc_id IS NULL OR t.doc_id <> COALESCE(s.doc_id, ''))"
    " LEFT JOIN items a ON a.item_no = s.item_no LEFT JOIN items b ON b.item_no = t.item_no"
)


class Graph(Repository):
    """Nodes, edges, and the names by which things mention each other."""

    def find(self, refs: Iterable[str], tenant: str) -> dict[str, int]:
        """ref → number of those there are: everybody's, and of memories and sessions this tenant's. What stands for
        itself is there as long as an edge leads to it."""
        query = (
            "SELECT n.ref, n.node_no FROM nodes n WHERE (n.tenant IS NULL OR n.tenant = ?)"
            " AND (n.doc_id IS NOT NULL OR n.item_no IS NOT NULL OR n.memory_no IS NOT NULL"
            " OR EXISTS (SELECT 1 FROM edges o WHERE o.source = n.node_no)"
            " OR EXISTS (SELECT 1 FROM edges i WHERE i.target = n.node_no)) AND n.ref IN"
        )
        rows = self._db.rows_in(query, list(dict.fromkeys(refs)), first=(tenant,))
        return {str(ref): int(number) for ref, number in rows}

    def walk(
        self, seeds: Collection[int], *, hops: int, kinds: Sequence[int], fan_out: int, most: int, tenant: str
    ) -> list[StoredNode]:
        """The nodes that edges of these kinds lead to, in either direction, the nearest first; seeds have hop 0."""
        start = sorted(seeds)[:MOST_SEEDS]
        near = _near_edges("w", kinds)
        return self._db.records(
            StoredNode,
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

    def between(
        self, nodes: Collection[int], among: Collection[int], *, kinds: Sequence[int], fan_out: int
    ) -> tuple[list[StoredEdge], bool]:
        """The edges that a walk takes from these nodes, as far as they lead to one of those `among` them; and whether
        one of them has as many edges as a walk takes, or more."""
        wanted = set(among)
        found: dict[StoredEdge, None] = {}
        taken: Counter[tuple[int, bool]] = Counter()
        for part in batched(sorted(nodes)):
            rows = self._db.execute(
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

    def gone_memories(self, tenant: str, refs: Sequence[str], now: str) -> set[str]:
        """Of these `memory:` refs those whose time is over."""
        query = (
            "SELECT n.ref FROM nodes n JOIN memories m ON m.tenant = n.tenant AND m.memory_no = n.memory_no"
            " WHERE n.tenant = ? AND m.expires_at <> '' AND m.expires_at <= ? AND n.ref IN"
        )
        return {str(row[0]) for row in self._db.rows_in(query, refs, first=(tenant, now))}

    def titles(self, refs: Sequence[str], tenant: str) -> dict[str, tuple[str, str]]:
        """ref → (file name of its document, what it is called), as far as there is any."""
        query = (
            "SELECT n.ref, COALESCE(d.filename, ''),"
            " CASE WHEN n.name <> '' THEN n.name ELSE COALESCE(i.title, m.text, d.title, '') END"
            " FROM nodes n LEFT JOIN documents d ON d.doc_id = n.doc_id LEFT JOIN items i ON i.item_no = n.item_no"
            " LEFT JOIN memories m ON m.tenant = n.tenant AND m.memory_no = n.memory_no"
            " WHERE (n.tenant IS NULL OR n.tenant = ?) AND n.ref IN"
        )
        rows = self._db.rows_in(query, refs, first=(tenant,))
        return {str(ref): (str(filename), str(title)) for ref, filename, title in rows}

    def count_wrong(self) -> int:
        """Nodes that are not what they go with, edges of no kind, and documents whose pages are not all there: what no
        update leaves behind."""
        return int(
            self._db.value(
                "SELECT (SELECT COUNT(*) FROM nodes WHERE doc_id IS NOT NULL AND ref <> 'document:' || doc_id"
                " AND ref NOT LIKE 'page:' || doc_id || '#%' AND ref NOT LIKE 'section:' || doc_id || '#%')"
                " + (SELECT COUNT(*) FROM nodes WHERE tenant IS NOT NULL AND ref NOT LIKE 'memory:%'"
                " AND ref NOT LIKE 'session:%')"
                " + (SELECT COUNT(*) FROM edges WHERE kind NOT BETWEEN 1 AND ?)"
                " + (SELECT COUNT(*) FROM graphed_documents g JOIN documents d ON d.doc_id = g.doc_id"
                " WHERE d.num_pages <> (SELECT COUNT(*) FROM nodes n WHERE n.doc_id = d.doc_id"
                " AND n.ref LIKE 'page:%'))",
                (max(KIND_NAMES),),
            )
        )

    def count(self) -> tuple[int, int]:
        """How many nodes and edges there are."""
        row: Any = self._db.execute("SELECT (SELECT COUNT(*) FROM nodes), (SELECT COUNT(*) FROM edges)").fetchone()
        return int(row[0]), int(row[1])

    def is_behind(self, rules: int) -> bool:
        """Whether there is something to do; remembered while nobody writes."""
        return self._db.cached(
            ("graph behind", rules),
            lambda: bool(
                self.outdated_documents(rules, 1)
                or self.items_after(self.items_done(rules), 1)
                or self.tenants_behind(1)
            ),
        )

    def outdated_documents(self, rules: int, limit: int) -> list[str]:
        return self._db.column(
            "SELECT d.doc_id FROM documents d"
            " LEFT JOIN graphed_documents g ON g.doc_id = d.doc_id AND g.rules = ?"
            " WHERE g.doc_id IS NULL ORDER BY d.doc_id LIMIT ?",
            (rules, limit),
        )

    def document_state(self, doc_id: str) -> tuple[Any, ...]:
        """What is another when a document's name or text is; empty if it is gone."""
        row = self._db.execute(
            "SELECT d.filename, d.title, COUNT(*), SUM(p.words), SUM(LENGTH(p.markdown)) FROM documents d"
            " JOIN pages p ON p.doc_id = d.doc_id WHERE d.doc_id = ? GROUP BY d.filename, d.title",
            (doc_id,),
        ).fetchone()
        return () if row is None else tuple(row)

    def items_done(self, rules: int) -> int:
        """The last change of an item that is in the graph; 0 under other rules."""
        row = self._db.execute("SELECT seq FROM graphed_items WHERE rules = ?", (rules,)).fetchone()
        return 0 if row is None else int(row[0])

    def items_after(self, seq: int, limit: int) -> list[GraphedItem]:
        """In the order of their changes."""
        rows = self._db.execute(
            "SELECT item_no, seq, kind, parent, key, metadata FROM items WHERE seq > ? ORDER BY seq LIMIT ?",
            (seq, limit),
        )
        return [
            GraphedItem(number, seq, kind, parent, key, json.loads(told))
            for number, seq, kind, parent, key, told in rows
        ]

    def parents_metadata(self, kind: str, parents: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Parent → what is told of it, of those there are."""
        query = "SELECT parent, metadata FROM item_parents WHERE kind = ? AND parent IN"
        rows = self._db.rows_in(query, list(dict.fromkeys(parents)), first=(kind,))
        return {str(parent): json.loads(metadata) for parent, metadata in rows}

    def first_items(self, kind: str, parents: Sequence[str]) -> dict[str, int]:
        """Parent → the number of its first item, of those that have any."""
        query = "SELECT parent, MIN(item_no) FROM items WHERE kind = ? AND parent IN"
        rows = self._db.rows_in(query, list(dict.fromkeys(parents)), "GROUP BY parent", first=(kind,))
        return {str(parent): int(number) for parent, number in rows}

    def tenants_behind(self, limit: int) -> list[tuple[str, int]]:
        """(tenant, last change of its memories that is in the graph)."""
        rows = self._db.execute(
            "SELECT t.tenant, COALESCE(g.seq, 0) FROM memory_tenants t"
            " LEFT JOIN graphed_tenants g ON g.tenant = t.tenant"
            " WHERE COALESCE(g.seq, 0) < t.last_seq ORDER BY t.tenant LIMIT ?",
            (limit,),
        )
        return [(str(row[0]), int(row[1])) for row in rows]

    def memories_after(self, tenant: str, seq: int, limit: int) -> list[GraphedMemory]:
        """In the order of their changes."""
        return self._db.records(
            GraphedMemory,
            "SELECT memory_no, seq, id, session FROM memories WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?",
            (tenant, seq, limit),
        )

    def last_change(self, tenant: str) -> int:
        row = self._db.execute("SELECT last_seq FROM memory_tenants WHERE tenant = ?", (tenant,)).fetchone()
        return 0 if row is None else int(row[0])

    def document_titles(self) -> list[tuple[str, str]]:
        """(id, title) of all documents."""
        rows = self._db.execute("SELECT doc_id, title FROM documents ORDER BY doc_id")
        return [(str(row[0]), str(row[1])) for row in rows]

    def put_nodes(self, nodes: Iterable[NewNode]) -> dict[str, int]:
        """ref → number, of one tenant or of what is everybody's. Those that are there keep their number."""
        wanted = {node.ref: node for node in nodes}
        tenant = next((node.tenant for node in wanted.values()), None) or ""
        query = "SELECT ref, node_no FROM nodes WHERE COALESCE(tenant, '') = ? AND ref IN"
        numbers = {str(ref): int(number) for ref, number in self._db.rows_in(query, list(wanted), first=(tenant,))}
        last = int(self._db.value("SELECT COALESCE(MAX(node_no), 0) FROM nodes"))
        new = {ref: number for number, ref in enumerate((ref for ref in wanted if ref not in numbers), start=last + 1)}
        made = [(number, *astuple(wanted[ref])) for ref, number in new.items()]
        self._db.put_rows("nodes", "node_no, ref, name, doc_id, item_no, tenant, memory_no", made)
        return numbers | new

    def put_edges(self, edges: Iterable[tuple[int, int, int]], name: int = 0) -> None:
        """(source, kind, target) each; those that are there stay, and nothing leads to itself."""
        self.put_named_edges([(*edge, name) for edge in edges])

    def put_named_edges(self, edges: Iterable[tuple[int, int, int, int]]) -> None:
        """The same with the name by which each is known."""
        last = int(self._db.value("SELECT COALESCE(MAX(edge_no), 0) FROM edges"))
        wanted = dict.fromkeys(edge for edge in edges if edge[0] != edge[2])
        self._db.executemany(
            "INSERT INTO edges (edge_no, source, kind, target, name) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            [(number, *edge) for number, edge in enumerate(wanted, start=last + 1)],
        )

    def drop_edges_to(self, target: int, kind: int) -> None:
        """Before others are put in their place."""
        self._db.execute("DELETE FROM edges WHERE target = ? AND kind = ?", (target, kind))

    def drop_edges_from(self, sources: Sequence[int], kind: int) -> None:
        self._db.rows_in("DELETE FROM edges WHERE kind = ? AND source IN", sources, first=(kind,))

    def drop_document(self, doc_id: str) -> None:
        """All nodes of a document, with their edges and names. What others say of it is found again by its names."""
        self._db.execute("DELETE FROM nodes WHERE doc_id = ?", (doc_id,))
        self._db.execute("DELETE FROM graphed_documents WHERE doc_id = ?", (doc_id,))

    def mark_document(self, doc_id: str, rules: int) -> None:
        self._db.put_rows("graphed_documents", "doc_id, rules", [(doc_id, rules)])

    def outdate(self, doc_id: str) -> None:
        """Its text or its name is another: the next update reads it again."""
        self._db.execute("DELETE FROM graphed_documents WHERE doc_id = ?", (doc_id,))

    def outdate_namesakes(self, doc_id: str) -> None:
        """Before a document goes: those that share a name with it may be meant by that name from then on."""
        self._db.execute(
            "DELETE FROM graphed_documents WHERE doc_id IN (SELECT other.doc_id FROM nodes own"
            " JOIN node_names a ON a.node_no = own.node_no"
            " JOIN node_names b ON b.name = a.name AND b.node_no <> a.node_no"
            " JOIN nodes other ON other.node_no = b.node_no WHERE own.doc_id = ? AND own.ref = ?)",
            (doc_id, f"document:{doc_id}"),
        )

    def mark_items(self, rules: int, seq: int) -> None:
        self._db.execute("DELETE FROM graphed_items")
        self._db.put_rows("graphed_items", "rules, seq", [(rules, seq)])

    def mark_tenant(self, tenant: str, seq: int) -> None:
        self._db.put_rows("graphed_tenants", "tenant, seq", [(tenant, seq)], over="tenant")

    def put_names(self, names: Mapping[int, Iterable[int]]) -> None:
        """node → what it is called, in place of what it was called; whoever mentions a name finds its holder."""
        changed: dict[int, None] = {}
        for node, given in names.items():
            wanted = set(given)
            before = set(self._db.column("SELECT name FROM node_names WHERE node_no = ?", (node,)))
            gone = [(name, node) for name in sorted(before - wanted)]
            self._db.executemany("DELETE FROM node_names WHERE name = ? AND node_no = ?", gone)
            self._db.put_rows("node_names", "name, node_no", [(name, node) for name in sorted(wanted - before)])
            changed.update(dict.fromkeys(sorted(before ^ wanted)))
        for name in changed:
            self._resolve(name)

    def _resolve(self, name: int) -> None:
        """The edges of all who mention this name: made anew, since it has other holders than before."""
        if self._db.value("SELECT 1 FROM mentions WHERE name = ?", (name,)) is None:
            return
        self._db.execute(
            "DELETE FROM edges WHERE name = ? AND source IN (SELECT m.node_no FROM mentions m WHERE m.name = ?)",
            (name, name),
        )
        holders = self._db.value("SELECT COUNT(*) FROM node_names WHERE name = ?", (name,))
        if int(holders) <= _MOST_COMPARED:
            self._put_mentioned(self._db.execute(f"{_MENTIONED} WHERE m.name = ?", (name,)).fetchall())

    def put_mentions(self, mentions: Mapping[int, Iterable[tuple[int, int]]]) -> None:
        """node → (kind, name) of what it mentions, in place of what it mentioned."""
        for node, given in mentions.items():
            self._db.execute("DELETE FROM mentions WHERE node_no = ?", (node,))
            self._db.execute("DELETE FROM edges WHERE source = ? AND kind IN (?, ?, ?)", (node, CITES, CALLS, IMPORTS))
            self.add_mentions({node: given})

    def add_mentions(self, mentions: Mapping[int, Iterable[tuple[int, int]]]) -> None:
        """More of what nodes mention."""
        for node, given in mentions.items():
            found = [(name, node, kind) for kind, name in given]
            self._db.put_rows("mentions", "name, node_no, kind", found, over="name, node_no, kind")
            rows = self._db.execute(f"{_MENTIONED} WHERE m.node_no = ?", (node,)).fetchall()
            self._put_mentioned(rows)

    def _put_mentioned(self, rows: Sequence[Sequence[int]]) -> None:
        """Where the file of a caller has the name itself, that one is meant."""
        beside = {(int(row[0]), int(row[3])) for row in rows if row[5]}
        by_name: dict[int, list[tuple[int, int, int]]] = {}
        for source, kind, target, name, holders, same_file in rows:
            if same_file or ((source, name) not in beside and int(holders) <= _MOST_HOLDERS.get(int(kind), 1)):
                by_name.setdefault(int(name), []).append((int(source), int(kind), int(target)))
        for name, edges in by_name.items():
            self.put_edges(edges, name)

    def versions(self, family: int) -> list[tuple[int, str, str]]:
        """(node, file name, title) of the documents that have this name in common."""
        rows = self._db.execute(
            "SELECT n.node_no, d.filename, d.title FROM node_names f JOIN nodes n ON n.node_no = f.node_no"
            " JOIN documents d ON d.doc_id = n.doc_id WHERE f.name = ? ORDER BY n.node_no LIMIT ?",
            (family, _MOST_VERSIONS),
        )
        return [(int(row[0]), str(row[1]), str(row[2])) for row in rows]

    def put_versions(self, family: int, newer: Iterable[tuple[int, int]]) -> None:
        """(newer, older) pairs of a family, in place of those it had."""
        self._db.execute(
            "DELETE FROM edges WHERE name = ? AND source IN (SELECT f.node_no FROM node_names f WHERE f.name = ?)",
            (family, family),
        )
        self.put_edges([(one, NEWER, other) for one, other in newer], family)

    def drop_lonely(self) -> None:
        """What stands for itself and has nothing left: a file of removed code, a session of forgotten memories."""
        self._db.execute(
            "DELETE FROM nodes WHERE doc_id IS NULL AND item_no IS NULL AND memory_no IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM edges o WHERE o.source = nodes.node_no)"
            " AND NOT EXISTS (SELECT 1 FROM edges i WHERE i.target = nodes.node_no)"
        )

    def drop_lonely_sessions(self, tenant: str) -> None:
        """Sessions of a tenant of which no memory is left."""
        self._db.execute(
            "DELETE FROM nodes WHERE tenant = ? AND memory_no IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM edges e WHERE e.target = nodes.node_no)",
            (tenant,),
        )

    def drop(self) -> None:
        """All of it; the next update makes it anew."""
        for table in ("nodes", "graphed_documents", "graphed_items", "graphed_tenants"):  # the rest goes with the nodes
            self._db.execute(f"DELETE FROM {table}")
