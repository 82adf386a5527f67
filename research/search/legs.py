"""What a leg is: one way of finding pages, which can fail without the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Hit:
    """A page as one leg sees it. `parts` tells what `score` is made of."""

    score: float
    parts: dict[str, float] = field(default_factory=dict)


Hits = dict[int, Hit]
"""page_id → hit."""


class Leg(Protocol):
    """Scores are on a fixed scale (about 0–1) that does not depend on the other pages found."""

    @property
    def name(self) -> str: ...

    def find(self, question: str, depth: int) -> Hits:
        """The best `depth` pages of the whole index."""
        ...

    def score(self, question: str, page_ids: Sequence[int]) -> Hits:
        """The same scores for given pages; pages the leg knows nothing of are left out."""
        ...
