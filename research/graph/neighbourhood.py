"""What is near to given things in the graph, how near, and by which edges; the same for people, every node with its
title; and what a neighbour adds to a score.

All that is said of nodes comes from `shown_nodes`: whoever may not see a node is not given it there.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from research.errors import NothingFoundError, UsageError
from research.graph.extraction import reference_name
from research.graph.references import MOST_LETTERS, references_in
from research.models import Ref
from research.records import DocumentInfo
from research.store import Reader, analyze, graph
from research.text import phrase

T = TypeVar("T", int, str)

MOST_HOPS = 3
MOST_NODES = 2000
_WIDER = 3  # nodes that are looked at for one that is told: the nearest by hops need not be the nearest

# What is left of a node's nearness one edge further, in either direction.
WEIGHTS: Mapping[str, float] = {
    "refers": 0.8,
    "cites": 0.6,
    "newer": 0.5,
    "calls": 0.6,
    "imports": 0.4,
    "supports": 0.7,
    "changes": 0.5,
    "told_in": 0.6,
    "contains": 0.4,
}
_OF_DOCUMENTS = ("page", "document", "section")

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
class Node:
    """Something near: how many edges away, and how near, 1 for what was asked for."""

    ref: str
    hop: int
    proximity: float
    name: str = ""  # a section's heading

    @property
    def kind(self) -> str:
        return self.ref.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Edge:
    """`names`: digests of what the source calls the target, where it does."""

    source: str
    kind: str
    target: str
    names: frozenset[int] = field(default=frozenset(), compare=False)

    def to_dict(self) -> dict[str, str]:
        return {"source": self.source, "kind": self.kind, "target": self.target}


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The nearest first. `unknown`: refs that are not in the graph. `cut`: there may be more than is told. `complete`:
    all that is in the index is in the graph."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    cut: bool = False
    complete: bool = True

    def proximity(self) -> dict[str, float]:
        """ref → how near, without what was asked for."""
        return {node.ref: node.proximity for node in self.nodes if node.hop}


def find_neighbourhood(
    reader: Reader,
    refs: Iterable[str],
    *,
    hops: int = 1,
    kinds: Sequence[str] | None = None,
    limit: int = 200,
    tenant: str = "",
) -> Neighbourhood:
    """What edges of these kinds, or of all, lead to from these refs, in either direction. Memories and sessions are
    those of the tenant. Refs of documents may be of former ids. Bounded, whatever the graph is like."""
    numbers = _kind_numbers(kinds)
    if not 1 <= hops <= MOST_HOPS:
        raise UsageError(f"hops must be from 1 to {MOST_HOPS}, not {hops}")
    if not 1 <= limit <= MOST_NODES:
        raise UsageError(f"the limit must be from 1 to {MOST_NODES}, not {limit}")
    wanted = list(dict.fromkeys(refs))
    seeds = resolve(reader, wanted[: 10 * graph.MOST_SEEDS], tenant)
    unknown = [ref for ref in wanted[: 10 * graph.MOST_SEEDS] if ref not in seeds]
    begun = sorted(set(seeds.values()))[: graph.MOST_SEEDS]
    cut = len(wanted) > 10 * graph.MOST_SEEDS or len(set(seeds.values())) > graph.MOST_SEEDS
    if not begun:
        return Neighbourhood(unknown=unknown, cut=cut)
    fan_out, most = graph.edges_a_node(len(begun), hops, limit), min(MOST_NODES, _WIDER * limit)
    found = reader.graph.walk(begun, hops=hops, kinds=numbers, fan_out=fan_out, most=most + 1, tenant=tenant)
    cut = cut or len(found) > most
    there = _present(reader, found[:most], tenant)
    inner = [node.node_no for node in there if node.hop < hops]
    among = [node.node_no for node in there]
    edges, full = reader.graph.between(inner, among, kinds=numbers, fan_out=fan_out)
    cut = cut or full
    nodes = _nearest(there, edges)
    kept = {node.ref: node for node in nodes[:limit]}
    names = {node.node_no: node.ref for node in there if node.ref in kept}
    called: dict[tuple[str, str, str], set[int]] = {}
    for edge in edges:
        if edge.source in names and edge.target in names:
            key = (names[edge.source], graph.KIND_NAMES[edge.kind], names[edge.target])
            called.setdefault(key, set()).update({edge.name} - {0})
    told = [Edge(*key, frozenset(found)) for key, found in called.items()]
    return Neighbourhood(list(kept.values()), told, unknown, cut or len(nodes) > limit)


def resolve(reader: Reader, refs: Sequence[str], tenant: str = "") -> dict[str, int]:
    """ref → node of those that are known, also by a document's former or lasting id."""
    found = reader.graph.find(refs, tenant)
    for ref in refs:
        kind, _, rest = ref.partition(":")
        if ref not in found and kind in _OF_DOCUMENTS:
            key, mark, part = rest.partition("#")
            for now in reader.names.current_ids([key]):
                today = f"{kind}:{now}{mark}{part}"
                found.update((ref, number) for number in reader.graph.find([today], tenant).values())
    return found


