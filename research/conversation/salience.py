"""Salience: how much a memory matters now. 70 % is how well it fits the question, 30 % how young it is.

    0.7 · score + 0.3 · e^(−days / 30)

A memory of today has a recency of 1, one of a month .37, one of two .14. Without a time, or with one that cannot be
read, it is .5; one from the future is of today.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from research.conversation.candidates import Candidate

UNKNOWN = 0.5  # the recency of what has no time
_DAY = 86_400.0
_MILLISECONDS = 1e11  # a number beyond this counts them, not seconds


@dataclass(frozen=True, slots=True)
class Salience:
    """The weights; `Salience(1, 0)` leaves the order to relevance alone."""

    relevance: float = 0.7
    recency: float = 0.3
    days: float = 30.0  # in which recency falls to a third

    def score(self, relevance: float, recency: float) -> float:
        return self.relevance * relevance + self.recency * recency


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with what its score is made of."""

    candidate: Candidate
    score: float
    recency: float


def recency_boost(time: object, now: datetime, days: float = 30.0) -> float:
    """e^(−age / days), from a time in any form that is met."""
    then = read_time(time)
    if then is None:
        return UNKNOWN
    age = max(0.0, (now - then).total_seconds() / _DAY)
    return math.exp(-age / days) if days > 0 else float(age == 0)


def read_time(value: object) -> datetime | None:
    """ISO 8601 with Z, an offset or neither (then it is UTC), a date, or seconds since 1970; None if unreadable."""
    try:
        if isinstance(value, datetime):
            found = value
        elif isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = float(value)
            found = datetime.fromtimestamp(seconds / 1000 if abs(seconds) > _MILLISECONDS else seconds, UTC)
        else:
            return None
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError, OSError):  # beyond the calendar, too
        return None


def apply_salience(candidates: Sequence[Candidate], now: datetime, salience: Salience | None = None) -> list[Scored]:
    weights = salience or Salience()
    scored = []
    for candidate in candidates:
        recency = recency_boost(candidate.time, now, weights.days)
        scored.append(Scored(candidate, weights.score(candidate.score, recency), recency))
    return scored


def rank(scored: Sequence[Scored], limit: int) -> list[Scored]:
    """The best, best first; what scores the same by relevance, then in the service's order."""
    ordered = sorted(scored, key=lambda each: (-each.score, -each.candidate.score))
    return ordered[: max(0, limit)]


def time_shown(metadata: Mapping[str, Any]) -> str:
    """A memory's time in one form; empty if it has none that can be read."""
    found = read_time(metadata.get("timestamp") or metadata.get("created_at"))
    return "" if found is None else found.isoformat()
