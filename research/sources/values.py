"""Values as a source: what many experiences have in common."""

from __future__ import annotations

from research.experiences.records import FoundValue
from research.experiences.values import VALUES, value_of
from research.search.items import FoundItems, Ranking
from research.sources.items import ItemsSource


class ValuesSource(ItemsSource):
    name = "values"
    kind = VALUES
    ranking = Ranking(vectors=1.0)  # and scores as experiences have

    def values(self, found: FoundItems) -> list[FoundValue]:
        """What was found, whole."""
        return [FoundValue(value_of(each.item), each.score, each.total, each.parts) for each in found.items]
