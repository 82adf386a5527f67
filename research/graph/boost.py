"""What the graph adds to what a search has found: pages that the best of it refer to.

A question finds the page that tells of the matter; the figures stand in the table that this page refers to, and share
no word with the question. So what a good page refers to joins the ranking, for a share of that page's score: below it,
and below every direct hit that is stronger. The structure of a document (`contains`) says nothing of a question.
Weights are measured: tests/bench/graph.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from research.graph.neighbourhood import Edge

_OUT: Mapping[str, float] = {"refers": 0.9, "cites": 0.5, "calls": 0.5, "changes": 0.4, "supports": 0.6}
_IN: Mapping[str, float] = {"calls": 0.4, "supports": 0.6}


@dataclass(frozen=True, slots=True)
class Spreading:
    """`seeds`: of the best found, whose neighbours may join; `least`: the score they need, as a share of the best
    one's; `first`: places that stay with what was found; `most`: neighbours that join. `out` and `back`: the share of
    a seed's score, by the kind of the edge that leads from it or to it."""

    seeds: int = 3
    least: float = 0.8
    first: int = 2
    most: int = 2
    out: Mapping[str, float] = field(default_factory=lambda: _OUT)
    back: Mapping[str, float] = field(default_factory=lambda: _IN)


@dataclass(frozen=True, slots=True)
class Joined:
    """A ref with its score; `seed`: the one it came with, by an edge of `kind`. Both empty: it was found."""

    ref: str
    score: float
    seed: str = ""
    kind: str = ""


DEFAULT = Spreading()


def seeds_of(ranked: Sequence[tuple[str, float]], how: Spreading = DEFAULT) -> list[str]:
    """Those of (ref, score), best first, whose neighbours are to be looked up."""
    best = ranked[0][1] if ranked else 0.0
    return [ref for ref, score in ranked[: how.seeds] if score > 0 and score >= how.least * best]


def neighbour_scores(
    ranked: Sequence[tuple[str, float]], edges: Iterable[Edge], how: Spreading = DEFAULT
) -> dict[str, Joined]:
    """ref → what it is worth as a neighbour of a seed, by its best edge. Seeds are worth nothing to each other."""
    scores = dict(ranked)
    seeds = set(seeds_of(ranked, how))
    found: dict[str, Joined] = {}
    for edge in edges:
        for seed, other, shares in ((edge.source, edge.target, how.out), (edge.target, edge.source, how.back)):
            worth = scores.get(seed, 0.0) * shares.get(edge.kind, 0.0)
            if seed in seeds and other not in seeds and worth > 0 and (other not in found or worth > found[other].score):
                found[other] = Joined(other, worth, seed, edge.kind)
    return found


def with_neighbours(
    ranked: Sequence[tuple[str, float]], edges: Iterable[Edge], how: Spreading = DEFAULT
) -> list[Joined]:
    """The ranking with neighbours in it. What was found keeps its order, its scores and the first places; a neighbour
    that was found too comes up only if it is worth more than its own score."""
    near = neighbour_scores(ranked, edges, how)
    place = {ref: number for number, (ref, _) in enumerate(ranked)}
    own = dict(ranked)
    better = [one for one in near.values() if one.score > own.get(one.ref, 0.0)]
    better = [one for one in better if place.get(one.ref, len(ranked)) >= how.first]
    chosen = {one.ref: one for one in sorted(better, key=lambda one: (-one.score, one.ref))[: how.most]}
    kept = [Joined(ref, score) for ref, score in ranked if ref not in chosen]
    first, rest = kept[: how.first], kept[how.first :]
    # Found ones come before a neighbour that is worth as much.
    return [*first, *sorted([*rest, *chosen.values()], key=lambda one: (-one.score, one.ref in chosen))]
