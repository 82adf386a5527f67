"""A graph that grows, changes and goes: a history for any catalog, SQLite's or PostgreSQL's."""

from __future__ import annotations

from typing import Any

from index_making import chunks_of, stamp
from memory_making import tell, told

from research.graph import find_neighbourhood, is_behind, update_graph
from research.records import DocumentInfo, Page
from research.store import graph as edge_writes
from research.store import integrity
from research.store.items import NewItem

TIME = "2026-01-01T00:00:00+00:00"
ALL = (
    "SELECT s.ref, e.kind, t.ref FROM edges e JOIN nodes s ON s.node_no = e.source JOIN nodes t ON t.node_no = e.target"
)


def graph(catalog: Any) -> object:
    """What is told of it at every step."""
    seen: list[object] = [is_behind(catalog), update_graph(catalog).complete]
    first = _document(catalog, "a" * 16, "plan-2024.pdf", ["# 1 Start\n\nsee Table 2 in plan-2025.pdf", "see page 1"])
    _document(catalog, "b" * 16, "plan-2025.pdf", ["as Table 2 shows, see other.pdf", "Table 2: Rents"])
    catalog.items.put("code", "/tree/a.py", "1", _pieces("/tree/a.py", "a.py"), metadata={"root": "/tree"})
    commit = NewItem("c0ffee", "a change", "a change", TIME, {"files_changed": ["a.py", "gone.py"]})
    catalog.items.put("commit", "/tree/.git", "1", [commit])
    catalog.items.put("experience", "ex-1", "1", [NewItem("ex-1/full", "one", "one", TIME)])
    catalog.items.put("value", "graph", "1", [NewItem("v-1", "two", "two", TIME, {"members": ["ex-1"]})])
    tell(catalog, "graph", told("told in a session", id="m-1", session="s"), told("over", id="m-2", expires_at=TIME))
    seen += [is_behind(catalog), update_graph(catalog), *_seen(catalog)]
    _document(catalog, "c" * 16, "other.pdf", ["nothing"])
    _document(catalog, "d" * 16, "plan-2025.pdf", ["as Table 2 shows", "Table 2: Rents", "on the next page"])
    catalog.items.put("code", "/tree/a.py", "2", _pieces("/tree/a.py", "a.py")[1:], metadata={"root": "/tree"})
    seen += [update_graph(catalog).complete, *_seen(catalog)]
    catalog.documents.remove(first)
    catalog.items.remove_parents("commit", ["/tree/.git"])
    catalog.items.remove_parents("code", ["/tree/a.py"])
    with catalog.transaction() as connection:
        connection.memories.forget("graph", [1])
        connection.packages.put_projection("p-1", TIME, {"nodes": ["page:x#1"]})
        connection.packages.put_projection("p-1", TIME, {"nodes": []})
    seen += [update_graph(catalog).complete, *_seen(catalog), catalog.packages.projection("p-1")]
    with catalog.transaction() as connection:
        seen.append(connection.packages.remove_projections("2027"))
        connection.graph.drop_lonely()
        seen.append(catalog.graph.count())
        connection.graph.drop()
    for doc_id in ("b" * 16, "c" * 16, "d" * 16):
        catalog.documents.remove(doc_id)
    catalog.items.remove_parents("value", ["graph"])
    catalog.items.remove_parents("experience", ["ex-1"])
    with catalog.transaction() as connection:
        connection.graph.put_nodes([edge_writes.NewNode("page:x#1", tenant="graph")])
    (problem,) = integrity.check_graph(catalog)
    assert problem.fix is not None
    problem.fix(catalog)
    seen += [problem.message, list(integrity.check_graph(catalog))]
    return [*seen, catalog.graph.count(), catalog.packages.projection("p-1")]


def _document(catalog: Any, doc_id: str, name: str, texts: list[str]) -> str:
    path = f"/graph/{name}"
    info = DocumentInfo(doc_id, name, "pdf", "", len(texts), TIME, path, 1, doc_id * 4)
    pages = [(Page(number, text), chunks_of(number, text)) for number, text in enumerate(texts, start=1)]
    catalog.documents.add(info, stamp(path), pages, reader_version=1)
    return doc_id


def _pieces(path: str, file_path: str) -> list[NewItem]:
    given = {"file_path": file_path, "imports": ["import pkg.other"]}
    return [
        NewItem(f"{path}#{name}", name, name, TIME, {**given, "name": name, "qualified_name": name, "calls": calls})
        for name, calls in (("swim", ["dive"]), ("dive", []), ("float", ["swim"]))
    ]


def _seen(catalog: Any) -> list[object]:
    refs = ["document:" + "a" * 16, "page:" + "b" * 16 + "#1", "commit:c0ffee", "memory:m-1", "memory:m-2", "file:none"]
    near = [find_neighbourhood(catalog, [ref], hops=hops, tenant="graph") for ref in refs for hops in (1, 2, 3)]
    titles = catalog.graph.titles([node.ref for found in near for node in found.nodes], "graph")
    headings = catalog.pages.section_paths("a" * 16)
    return [sorted(tuple(row) for row in catalog.execute(ALL)), near, titles, headings]
