"""What a source is: a kind of thing that can be asked, which can fail without the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from research.models import AnsweredBy, Coverage, Item, Question, Rewrite, SourceCoverage
from research.store import Reader


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


def labelled(reader: Reader, items: Sequence[Item]) -> Sequence[Item]:
    """The items with what a policy left of them, if it left less than all."""
    labels = reader.masks.labels
    if not labels:
        return items
    return [
        replace(item, labels=(*item.labels, labels[str(item.ref)])) if str(item.ref) in labels else item
        for item in items
    ]


class Source(Protocol):
    """Scores of its items are calibrated: how likely it is that this answers the question, 0 to 1."""

    @property
    def name(self) -> str: ...

    def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
        """At most `limit` items, best first. `reader` is the catalog as this question sees it."""
        ...
