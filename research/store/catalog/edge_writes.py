"""Writing the graph: nodes, edges, and the names by which things mention each other.

Every function is part of the caller's transaction. Whoever removes a document, an item or a memory need not know of
the graph: nodes go with what they stand for. A name that several things have means none of them, or few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

from research.store.catalog.edges import CALLS, CITES, IMPORTS, NEWER
from research.store.catalog.pages import batched, placeholders, rows_in
from research.store.catalog.reader import Writer, put_rows

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


def put_nodes(connection: Writer, nodes: Iterable[NewNode]) -> dict[str, int]:
    """ref → number, of one tenant or of what is everybody's. Those that are there keep their number."""
    wanted = {node.ref: node for node in nodes}
    tenant = next((node.tenant for node in wanted.values()), None) or ""
    query = "SELECT ref, node_no FROM nodes WHERE COALESCE(tenant, '') = ? AND ref IN"
    numbers = {str(ref): int(number) for ref, number in rows_in(connection, query, list(wanted), first=(tenant,))}
    last = int(connection.execute("SELECT COALESCE(MAX(node_no), 0) FROM nodes").fetchone()[0])
    new = {ref: number for number, ref in enumerate((ref for ref in wanted if ref not in numbers), start=last + 1)}
    made = [(number, *astuple(wanted[ref])) for ref, number in new.items()]
    put_rows(connection, "nodes", "node_no, ref, name, doc_id, item_no, tenant, memory_no", made)
    return numbers | new


def put_edges(connection: Writer, edges: Iterable[tuple[int, int, int]], name: int = 0) -> None:
    """(source, kind, target) each; those that are there stay, and nothing leads to itself."""
    put_named_edges(connection, [(*edge, name) for edge in edges])


def put_named_edges(connection: Writer, edges: Iterable[tuple[int, int, int, int]]) -> None:
    """The same with the name by which each is known."""
    last = int(connection.execute("SELECT COALESCE(MAX(edge_no), 0) FROM edges").fetchone()[0])
    wanted = dict.fromkeys(edge for edge in edges if edge[0] != edge[2])
    connection.executemany(
        "INSERT INTO edges (edge_no, source, kind, target, name) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(number, *edge) for number, edge in enumerate(wanted, start=last + 1)],
    )


def drop_edges_to(connection: Writer, target: int, kind: int) -> None:
    """Before others are put in their place."""
    connection.execute("DELETE FROM edges WHERE target = ? AND kind = ?", (target, kind))


def drop_edges_from(connection: Writer, sources: Sequence[int], kind: int) -> None:
    for part in batched(sources):
        query = f"DELETE FROM edges WHERE kind = ? AND source IN ({placeholders(part)})"
        connection.execute(query, (kind, *part))


def drop_document(connection: Writer, doc_id: str) -> None:
    """All nodes of a document, with their edges and names. What others say of it is found again by its names."""
    connection.execute("DELETE FROM nodes WHERE doc_id = ?", (doc_id,))
    connection.execute("DELETE FROM graphed_documents WHERE doc_id = ?", (doc_id,))


def mark_document(connection: Writer, doc_id: str, rules: int) -> None:
    put_rows(connection, "graphed_documents", "doc_id, rules", [(doc_id, rules)])


def outdate_document(connection: Writer, doc_id: str) -> None:
    """Its text or its name is another: the next update reads it again."""
    connection.execute("DELETE FROM graphed_documents WHERE doc_id = ?", (doc_id,))


def outdate_namesakes(connection: Writer, doc_id: str) -> None:
    """Before a document goes: those that share a name with it may be meant by that name from then on."""
    connection.execute(
        "DELETE FROM graphed_documents WHERE doc_id IN (SELECT other.doc_id FROM nodes own"
        " JOIN node_names a ON a.node_no = own.node_no"
        " JOIN node_names b ON b.name = a.name AND b.node_no <> a.node_no"
        " JOIN nodes other ON other.node_no = b.node_no WHERE own.doc_id = ? AND own.ref = ?)",
        (doc_id, f"document:{doc_id}"),
    )


def mark_items(connection: Writer, rules: int, seq: int) -> None:
    connection.execute("DELETE FROM graphed_items")
    put_rows(connection, "graphed_items", "rules, seq", [(rules, seq)])


def mark_tenant(connection: Writer, tenant: str, seq: int) -> None:
    put_rows(connection, "graphed_tenants", "tenant, seq", [(tenant, seq)], over="tenant")


