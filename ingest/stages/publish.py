"""The collections, brought up to the catalog."""

from __future__ import annotations

from ingest.stages.base import Work
from research.store.vectors import generations
from research.store.vectors.process import publish_in_subprocess


class PublishStage:
    name = "publish"

    def pending(self, work: Work) -> bool:
        return generations.state_of(work.catalog).behind

    def run(self, work: Work) -> None:
        work.observer.on_publish()
        publish_in_subprocess(work.catalog.paths)
