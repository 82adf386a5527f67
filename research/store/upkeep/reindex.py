"""Rebuilding every derived index from the catalog; nothing is read or embedded again."""

from __future__ import annotations

from research.reports import Reindexed
from research.store.catalog.catalog import Catalog
from research.store.files.lock import write_lock
from research.store.files.paths import IndexPaths
from research.store.fulltext.rebuild import rebuild_words
from research.store.vectors import generations
from research.store.vectors.process import publish_in_subprocess


def reindex(paths: IndexPaths, *, wait: float = 0.0) -> Reindexed:
    """Full-text search and the Chroma collections, made anew. Readers use the old ones until the new are whole."""
    if not paths.exists:
        raise paths.nothing_found()
    with write_lock(paths, wait=wait), Catalog(paths, writable=True) as catalog:
        pages = rebuild_words(catalog)
        publish_in_subprocess(paths, rebuild=True)
        generation = generations.current(catalog)
    return Reindexed(
        pages,
        generation.text_records if generation else 0,
        generation.visual_records if generation else 0,
    )
