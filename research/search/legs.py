"""What a leg is: one way of finding pages, which can fail without the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from research.models import Question
from research.store.catalog.reader import Reader


@dataclass(frozen=True, slots=True)
class Hit:
    """A page as one leg sees it. `parts` tells what `score` is made of.

    `gain` is for a leg that looks at the same evidence as another: only what it has beyond that one adds to the sum.
    """

    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    gain: float | None = None


Hits = dict[int, Hit]
"""page_id → hit."""


class Leg(Protocol):
    """Scores are on a fixed scale (about 0–1) that does not depend on the other pages found.

    A leg keeps nothing of a question: what it works out goes into the question's memo. Many threads may use it.
    """

    @property
    def name(self) -> str: ...

    @property
    def follows(self) -> str:
        """The leg that must have looked before this one, because it builds on what that found; empty for none."""
        ...

    def why_off(self, reader: Reader) -> str:
        """Why this index has no such side; empty if it has one."""
        ...

    def candidates(self, reader: Reader, question: Question, depth: int) -> Collection[int]:
        """The best `depth` pages of the whole index, or a few more."""
        ...

    def score(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> Hits:
        """The scores of given pages; pages the leg knows nothing of are left out."""
        ...
