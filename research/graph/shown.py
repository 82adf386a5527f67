"""A neighbourhood as it is shown to somebody: every node with what a person calls it.

All that is told of nodes comes from `shown_nodes`: whoever may not see a node is not given it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from research.errors import NothingFoundError
from research.graph.neighbourhood import Edge, Neighbourhood, Node, resolve
from research.models import Ref
from research.records import DocumentInfo
from research.store.catalog.edges import node_titles
from research.store.catalog.items import find_items_ending
from research.store.catalog.reader import Reader
from research.visible_text import phrase

KINDS_OF_NODES = (
    "page",
    "document",
    "section",
    "code",
    "file",
    "commit",
    "memory",
    "session",
    "experience",
    "value",
)
_LONGEST = 120  # characters of a title


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node, safe to be printed. `file` and `page` are of what stands in a document; page 0: no page."""

    ref: str
    kind: str
    title: str
    hop: int
    proximity: float
    file: str = ""
    page: int = 0

    @property
    def label(self) -> str:
        """On one line: where it is, and what it is called."""
        where = f"{self.file}, page {self.page}" if self.page else self.file
        return f"{where}: {self.title}" if where and self.title else where or self.title or self.ref


@dataclass(frozen=True, slots=True)
class ShownGraph:
    """The nearest nodes first, what was asked for before all; and the edges between them."""

    refs: list[str] = field(default_factory=list)
    nodes: list[ShownNode] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    cut: bool = False
    complete: bool = True

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "edges": [edge.to_dict() for edge in self.edges]}


def shown_graph(reader: Reader, refs: Sequence[str], found: Neighbourhood, tenant: str = "") -> ShownGraph:
    """Raises NothingFoundError where a ref is unknown."""
    if found.unknown:
        raise unknown(found.unknown[0])
    nodes = shown_nodes(reader, found.nodes, tenant)
    kept = {node.ref for node in nodes}
    edges = [edge for edge in found.edges if edge.source in kept and edge.target in kept]
    begun = [node.ref for node in nodes if node.hop == 0]
    return ShownGraph(begun or list(refs), nodes, edges, found.cut, found.complete)


def shown_nodes(reader: Reader, nodes: Sequence[Node], tenant: str = "") -> list[ShownNode]:
    """Those that are still there, in their order."""
    titles = node_titles(reader, [node.ref for node in nodes], tenant)
    return [_shown(node, *titles[node.ref]) for node in nodes if node.ref in titles]


def _shown(node: Node, file: str, title: str) -> ShownNode:
    ref = Ref.parse(node.ref) if "#" in node.ref else None
    page = int(ref.part) if ref is not None and node.kind == "page" and ref.part.isdecimal() else 0
    if node.kind in ("code", "file", "session"):
        title = node.ref.partition(":")[2]
    told = phrase("" if node.kind == "page" else title)
    short = told if len(told) <= _LONGEST else f"{told[: _LONGEST - 1]}…"
    return ShownNode(node.ref, node.kind, short, node.hop, node.proximity, phrase(file), page)


def started_from(reader: Reader, thing: str, document: Callable[[str], DocumentInfo]) -> str:
    """The ref that somebody means: a ref, the end of one of code or files, or a document's name."""
    kind, colon, rest = thing.partition(":")
    if not colon or kind not in KINDS_OF_NODES or not rest:
        return f"document:{document(thing).doc_id}"
    if kind == "code" and not resolve(reader, [thing]):
        ending = find_items_ending(reader, "code", f"/{rest.lstrip('/')}", 2)
        if len(ending) == 1:
            return f"code:{ending[0].key}"
    if kind in ("document", "page", "section") and not resolve(reader, [thing]):
        key, mark, part = rest.rpartition("#") if kind != "document" else (rest, "", "")
        return f"{kind}:{document(key).doc_id}{mark}{part}" if key else thing
    return thing


def unknown(ref: str) -> NothingFoundError:
    return NothingFoundError(
        f"{phrase(ref)} is not in the index", hint="refs are told by --json; documents are listed by: ctx list"
    )
