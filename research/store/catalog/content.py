"""Whether what an index holds is still what it was: one text that is another after every change of it.

Documents, items and tags share a counter; labels have one already, and memories one of each tenant.
"""

from __future__ import annotations

import sqlite3

from research.store.catalog.labels import labels_state
from research.store.catalog.memories import tenant_state
from research.store.catalog.reader import Reader

CONTENT = "content"


def content_changed(connection: sqlite3.Connection) -> None:
    """Part of the caller's transaction."""
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, '1')"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)",
        (CONTENT,),
    )


def content_revision(reader: Reader, tenant: str) -> str:
    """Of what a tenant sees. A restored catalog is another one, whatever its counters say."""
    state = tenant_state(reader, tenant)
    memories = f"{state.version}.{state.last_seq}" if state else "0"
    return f"{reader.meta('catalog_id')[:12]}-{reader.meta(CONTENT, '0')}-{labels_state(reader)}-{memories}"
