"""A counter of changes that the collections must follow though no vector changed: a new name, a drawn page."""

from __future__ import annotations

import sqlite3

from research.store.catalog.catalog import Catalog

_KEY = "revision"


def revision_of(catalog: Catalog) -> int:
    return int(catalog.meta(_KEY, "0"))


def revise(connection: sqlite3.Connection) -> None:
    """Count one change; part of the caller's transaction."""
    connection.execute(
        "INSERT INTO meta VALUES (?, '1') ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1", (_KEY,)
    )
