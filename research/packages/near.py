"""The graph's retrieval: what is near to the pinned things and to the best that the search found.

What a good page refers to, where it speaks of the intent, counts nearly as much as that page (`research.graph.boost`,
where it was measured). Anything else is as near as the best way to it: what it begins with counts as much as it fits,
and every edge leaves a small part; the mere structure of a document says nothing of an intent, and so hardly counts.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from research.graph import (
    MOST_NODES,
    WEIGHTS,
    Neighbourhood,
    find_neighbourhood,
    neighbour_scores,
    references_said,
    seeds_of,
)
from research.packages.ranking import TYPE_OF_KIND, Candidate, load
from research.packages.retrieval import Answer
from research.store import analyze, analyze_name

if TYPE_CHECKING:
    from research.index import Index
    from research.packages.request import ContextBuildRequest

_SEEDS = 10  # of what the search found
_PINNED = 0.5  # what a pinned thing counts to begin with: somebody wants it, whether it fits or not
_NODES = 10  # that are looked at for each that may be brought
_SAID = 0.4  # of the words of an intent, that a neighbour has to have
_UPDATE_SECONDS = 1.0  # for what the graph lacks
# What is left by edges that say little of an intent: that a page stands in the same document, or refers to something.
_QUIET = {"contains": 0.1, "refers": 0.3}


def retrieve(
    index: Index,
    request: ContextBuildRequest,
    tenant: str,
    pinned: Sequence[str],
    found: Sequence[Candidate],
    *,
    name: str,
) -> Answer:
    """`found`: what the search found. The projection is kept under the id `name`."""
    limit = request.retrieval.limits.graph
    if limit < 1:
        return Answer(status="off", reason="its limit is 0")
    best = sorted(found, key=lambda each: -each.semantic)[:_SEEDS]
    seeds = dict.fromkeys(pinned, _PINNED) | {each.ref: max(each.semantic, 0.01) for each in best}
    if not seeds:
        return Answer(reason="there is nothing to begin with")
    complete = index.graph.update(seconds=_UPDATE_SECONDS).complete
    hops, most = request.retrieval.limits.hops, min(MOST_NODES, _NODES * limit + len(seeds))
    with index.catalog.snapshot() as reader:  # the gate decides about all candidates at once, later
        near = find_neighbourhood(reader, seeds, hops=hops, limit=most, tenant=tenant)
    known = {each.ref: each for each in found}
    nearness = spread(near, seeds)
    for ref, worth in _referred(request.intent, near, found).items():
        nearness[ref] = max(worth, nearness.get(ref, 0.0))
    ordered = sorted(nearness, key=lambda ref: (-nearness[ref], ref))
    wanted = [ref for ref in ordered if _wanted(ref, request)]
    brought = [ref for ref in wanted if ref not in known and ref not in seeds][:limit]
    with index.catalog.snapshot() as reader:
        loaded = load(index, reader, brought, tenant)
    candidates = [
        Candidate(known[ref].item, {"graph"}, known[ref].semantic, nearness[ref]) for ref in wanted if ref in known
    ]
    words = analyze_name(request.intent)
    for ref, each in loaded.items():
        if not _speaks_of(words, f"{each.item.title}\n{each.item.text}"):
            continue
        each.origins.add("graph")
        each.graph = nearness[ref]
        candidates.append(each)
    answer = Answer(candidates, projection=name, told=_told(near, seeds))
    if not complete:
        answer.status, answer.reason = "degraded", "the graph does not hold all of the index yet"
    return answer


def _speaks_of(words: Sequence[str], text: str) -> bool:
    """Whether enough of an intent's words stand in a text: what is only near to something says nothing of it."""
    return len({*words} & {*analyze(text)}) >= _SAID * len({*words})


def spread(near: Neighbourhood, seeds: Mapping[str, float]) -> dict[str, float]:
    """ref → how near, by the best way from any seed. A seed itself is as near as another one makes it."""
    beside: dict[str, list[tuple[str, float]]] = {}
    for edge in near.edges:
        weight = _QUIET.get(edge.kind, WEIGHTS[edge.kind])
        beside.setdefault(edge.source, []).append((edge.target, weight))
        beside.setdefault(edge.target, []).append((edge.source, weight))
    found: dict[str, float] = {}
    passed: dict[str, float] = {}
    waiting = [(-weight, ref, True) for ref, weight in seeds.items()]
    heapq.heapify(waiting)
    while waiting:
        negative, ref, begins = heapq.heappop(waiting)
        if not begins:
            found.setdefault(ref, -negative)
        if ref in passed:
            continue
        passed[ref] = -negative
        for other, weight in beside.get(ref, ()):
            if other not in found:
                heapq.heappush(waiting, (negative * weight, other, False))
    return found


def _referred(intent: str, near: Neighbourhood, found: Sequence[Candidate]) -> dict[str, float]:
    """ref → what it is worth because one of the best refers to it where it speaks of the intent: its share of the best
    one's score. Pages go by the sums of their legs, as it was measured: a calibrated score falls with the rank."""
    pages = [each for each in found if each.item.ref.kind == "page"]
    others = [each for each in found if each.item.ref.kind != "page"]
    worth: dict[str, float] = {}
    for group, ranked in (
        (pages, [(each.ref, each.item.raw_score) for each in pages]),
        (others, [(each.ref, each.semantic) for each in others]),
    ):
        ranked.sort(key=lambda entry: -entry[1])
        if ranked and ranked[0][1] > 0:
            texts, best = {each.ref: each.item.text for each in group}, max(each.semantic for each in group)
            said = {ref: references_said(intent, texts[ref]) for ref in seeds_of(ranked)}
            joined = neighbour_scores(ranked, near.edges, said)
            worth |= {ref: best * min(1.0, each.score / ranked[0][1]) for ref, each in joined.items()}
    return worth


def _wanted(ref: str, request: ContextBuildRequest) -> bool:
    """Of a kind that a package may hold, and of the scope; sections and documents are ways, and no things to show."""
    type_of = TYPE_OF_KIND.get(ref.partition(":")[0])
    if request.scope.documents and type_of != "documents":
        return False
    return type_of in request.scope.wanted_types


def _told(near: Neighbourhood, seeds: Mapping[str, float]) -> dict[str, Any]:
    """The projection as it is kept: refs and numbers."""
    nodes = [{"ref": node.ref, "hop": node.hop, "proximity": node.proximity} for node in near.nodes]
    return {"seeds": list(seeds), "nodes": nodes, "edges": [edge.to_dict() for edge in near.edges], "cut": near.cut}
