"""What changes an item's rank a little, beside how well it fits: how sure an experience is, how important a memory, how
recent a commit or an experience.

Each is a factor on the odds of the calibrated score, so that a score stays one between 0 and 1, and what fits clearly
better stays ahead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from research.models import Item

TIERS: Mapping[str, float] = {"gold": 1.3, "silver": 1.15, "bronze": 1.0, "abandoned": 0.8}
_MOST_IMPORTANT = 1.3  # for an importance of 1; the inverse for 0
_NOW = 1.15  # for what happened today
_HALF_LIFE = 30 * 24 * 3600.0  # seconds


def relevance(item: Item, now: datetime) -> float:
    """The score with what else speaks for the item."""
    factor = 1.0
    match item.ref.kind:
        case "memory":
            importance = float(item.metadata.get("importance", 0.5))
            factor = math.pow(_MOST_IMPORTANT, 2.0 * min(1.0, max(0.0, importance)) - 1.0)
        case "experience":
            tier = str(item.metadata.get("confidence_tier", ""))
            factor = TIERS.get(tier, 1.0) * _recency(item.created_at, now)
        case "commit":
            factor = _recency(item.created_at, now)
    score = min(1.0, max(0.0, item.score))
    return score * factor / (1.0 - score + score * factor) if score < 1.0 else 1.0


def _recency(told: str, now: datetime) -> float:
    try:
        at = datetime.fromisoformat(told)
    except ValueError:
        return 1.0
    age = (now - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds()
    return 1.0 + (_NOW - 1.0) * math.exp2(-max(0.0, age) / _HALF_LIFE)
