"""What a memory service answers, read with care: it may be another program's, ill, or hostile.

    {"candidates": [{"id": "mem-001", "score": 0.92, "text": "…", "metadata": {"source": "…", "timestamp": "…"}}]}

`results` may stand for `candidates`. An answer of another form is an error of the service; a candidate of another form
is left out and counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from research.errors import SomaClientError

MOST = 1000  # candidates that are looked at, whatever was asked for
LONGEST = 100_000  # characters of a memory; beyond it nobody meant it to be part of a prompt
_LONGEST_NAME = 200  # characters of an id or a source

_NAMES = ("candidates", "results")


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


def read_candidates(answer: object) -> Candidates:
    """Raises SomaClientError ("nonsense") for an answer that is none."""
    listed = _listed(answer)
    found: list[Candidate] = []
    dropped: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    if len(listed) > MOST:
        dropped["too_many"] = len(listed) - MOST
    for each in listed[:MOST]:
        candidate = _candidate(each)
        if isinstance(candidate, str):
            dropped[candidate] += 1
        elif (candidate.id, candidate.text) in seen:
            dropped["repeated"] += 1
        else:
            seen.add((candidate.id, candidate.text))
            found.append(candidate)
    return Candidates(found, dropped)


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
    named = next((name for name in _NAMES if answer.get(name) is not None), None)
    listed = [] if named is None else answer[named]
    if not isinstance(listed, list | tuple):
        raise _nonsense(f"its {named} are no list")
    return list(listed)


def _candidate(each: object) -> Candidate | str:
    """A candidate, or the reason why it is none."""
    if not isinstance(each, Mapping):
        return "not_a_memory"
    text = each.get("text")
    if not isinstance(text, str):
        text = each.get("content")
    if not isinstance(text, str) or not text.strip():
        return "without_text"
    if len(text) > LONGEST:
        return "too_long"
    given, name = each.get("metadata"), each.get("id")
    metadata = dict(given) if isinstance(given, Mapping) else {}
    for field_name in ("timestamp", "created_at", "type", "source"):  # some services have them beside the text
        if field_name not in metadata and each.get(field_name) is not None:
            metadata[field_name] = each[field_name]
    known = str(name)[:_LONGEST_NAME] if isinstance(name, str | int) and not isinstance(name, bool) else ""
    return Candidate(known, text, score_of(each.get("score")), metadata)


def _nonsense(what: str) -> SomaClientError:
    return SomaClientError(
        f"the memory service did not answer as one does: {what}",
        code="nonsense",
        hint="see that SA01_SOMA_BASE_URL is the address of a memory service",
    )