def put_names(connection: Writer, names: Mapping[int, Iterable[int]]) -> None:
    """node → what it is called, in place of what it was called; whoever mentions a name finds its holder."""
    changed: dict[int, None] = {}
    for node, given in names.items():
        wanted = set(given)
        rows = connection.execute("SELECT name FROM node_names WHERE node_no = ?", (node,))
        before = {int(row[0]) for row in rows}
        connection.executemany(
            "DELETE FROM node_names WHERE name = ? AND node_no = ?", [(name, node) for name in sorted(before - wanted)]
        )
        put_rows(connection, "node_names", "name, node_no", [(name, node) for name in sorted(wanted - before)])
        changed.update(dict.fromkeys(sorted(before ^ wanted)))
    for name in changed:
        _resolve(connection, name)


def _resolve(connection: Writer, name: int) -> None:
    """The edges of all who mention this name: made anew, since it has other holders than before."""
    if connection.execute("SELECT 1 FROM mentions WHERE name = ?", (name,)).fetchone() is None:
        return
    connection.execute(
        "DELETE FROM edges WHERE name = ? AND source IN (SELECT m.node_no FROM mentions m WHERE m.name = ?)",
        (name, name),
    )
    holders = connection.execute("SELECT COUNT(*) FROM node_names WHERE name = ?", (name,)).fetchone()
    if int(holders[0]) <= _MOST_COMPARED:
        _put_mentioned(connection, connection.execute(f"{_MENTIONED} WHERE m.name = ?", (name,)).fetchall())


def put_mentions(connection: Writer, mentions: Mapping[int, Iterable[tuple[int, int]]]) -> None:
    """node → (kind, name) of what it mentions, in place of what it mentioned."""
    for node, given in mentions.items():
        connection.execute("DELETE FROM mentions WHERE node_no = ?", (node,))
        connection.execute("DELETE FROM edges WHERE source = ? AND kind IN (?, ?, ?)", (node, CITES, CALLS, IMPORTS))
        add_mentions(connection, {node: given})


def add_mentions(connection: Writer, mentions: Mapping[int, Iterable[tuple[int, int]]]) -> None:
    """More of what nodes mention."""
    for node, given in mentions.items():
        found = [(name, node, kind) for kind, name in given]
        put_rows(connection, "mentions", "name, node_no, kind", found, over="name, node_no, kind")
        rows = connection.execute(f"{_MENTIONED} WHERE m.node_no = ?", (node,)).fetchall()
        _put_mentioned(connection, rows)


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


def _put_mentioned(connection: Writer, rows: Sequence[Sequence[int]]) -> None:
    """Where the file of a caller has the name itself, that one is meant."""
    beside = {(int(row[0]), int(row[3])) for row in rows if row[5]}
    by_name: dict[int, list[tuple[int, int, int]]] = {}
    for source, kind, target, name, holders, same_file in rows:
        if same_file or ((source, name) not in beside and int(holders) <= _MOST_HOLDERS.get(int(kind), 1)):
            by_name.setdefault(int(name), []).append((int(source), int(kind), int(target)))
    for name, edges in by_name.items():
        put_edges(connection, edges, name)


def versions_of(connection: Writer, family: int) -> list[tuple[int, str, str]]:
    """(node, file name, title) of the documents that have this name in common."""
    rows = connection.execute(
        "SELECT n.node_no, d.filename, d.title FROM node_names f JOIN nodes n ON n.node_no = f.node_no"
        " JOIN documents d ON d.doc_id = n.doc_id WHERE f.name = ? ORDER BY n.node_no LIMIT ?",
        (family, _MOST_VERSIONS),
    )
    return [(int(row[0]), str(row[1]), str(row[2])) for row in rows]


def put_versions(connection: Writer, family: int, newer: Iterable[tuple[int, int]]) -> None:
    """(newer, older) pairs of a family, in place of those it had."""
    connection.execute(
        "DELETE FROM edges WHERE name = ? AND source IN (SELECT f.node_no FROM node_names f WHERE f.name = ?)",
        (family, family),
    )
    put_edges(connection, [(one, NEWER, other) for one, other in newer], family)


def drop_lonely(connection: Writer) -> None:
    """What stands for itself and has nothing left: a file of removed code, a session of forgotten memories."""
    connection.execute(
        "DELETE FROM nodes WHERE doc_id IS NULL AND item_no IS NULL AND memory_no IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM edges o WHERE o.source = nodes.node_no)"
        " AND NOT EXISTS (SELECT 1 FROM edges i WHERE i.target = nodes.node_no)"
    )


def drop_lonely_sessions(connection: Writer, tenant: str) -> None:
    """Sessions of a tenant of which no memory is left."""
    connection.execute(
        "DELETE FROM nodes WHERE tenant = ? AND memory_no IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM edges e WHERE e.target = nodes.node_no)",
        (tenant,),
    )


def drop_graph(connection: Writer) -> None:
    """All of it; the next update makes it anew."""
    for table in ("nodes", "graphed_documents", "graphed_items", "graphed_tenants"):  # the rest goes with the nodes
        connection.execute(f"DELETE FROM {table}")
