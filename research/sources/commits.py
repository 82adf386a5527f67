"""Commits as a source: what was changed before, by whom and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from research.models import Item
from research.records import RepositoryInfo
from research.search.items import FoundItem, Ranking
from research.sources.items import ItemsSource
from research.store.catalog.items import count_of_parents

if TYPE_CHECKING:
    from research.store.catalog.reader import Reader


def repositories_of(reader: Reader) -> list[RepositoryInfo]:
    """By name."""
    return [RepositoryInfo(name, count) for name, count in count_of_parents(reader, CommitsSource.kind).items()]


class CommitsSource(ItemsSource):
    """A commit is found by its message, its first line above all, by the paths it touched, the functions its hunks lie
    in, and the words of its lines."""

    name = "commits"
    kind = "commit"
    ranking = Ranking(vectors=0.3, curve="commits")

    def item(self, found: FoundItem) -> Item:
        """With the folder that its files are named from."""
        item = super().item(found)
        return replace(item, metadata={**item.metadata, "repository": found.item.parent})
