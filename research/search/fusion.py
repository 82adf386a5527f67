"""Fusing the legs: a weighted sum of scores that are already on one scale.

Rank fusion throws away how sure a leg is and so falls behind its better leg; scores that do not depend on the
other results can simply be added.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from research.models import LegScore
from research.search.legs import Hits


@dataclass(frozen=True, slots=True)
class Weights:
    """What each leg counts, by its name.

    `shares` are parts of one sum. A leg outside it changes the sum of the others: by a share of what it has beyond
    them (`gains`, for hits that tell their gain), or by taking a share of the whole (`blends`).
    """

    shares: Mapping[str, float]
    gains: Mapping[str, float]
    blends: Mapping[str, float]


# From sweeps on four development sets, flat around the optimum (RETRIEVAL.md). A lexical score of 1 is far rarer than a
# cosine of 1, hence its larger share. What a line of a scan has beyond its passage: .10 and .20 did as well as .15. The
# third of a visual model is not measured: no trained weights could be had, so it counts as one of three.
DEFAULT_WEIGHTS = Weights(
    shares={"lexical": 0.63, "dense": 0.37},
    gains={"visual": 0.15},
    blends={"visual": 1 / 3},
)


class Ranked(NamedTuple):
    """A page in a ranking."""

    page_id: int
    doc_id: str
    score: float


def fuse(
    found: Mapping[str, Hits], order: Mapping[int, tuple[str, int, str]], weights: Weights = DEFAULT_WEIGHTS
) -> list[Ranked]:
    """The pages by weighted sum, best first. `found` holds every leg's score of every candidate it knows.

    A leg that stands alone counts in full, whatever its weight beside others. Equal scores (twin pages of two
    documents) stand in `order` (filename, page, doc_id), so that the answer does not depend on which document was
    ingested first.
    """
    totals = _totals(found, weights)
    # Rounded, because twins differ in the last bits: by the order of adding, and by their place in a matrix of float32.
    ordered = sorted(
        [(-round(score, 6), order[page_id], page_id) for page_id, score in totals.items() if page_id in order]
    )
    return [Ranked(page_id, place[2], totals[page_id]) for _, place, page_id in ordered]


def ranks_of(hits: Hits, own: Collection[int]) -> dict[int, int]:
    """page_id → rank from 1, by score, among the pages that the leg found itself."""
    ordered = sorted([(-hits[page_id].score, page_id) for page_id in own if page_id in hits])
    return {page_id: rank for rank, (_, page_id) in enumerate(ordered, start=1)}


def leg_scores(page_id: int, found: Mapping[str, Hits], ranks: Mapping[str, Mapping[int, int]]) -> dict[str, LegScore]:
    """How each leg saw a page."""
    return {
        name: LegScore(ranks[name].get(page_id), hits[page_id].score, dict(hits[page_id].parts))
        for name, hits in found.items()
        if page_id in hits
    }


def _totals(found: Mapping[str, Hits], weights: Weights) -> dict[int, float]:
    if len(found) == 1:
        return {page_id: hit.score for hits in found.values() for page_id, hit in hits.items()}
    totals: dict[int, float] = {}
    whole = sum(weights.shares.get(name, 0.0) for name in found)
    for name, weight in weights.shares.items():
        for page_id, hit in found.get(name, {}).items():
            totals[page_id] = totals.get(page_id, 0.0) + weight / whole * hit.score
    for name in found.keys() - weights.shares.keys():
        for page_id, hit in found[name].items():
            known = totals.get(page_id, 0.0)
            if hit.gain is not None:
                totals[page_id] = known + weights.gains[name] * hit.gain
            else:  # a page it has not seen yet is judged by the others alone
                totals[page_id] = (1 - weights.blends[name]) * known + weights.blends[name] * hit.score
    return totals

