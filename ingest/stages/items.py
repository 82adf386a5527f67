"""A vector for every part of an item that has none: code, commits, whatever is kept beside documents."""

from __future__ import annotations

from ingest.encoder import embed_items
from ingest.stages.base import Work
from research.store.catalog.items import KINDS, count_items, numbers_without_vectors


class ItemsStage:
    """What an earlier run left, and everything once another encoder has taken over."""

    name = "items"

    def pending(self, work: Work) -> bool:
        return bool(self._kinds(work))

    def run(self, work: Work) -> None:
        for kind in self._kinds(work):
            embed_items(work.catalog, kind, work.encoder, work.observer.on_embed)

    @staticmethod
    def _kinds(work: Work) -> list[str]:
        there = count_items(work.catalog)
        return [
            kind for kind in KINDS if kind in there and numbers_without_vectors(work.catalog, kind, work.encoder.name)
        ]
