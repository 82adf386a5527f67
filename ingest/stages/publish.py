"""The collections, brought up to the catalog."""

from __future__ import annotations

from ingest.stages.base import Work
from research.store import collections
from research.store.publisher import publish_apart


class PublishStage:
    name = "publish"

    def pending(self, work: Work) -> bool:
        return collections.state_of(work.catalog).behind

    def run(self, work: Work) -> None:
        work.observer.on_publish()
        publish_apart(work.catalog.paths)