def _kind_numbers(kinds: Sequence[str] | None) -> list[int]:
    if kinds is None:
        return sorted(graph.EDGE_KINDS.values())
    strange = [kind for kind in kinds if kind not in graph.EDGE_KINDS]
    if strange or not kinds:
        raise UsageError(
            f"{strange[0]!r} is no kind of edges" if strange else "no kind of edges was named",
            hint=f"known: {', '.join(graph.EDGE_KINDS)}",
        )
    return sorted({graph.EDGE_KINDS[kind] for kind in kinds})


def _present(reader: Reader, nodes: Sequence[graph.StoredNode], tenant: str) -> list[graph.StoredNode]:
    """Without memories whose time is over."""
    memories = [node.ref for node in nodes if node.ref.startswith("memory:")]
    gone = reader.graph.gone_memories(tenant, memories, datetime.now(UTC).isoformat()) if memories else set()
    return [node for node in nodes if node.ref not in gone]


def _nearest(nodes: Sequence[graph.StoredNode], edges: Sequence[graph.StoredEdge]) -> list[Node]:
    """Return all of them, the nearest first: by the best way over these edges."""
    near = spread(
        ((each.source, each.target, WEIGHTS[graph.KIND_NAMES[each.kind]]) for each in edges),
        {node.node_no: 1.0 for node in nodes if node.hop == 0},
    )
    least = min(WEIGHTS.values())
    told = []
    for node in nodes:
        proximity = near.get(node.node_no, least**node.hop) if node.hop else 1.0
        told.append((Node(node.ref, node.hop, round(proximity, 4), node.name), node.node_no))
    told.sort(key=lambda each: (-each[0].proximity, each[0].hop, each[1]))  # equals in the order of their document
    return [node for node, _ in told]


def spread(edges: Iterable[tuple[T, T, float]], seeds: Mapping[T, float]) -> dict[T, float]:
    """Return how near each is by the best way from any seed, over edges in either direction. A seed itself is as near
    as another one makes it."""
    beside: dict[T, list[tuple[T, float]]] = {}
    for one, other, weight in edges:
        beside.setdefault(one, []).append((other, weight))
        beside.setdefault(other, []).append((one, weight))
    found: dict[T, float] = {}
    passed: set[T] = set()
    waiting = [(-weight, ref, True) for ref, weight in seeds.items()]
    heapq.heapify(waiting)
    while waiting:
        negative, ref, begins = heapq.heappop(waiting)
        if not begins:
            found.setdefault(ref, -negative)
        if ref in passed:
            continue
        passed.add(ref)
        for other, weight in beside.get(ref, ()):
            if other not in found:
                heapq.heappush(waiting, (negative * weight, other, False))
    return found


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
    titles = reader.graph.titles([node.ref for node in nodes], tenant)
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
        ending = reader.items.find_ending("code", f"/{rest.lstrip('/')}", 2)
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


# The share of a seed's score that a neighbour is worth, by the kind of the edge that leads to it, or from it.
_OUT: Mapping[str, float] = {"refers": 0.9, "calls": 0.5, "supports": 0.6}
_BACK: Mapping[str, float] = {"supports": 0.6}
_SEEDS, _LEAST_SCORE = 3, 0.8  # of the best found, whose neighbours count: how many, and with which share of the best

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_a-zß-ÿ]|[(\"“])|\n+")
_LEAST_WORDS, _LEAST_SHARE = 2, 0.4  # of the question's, around a reference


def seeds_of(ranked: Sequence[tuple[str, float]]) -> list[str]:
    """Return those of (ref, score), best first, whose neighbours are to be looked up."""
    best = ranked[0][1] if ranked else 0.0
    return [ref for ref, score in ranked[:_SEEDS] if score > 0 and score >= _LEAST_SCORE * best]


def references_said(question: str, text: str) -> frozenset[int]:
    """What a page refers to where it speaks of the question: the names of edges, as `Edge.names` has them. In the
    sentence of the reference, the one before and the one after."""
    wanted = set(analyze(question))
    sentences = [part for part in _SENTENCE.split(text[:MOST_LETTERS]) if part.strip()]
    found: set[int] = set()
    for at, sentence in enumerate(sentences):
        references = references_in(sentence)
        if references:
            around = set(analyze(" ".join(sentences[max(0, at - 1) : at + 2])))
            if len(wanted & around) >= max(_LEAST_WORDS, _LEAST_SHARE * len(wanted)):
                found.update(map(reference_name, references))
    return frozenset(found)


def neighbour_scores(
    ranked: Sequence[tuple[str, float]], edges: Iterable[Edge], said: Mapping[str, Collection[int]]
) -> dict[str, float]:
    """Return what each neighbour of a seed is worth, by its best edge. Seeds are worth nothing to each other. `said`:
    seed → the references that count (`references_said`)."""
    scores, seeds = dict(ranked), set(seeds_of(ranked))
    found: dict[str, float] = {}
    for edge in edges:
        if edge.kind == "refers" and not edge.names & set(said.get(edge.source, ())):
            continue
        for seed, other, shares in ((edge.source, edge.target, _OUT), (edge.target, edge.source, _BACK)):
            worth = scores.get(seed, 0.0) * shares.get(edge.kind, 0.0)
            if seed in seeds and other not in seeds and worth > found.get(other, 0.0):
                found[other] = worth
    return found
