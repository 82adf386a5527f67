"""A vector for every commit, in batches, each batch a commit of the catalog."""

from __future__ import annotations

from ingest.commits.items import KIND
from ingest.encoder import RunEncoder, choose_text_encoder
from ingest.report import Observer
from research.settings import Settings
from research.store.catalog import vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.item_writes import write_item_vectors
from research.store.catalog.items import fitting_parts, numbers_without_vectors, pending_items

_BATCH = 256


def choose_encoder(catalog: Catalog, settings: Settings, observer: Observer) -> RunEncoder:
    """The one that the index has. Where the user names another, documents would have to be embedded anew, which is for
    an ingest of documents to do."""
    known = vectors.encoder_of(catalog)
    name = choose_text_encoder(catalog, settings, observer)
    encoder = RunEncoder(known or name, named=bool(settings.text_encoder), timeout=settings.request_timeout)
    if known and known != name:
        observer.on_note(f"commits are embedded by {known}, as this index is; to change it: ctx ingest PATH")
    return encoder


def embed_commits(catalog: Catalog, encoder: RunEncoder, observer: Observer) -> int:
    """How many were given one. What an earlier run left is among them."""
    numbers = numbers_without_vectors(catalog, KIND, encoder.name)
    if not numbers:
        return 0
    loaded = encoder.load()
    if not vectors.encoder_of(catalog):
        encoder.declare(catalog)
    done = 0
    observer.on_embed(done, len(numbers))
    for start in range(0, len(numbers), _BATCH):
        pending = pending_items(catalog, numbers[start : start + _BATCH])
        parts, owners = fitting_parts(pending, loaded)
        write_item_vectors(catalog, loaded.name, owners, loaded.embed(parts))
        done += len(pending)
        observer.on_embed(done, len(numbers))
    return done


def count_pending(catalog: Catalog, encoder: RunEncoder) -> int:
    return len(numbers_without_vectors(catalog, KIND, encoder.name))
