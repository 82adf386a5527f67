"""Bringing the collections up to date when nobody else is writing."""

from __future__ import annotations

from research.errors import BusyError, IndexUnusableError, UsageError
from research.store.catalog.catalog import Catalog
from research.store.files.lock import write_lock
from research.store.files.paths import IndexPaths
from research.store.vectors import sync_state


def repair_if_behind(paths: IndexPaths) -> bool:
    """Publish what the collections lack. True if that was done; a busy or read-only index is left alone,
    because a search compares the missing vectors one by one anyway."""
    with Catalog(paths) as catalog:
        state = sync_state.state_of(catalog)
    if not state.behind or (state.generation is None and state.missing == 0):
        return False
    from research.store.vectors.process import publish_apart

    try:
        with write_lock(paths):
            publish_apart(paths)
    except (BusyError, IndexUnusableError, UsageError, OSError):
        return False
    return True
