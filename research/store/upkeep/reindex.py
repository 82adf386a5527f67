"""Rebuilding every derived index from the catalog; nothing is read or embedded again."""

from __future__ import annotations

from dataclasses import dataclass

from research.errors import NothingFoundError
from research.store.catalog.catalog import Catalog
from research.store.files.lock import write_lock
from research.store.files.paths import IndexPaths
from research.store.fulltext.rebuild import rebuild_words
from research.store.vectors import sync_state
from research.store.vectors.process import publish_apart


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What the rebuilt indexes hold."""

    pages: int  # in full-text search
    text_records: int  # chunks in Chroma
    visual_records: int  # pages in Chroma


def reindex(paths: IndexPaths, *, wait: float = 0.0) -> Reindexed:
    """Full-text search and the Chroma collections, made anew. Readers use the old ones until the new are whole."""
    if not paths.exists:
        raise NothingFoundError(f"there is no index at {paths.root}", hint="add documents first: ctx ingest PATH")
    with write_lock(paths, wait=wait), Catalog(paths, writable=True) as catalog:
        pages = rebuild_words(catalog)
        publish_apart(paths, anew=True)
        generation = sync_state.current(catalog)
    return Reindexed(
        pages,
        generation.text_records if generation else 0,
        generation.visual_records if generation else 0,
    )
