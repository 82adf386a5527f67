"""What the graph adds to what a search has found: pages that the best of it refer to.

A question finds the page that tells of the matter; the figures stand in the table that this page refers to, and share
no word with the question. So what a good page refers to joins the ranking, for a share of that page's score: below it,
and below every direct hit that is stronger. Only references count that stand where the page speaks of the question: a
page refers to many things. The structure of a document (`contains`) says nothing of a question. Measured, and flat
around these numbers: tests/bench/graph.py.

    seeds = seeds_of(ranked)
    near = find_neighbourhood(reader, seeds, kinds=FOLLOWED)
    said = {ref: references_said(question, texts[ref]) for ref in seeds}
    ranked = with_neighbours(ranked, near.edges, said)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from research.graph.extraction import reference_name
from research.graph.neighbourhood import Edge
from research.graph.references import MOST_LETTERS, references_in
from research.store import analyze

_OUT: Mapping[str, float] = {"refers": 0.9, "calls": 0.5, "supports": 0.6}
_BACK: Mapping[str, float] = {"supports": 0.6}
FOLLOWED = tuple(sorted({*_OUT, *_BACK}))
"""Kinds of edges that bring something into a ranking."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_a-zß-ÿ]|[(\"“])|\n+")
_LEAST_WORDS, _LEAST_SHARE = 2, 0.4  # of the question's, around a reference


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
    back: Mapping[str, float] = field(default_factory=lambda: _BACK)


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
    ranked: Sequence[tuple[str, float]],
    edges: Iterable[Edge],
    said: Mapping[str, Collection[int]] | None = None,
    how: Spreading = DEFAULT,
) -> dict[str, Joined]:
    """ref → what it is worth as a neighbour of a seed, by its best edge. Seeds are worth nothing to each other. `said`:
    seed → the references that count (`references_said`); without it all do."""
    scores = dict(ranked)
    seeds = set(seeds_of(ranked, how))
    found: dict[str, Joined] = {}
    for edge in edges:
        if said is not None and edge.kind == "refers" and not edge.names & set(said.get(edge.source, ())):
            continue
        for seed, other, shares in ((edge.source, edge.target, how.out), (edge.target, edge.source, how.back)):
            worth = scores.get(seed, 0.0) * shares.get(edge.kind, 0.0)
            if seed in seeds and other not in seeds and worth > (found[other].score if other in found else 0.0):
                found[other] = Joined(other, worth, seed, edge.kind)
    return found


def with_neighbours(
    ranked: Sequence[tuple[str, float]],
    edges: Iterable[Edge],
    said: Mapping[str, Collection[int]] | None = None,
    how: Spreading = DEFAULT,
) -> list[Joined]:
    """The ranking with neighbours in it. What was found keeps its order, its scores and the first places; a neighbour
    that was found too comes up only if it is worth more than its own score."""
    near = neighbour_scores(ranked, edges, said, how)
    place = {ref: number for number, (ref, _) in enumerate(ranked)}
    own = dict(ranked)
    better = [one for one in near.values() if one.score > own.get(one.ref, 0.0)]
    better = [one for one in better if place.get(one.ref, len(ranked)) >= how.first]
    chosen = {one.ref: one for one in sorted(better, key=lambda one: (-one.score, one.ref))[: how.most]}
    kept = [Joined(ref, score) for ref, score in ranked if ref not in chosen]
    first, rest = kept[: how.first], kept[how.first :]
    # Found ones come before a neighbour that is worth as much.
    return [*first, *sorted([*rest, *chosen.values()], key=lambda one: (-one.score, one.ref in chosen))]
