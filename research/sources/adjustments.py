"""What changes an item's rank a little, beside how well it fits: how sure an experience is, how important a memory, how
recent a commit or an experience.

Each is a factor on the odds of the calibrated score, so that a score stays one between 0 and 1, and what fits clearly
better stays ahead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from research.sources.records import CommitResult, ExperienceResult, MemoryResult, Result

TIERS: Mapping[str, float] = {"gold": 1.3, "silver": 1.15, "bronze": 1.0, "abandoned": 0.8}
_MOST_IMPORTANT = 1.3  # for an importance of 1; the inverse for 0
_NOW = 1.15  # for what happened today
_HALF_LIFE = 30 * 24 * 3600.0  # seconds


def relevance(found: Result, now: datetime) -> float:
    """The score with what else speaks for the item."""
    factor = 1.0
    if isinstance(found, MemoryResult):
        factor *= math.pow(_MOST_IMPORTANT, 2.0 * min(1.0, max(0.0, found.importance)) - 1.0)
    if isinstance(found, ExperienceResult):
        factor *= TIERS.get(found.confidence_tier, 1.0) * _recency(found.created_at, now)
    if isinstance(found, CommitResult):
        factor *= _recency(found.timestamp, now)
    score = min(1.0, max(0.0, found.score))
    return score * factor / (1.0 - score + score * factor) if score < 1.0 else 1.0


def _recency(told: str, now: datetime) -> float:
    try:
        at = datetime.fromisoformat(str(told))
    except ValueError:
        return 1.0
    age = (now - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds()
    return 1.0 + (_NOW - 1.0) * math.exp2(-max(0.0, age) / _HALF_LIFE)
