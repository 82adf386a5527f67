"""Commits as a source: what was changed before, by whom and why."""

from __future__ import annotations

from research.search.items import Ranking
from research.sources.items import ItemsSource


class CommitsSource(ItemsSource):
    """A commit is found by its message, its first line above all, by the paths it touched, the functions its hunks lie
    in, and the words of its lines."""

    name = "commits"
    kind = "commit"
    ranking = Ranking(vectors=0.3)
