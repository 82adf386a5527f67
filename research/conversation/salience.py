"""What a memory service answers, and how much each memory of it matters now.

A service may be another program's, ill, or hostile, so it is read with care:

    {"candidates": [{"id": "mem-001", "score": 0.92, "text": "…", "metadata": {"source": "…", "timestamp": "…"}}]}

`results` may stand for `candidates`. An answer of another form is an error of the service; a candidate of another form
is left out and counted.

70 % is how well a memory fits the question, 30 % how young it is: 0.7 · score + 0.3 · e^(−days / 30). A memory of today
has a recency of 1, one of a month .37, one of two .14. Without a time that can be read it is .5; one from the future is
of today.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from research.errors import SomaClientError
from research.filters import read_time

MOST = 1000  # candidates that are looked at, whatever was asked for
LONGEST = 100_000  # characters of a memory; beyond it nobody meant it to be part of a prompt
_LONGEST_NAME = 200  # characters of an id or a source
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory as the service gave it: raw text, not to be shown before it is redacted."""

    id: str
    text: str
    score: float  # 0 to 1
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Where it is from, for its label: the first of these that is there."""
        named = (self.metadata.get("source"), self.metadata.get("type"), self.id)
        return next((name[:_LONGEST_NAME] for name in named if isinstance(name, str) and name.strip()), "memory")

    @property
    def time(self) -> object:
        return self.metadata.get("timestamp") or self.metadata.get("created_at")


@dataclass(frozen=True, slots=True)
class Candidates:
    """What can be used, in the service's order, and how many were left out for which reason."""

    found: list[Candidate]
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with what its score is made of."""

    candidate: Candidate
    score: float
    recency: float


def salience(relevance: float, recency: float) -> float:
    return 0.7 * relevance + 0.3 * recency


def recency_boost(time: object, now: datetime) -> float:
    """From a time in any form that is met."""
    then = read_time(time)
    return 0.5 if then is None else math.exp(-max(0.0, (now - then).total_seconds() / _DAY) / 30.0)


def apply_salience(candidates: Sequence[Candidate], now: datetime) -> list[Scored]:
    scored = []
    for candidate in candidates:
        recency = recency_boost(candidate.time, now)
        scored.append(Scored(candidate, salience(candidate.score, recency), recency))
    return scored


def rank(scored: Sequence[Scored], limit: int) -> list[Scored]:
    """The best, best first; what scores the same by relevance, then in the service's order."""
    return sorted(scored, key=lambda each: (-each.score, -each.candidate.score))[: max(0, limit)]


def time_shown(time: object) -> str:
    """A memory's time in one form; empty if it cannot be read."""
    found = read_time(time)
    return "" if found is None else found.isoformat()


def read_candidates(answer: object) -> Candidates:
    """Raises SomaClientError ("nonsense") for an answer that is none."""
    listed = _listed(answer)
    found: dict[tuple[str, str], Candidate] = {}
    dropped: Counter[str] = Counter()
    if len(listed) > MOST:
        dropped["too_many"] = len(listed) - MOST
    for each in listed[:MOST]:
        candidate = _candidate(each)
        if isinstance(candidate, str):
            dropped[candidate] += 1
        elif (candidate.id, candidate.text) in found:
            dropped["repeated"] += 1
        else:
            found[candidate.id, candidate.text] = candidate
    return Candidates(list(found.values()), dropped)


def score_of(value: object) -> float:
    """A score from 0 to 1, whatever came for one. What is no number is no score."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return 0.0
    return 0.0 if math.isnan(number) else min(1.0, max(0.0, number))


def _listed(answer: object) -> list[Any]:
    if isinstance(answer, list):
        return answer
    if not isinstance(answer, Mapping):
        raise _nonsense(f"{type(answer).__name__} where a document was expected")
    name = next((name for name in ("candidates", "results") if answer.get(name) is not None), "")
    listed = answer[name] if name else []
    if not isinstance(listed, list | tuple):
        raise _nonsense(f"its {name} are no list")
    return list(listed)


def _candidate(each: object) -> Candidate | str:
    """A candidate, or the reason why it is none."""
    if not isinstance(each, Mapping):
        return "not_a_memory"
    text = each["text"] if isinstance(each.get("text"), str) else each.get("content")
    if not isinstance(text, str) or not text.strip():
        return "without_text"
    if len(text) > LONGEST:
        return "too_long"
    given, name = each.get("metadata"), each.get("id")
    beside = {key: each[key] for key in ("timestamp", "created_at", "type", "source") if each.get(key) is not None}
    metadata = beside | (dict(given) if isinstance(given, Mapping) else {})  # some services have them beside the text
    known = str(name)[:_LONGEST_NAME] if isinstance(name, str | int) and not isinstance(name, bool) else ""
    return Candidate(known, text, score_of(each.get("score")), metadata)


def _nonsense(what: str) -> SomaClientError:
    return SomaClientError(
        f"the memory service did not answer as one does: {what}",
        code="nonsense",
        hint="see that SA01_SOMA_BASE_URL is the address of a memory service",
    )
