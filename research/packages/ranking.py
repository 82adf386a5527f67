"""The blended score: how well a thing fits, how near it is in the graph, how current and how sound it is, and whether
it was of use before. Each part is 0 to 1, and stands with the source; the score is their weighted mean, and half of it
for a version that a newer one has taken the place of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from research.filters import read_time
from research.packages.candidates import Candidate
from research.packages.package import ScoreParts
from research.packages.request import PARTS
from research.store.catalog.packages import Uses

_HALF_LIFE_DAYS = 365.0
_CURRENT = 0.5  # what anything current has at least, however old; a superseded thing has nothing
_SUPERSEDED = 0.5  # of its score: two versions of a page fit alike, and which comes first must not be chance
_OCR = 0.7
_SUSPICIOUS = 0.3
_TIERS = {"gold": 1.0, "silver": 0.85, "bronze": 0.7, "abandoned": 0.4}
_SHORT = 40  # characters below which a text says little by itself
_NOTHING_YET = Uses()


@dataclass(frozen=True, slots=True)
class Ranked:
    candidate: Candidate
    score: float
    parts: ScoreParts


def fuse(answers: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """Each thing once, by ref: with all that brought it and the best of what they said of it."""
    found: dict[str, Candidate] = {}
    for candidates in answers:
        for each in candidates:
            known = found.get(each.ref)
            if known is None:
                found[each.ref] = each
                continue
            known.origins |= each.origins
            known.graph = max(known.graph, each.graph)
            known.superseded = known.superseded or each.superseded
            known.pinned = known.pinned or each.pinned
            known.expires_at = known.expires_at or each.expires_at
            if each.semantic > known.semantic:  # as the search has it: with its legs and its own score
                known.semantic, known.item = each.semantic, each.item
    return list(found.values())


def rank(
    candidates: Sequence[Candidate], weights: Mapping[str, float], uses: Mapping[str, Uses], now: datetime
) -> list[Ranked]:
    """Pinned ones first and as they were pinned, then by score; what is equal by ref, so that it is always the same."""
    total = sum(weights.values()) or 1.0
    ranked = []
    for each in candidates:
        parts = parts_of(each, uses.get(each.ref, _NOTHING_YET), now)
        score = sum(weights[name] * getattr(parts, name) for name in PARTS) / total
        if each.superseded:
            score *= _SUPERSEDED
        ranked.append(Ranked(each, round(score, 6), parts))
    ranked.sort(key=lambda each: (not each.candidate.pinned, 0.0 if each.candidate.pinned else -each.score))
    pinned = [each for each in ranked if each.candidate.pinned]
    rest = sorted(ranked[len(pinned) :], key=lambda each: (-each.score, each.candidate.ref))
    return [*pinned, *rest]


def parts_of(candidate: Candidate, uses: Uses, now: datetime) -> ScoreParts:
    return ScoreParts(
        semantic=round(min(1.0, candidate.semantic), 4),
        graph=round(min(1.0, candidate.graph), 4),
        recency=round(recency(candidate, now), 4),
        quality=round(quality(candidate), 4),
        reuse=round(reuse(uses), 4),
    )


def recency(candidate: Candidate, now: datetime) -> float:
    if candidate.superseded:
        return 0.0
    at = read_time(candidate.item.created_at) if candidate.item.created_at else None
    if at is None:
        return _CURRENT
    days = max(0.0, (now.astimezone(UTC) - at).total_seconds() / 86_400)
    return _CURRENT + (1.0 - _CURRENT) * math.exp2(-days / _HALF_LIFE_DAYS)


def quality(candidate: Candidate) -> float:
    """Text that was read from a picture, that may steer a model, or that is hardly there, is worth less."""
    item, found = candidate.item, 1.0
    if item.metadata.get("ocr"):
        found *= _OCR
    if item.signals:
        found *= _SUSPICIOUS
    tier = item.metadata.get("confidence_tier")
    if isinstance(tier, str):
        found *= _TIERS.get(tier, 1.0)
    length = len(item.text.strip())
    return found * min(1.0, length / _SHORT)


def reuse(uses: Uses) -> float:
    """Grows with what was said to be useful and, much less, with being chosen; what was of no use loses it."""
    told = uses.useful - uses.not_useful + 0.02 * min(uses.chosen, 50)
    return 0.0 if told <= 0 else 1.0 - math.exp(-told / 2.0)
