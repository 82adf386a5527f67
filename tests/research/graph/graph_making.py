"""A catalog made by hand for the graph: documents of a few words, code, commits, memories."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research.graph.neighbourhood import Neighbourhood, find_neighbourhood
from research.graph.update import update_graph
from research.records import DocumentInfo, Page
from research.store import Catalog, FileStamp, IndexPaths, NewItem, Told

TIME = "2026-01-01T00:00:00.000000+00:00"


class Graph:
    """A writable catalog, and short ways to fill it and to look at its edges."""

    def __init__(self, root: Path) -> None:
        self.catalog = Catalog(IndexPaths(root), writable=True)

    def add(self, name: str, pages: Sequence[str], *, title: str = "", labels: Sequence[str] = ()) -> str:
        """A document whose content is its pages; its id."""
        sha256 = hashlib.sha256("\f".join([name, *pages]).encode()).hexdigest()
        path = f"/docs/{name}"
        info = DocumentInfo(sha256[:16], name, "pdf", title, len(pages), TIME, path, 1, sha256)
        named = dict(enumerate(labels, start=1))
        read = [(Page(number, text, label=named.get(number, "")), []) for number, text in enumerate(pages, start=1)]
        self.catalog.documents.add(info, FileStamp(path, 1, 1, 1, 1), read, reader_version=1)
        return info.doc_id

    def code(self, path: str, *pieces: tuple[str, list[str], list[str]], root: str = "/tree") -> None:
        """(name, calls, imports) of each piece of a file."""
        items = [
            NewItem(
                f"{root}/{path}#{name}",
                name,
                f"def {name}(): ...",
                TIME,
                {"file_path": path, "name": name, "qualified_name": name, "calls": calls, "imports": imports},
            )
            for name, calls, imports in pieces
        ]
        self.catalog.items.put("code", f"{root}/{path}", "1", items, metadata={"root": root})

    def commit(self, sha: str, *files: str, repository: str = "/tree/.git") -> None:
        item = NewItem(sha, "a change", "a change", TIME, {"files_changed": list(files)})
        self.catalog.items.put("commit", repository, "1", [item])

    def tell(self, tenant: str, id: str, *, session: str = "", expires: str = "") -> None:
        digest = hashlib.sha256(id.encode()).hexdigest()[:40]
        told = Told(id, True, "", digest, "memory", "", 0.5, "", session, "", "", TIME, expires, "[]", "{}", id, id)
        with self.catalog.short_write() as connection:
            connection.memories.tell(tenant, [told])

    def update(self) -> None:
        assert update_graph(self.catalog).complete

    def edges(self, kind: str = "") -> set[tuple[str, str]]:
        """(source, target) of all edges of a kind that are there now."""
        from research.store import graph

        self.update()
        rows = self.catalog.execute(
            "SELECT s.ref, t.ref, e.kind FROM edges e JOIN nodes s ON s.node_no = e.source"
            " JOIN nodes t ON t.node_no = e.target"
        )
        return {(str(row[0]), str(row[1])) for row in rows if not kind or row[2] == graph.EDGE_KINDS[kind]}

    def near(self, *refs: str, **given: Any) -> Neighbourhood:
        self.update()
        with self.catalog.snapshot() as reader:
            return find_neighbourhood(reader, refs, **given)
