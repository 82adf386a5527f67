"""What a source is: a kind of thing that can be asked, which can fail without the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from research.models import AnsweredBy, Coverage, Item, Question, Rewrite, SourceCoverage
from research.store.catalog.reader import Reader


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a source found, best first, and how it went."""

    items: Sequence[Item]
    status: SourceCoverage
    coverage: Coverage | None = None  # what documents could not see; other sources have none
    timings: dict[str, float] = field(default_factory=dict)
    searched: str = ""
    rewrites: list[Rewrite] = field(default_factory=list)
    answered_by: AnsweredBy = "pages"
    notes: tuple[str, ...] = ()  # what went another way than usual, a sentence each
    fresh: object = None  # vectors that were made for the question, for whoever keeps them


class Source(Protocol):
    """Scores of its items are calibrated: how likely it is that this answers the question, 0 to 1."""

    @property
    def name(self) -> str: ...

    def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
        """At most `limit` items, best first. `reader` is the catalog as this question sees it."""
        ...
