"""What the sources of items share: code, commits, experiences and values differ in what their items say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from research.models import Item, LegScore, Question, Ref, SourceCoverage
from research.search.items import FoundItem, FoundItems, ItemSearch, Ranking, Where
from research.sources.base import Retrieved, labelled

if TYPE_CHECKING:
    from research.encoders import TextEncoder
    from research.store.catalog.reader import Reader


class ItemsSource:
    """A source over the items of one kind. A subclass names itself and the kind, and says what an item looks like."""

    name = ""
    kind = ""
    ranking: Ranking | None = None

    def __init__(self, encoder: Callable[[Reader], TextEncoder]) -> None:
        self.search = ItemSearch(self.kind, encoder, self.ranking)

    def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
        found = self.find(reader, question.wording, limit, where=question.where)
        reason = "; ".join(found.notes)
        status = SourceCoverage(self.name, "degraded" if reason else "ok", reason)
        items = labelled(reader, [self.item(each) for each in found.items])
        return Retrieved(items, status, notes=tuple(found.notes), fresh=found.fresh)

    def find(self, reader: Reader, text: str, limit: int, *, where: Where | None = None) -> FoundItems:
        """The same with the rows themselves, and restricted to metadata."""
        return self.search.find(reader, text, limit, where=where)

    def ref(self, found: FoundItem) -> Ref:
        return Ref(self.kind, found.item.key)

    def item(self, found: FoundItem) -> Item:
        """As the pipeline has it."""
        from research.context.injection.detector import signals_of  # not needed to search

        stored = found.item
        plain = {name: value for name, value in stored.metadata.items() if isinstance(value, (str, int, float, list))}
        return Item(
            ref=self.ref(found),
            title=stored.title,
            text=stored.text,
            score=found.score,
            raw_score=found.total,
            legs={name: LegScore(None, share) for name, share in found.parts.items()},
            created_at=stored.created_at,
            metadata=plain,
            signals=tuple(signals_of(stored.text, title=stored.title)),
        )
