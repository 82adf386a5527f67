"""A vector for every part of an item that has none: code, commits, whatever is kept beside documents."""

from __future__ import annotations

from collections.abc import Callable

from ingest.encoder import RunEncoder, choose_text_encoder
from ingest.report import Observer
from ingest.stages.base import Work
from research.settings import Settings
from research.store.catalog import vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.item_writes import write_item_vectors
from research.store.catalog.items import KINDS, count_items, fitting_parts, numbers_without_vectors, pending_items

_BATCH = 128  # items a commit: a few seconds of work, all that a kill can cost


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


def encoder_for_items(catalog: Catalog, settings: Settings, observer: Observer, what: str) -> RunEncoder:
    """The one that the index has, else the one that the user names. Where these differ, documents would have to be
    embedded anew, which is for an ingest of documents to do."""
    known = vectors.encoder_of(catalog)
    name = choose_text_encoder(catalog, settings, observer)
    if known and known != name:
        observer.on_note(f"{what} embedded by {known}, as this index is; to change it: ctx ingest PATH")
    return RunEncoder(known or name, named=bool(settings.text_encoder), timeout=settings.request_timeout)


def embed_items(catalog: Catalog, kind: str, encoder: RunEncoder, progress: Callable[[int, int], object]) -> int:
    """How many items were given their vectors."""
    numbers = numbers_without_vectors(catalog, kind, encoder.name)
    if not numbers:
        return 0
    loaded = encoder.load()
    if not vectors.encoder_of(catalog):
        encoder.declare(catalog)
    progress(0, len(numbers))
    done = 0
    for start in range(0, len(numbers), _BATCH):
        pending = pending_items(catalog, numbers[start : start + _BATCH])
        parts, owners = fitting_parts(pending, loaded)
        if parts:
            write_item_vectors(catalog, loaded.name, owners, loaded.embed(parts))
        done += len(pending)
        progress(done, len(numbers))
    return done
