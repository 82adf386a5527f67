"""Bringing the collections up to date when nobody else is writing."""

from __future__ import annotations

from research.errors import BusyError, IndexUnusableError, UsageError
from research.store import collections
from research.store.catalog import Catalog
from research.store.lock import write_lock
from research.store.paths import IndexPaths


def repair_if_behind(paths: IndexPaths) -> bool:
    """Publish what the collections lack. True if that was done; a busy or read-only index is left alone,
    because a search compares the missing vectors one by one anyway."""
    with Catalog(paths) as catalog:
        state = collections.state_of(catalog)
    if not state.behind or (state.generation is None and state.missing == 0):
        return False
    from research.store.publisher import publish_apart

    try:
        with write_lock(paths):
            publish_apart(paths)
    except (BusyError, IndexUnusableError, UsageError, OSError):
        return False
    return True
