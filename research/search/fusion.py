"""Fusing the legs: a weighted sum of scores that are already on one scale.

Rank fusion throws away how sure a leg is and so falls behind its better leg; scores that do not depend on the
other results can simply be added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from research.models import LegScore
from research.search.legs import Hits

# A lexical score of 1 is far rarer than a cosine of 1, hence the larger share for an equal say.
WEIGHTS: Mapping[str, float] = {"lexical": 0.63, "dense": 0.37}
# A visual model beside the text legs. No trained weights could be had to measure it: a third, as one of three.
MODEL_SHARE = 1 / 3
# `regions` compares the dense leg's own vectors, so only what it sees beyond them counts: a line of a scan that fits
# the question better than the passage it stands in.
BEYOND = 0.15


@dataclass(frozen=True, slots=True)
class FusedPage:
    page_id: int
    score: float
    legs: dict[str, LegScore]


def fuse(
    found: Mapping[str, Hits],
    ranks: Mapping[str, Mapping[int, int]],
    order: Mapping[int, tuple[str, int, str]],
    limit: int | None = None,
    *,
    shares_text: bool = False,
) -> list[FusedPage]:
    """The best `limit` pages by weighted sum, best first. `found` holds every leg's score of every candidate it knows.

    A leg that stands alone counts in full, whatever its weight beside others. `shares_text`: the visual leg compares
    the dense leg's vectors. Equal scores (twin pages of two documents) stand in `order`, so that the answer does not
    depend on which document was ingested first.
    """
    totals = _text_totals(found)
    visual = found.get("visual", {})
    if len(found) == 1:
        totals.update((page_id, hit.score) for page_id, hit in visual.items())
    elif shares_text:
        dense = found.get("dense", {})
        for page_id, hit in visual.items():
            known = dense[page_id].score if page_id in dense else 0.0
            totals[page_id] = totals.get(page_id, 0.0) + BEYOND * max(0.0, hit.score - known)
    else:
        # A page the model has not seen yet is judged by its text alone.
        for page_id, hit in visual.items():
            totals[page_id] = (1 - MODEL_SHARE) * totals.get(page_id, 0.0) + MODEL_SHARE * hit.score
    # Rounded, because twins differ in the last bits: by the order of adding, and by their place in a matrix of float32.
    ordered = sorted(
        ((page_id, score) for page_id, score in totals.items() if page_id in order),
        key=lambda item: (-round(item[1], 6), order[item[0]]),
    )
    return [FusedPage(page_id, score, _leg_scores(page_id, found, ranks)) for page_id, score in ordered[:limit]]


def ranks_of(hits: Hits) -> dict[int, int]:
    """page_id → rank from 1, by score."""
    ordered = sorted(hits, key=lambda page_id: (-hits[page_id].score, page_id))
    return {page_id: rank for rank, page_id in enumerate(ordered, start=1)}


def _text_totals(found: Mapping[str, Hits]) -> dict[int, float]:
    whole = sum(WEIGHTS[name] for name in found if name in WEIGHTS)
    totals: dict[int, float] = {}
    for name, weight in WEIGHTS.items():
        for page_id, hit in found.get(name, {}).items():
            totals[page_id] = totals.get(page_id, 0.0) + weight / whole * hit.score
    return totals


def _leg_scores(page_id: int, found: Mapping[str, Hits], ranks: Mapping[str, Mapping[int, int]]) -> dict[str, LegScore]:
    return {
        name: LegScore(ranks[name].get(page_id), hits[page_id].score, dict(hits[page_id].parts))
        for name, hits in found.items()
        if page_id in hits
    }
