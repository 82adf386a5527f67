"""Projections: neighbourhoods that were shown to somebody, kept under an id. Refs alone, no text."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from research.store.catalog.reader import Reader


def store_projection(connection: sqlite3.Connection, projection_id: str, made_at: str, told: Mapping[str, Any]) -> None:
    """Part of the caller's transaction. The same id told again is the newer one."""
    connection.execute(
        "INSERT INTO projections (projection_id, made_at, projection) VALUES (?, ?, ?)"
        " ON CONFLICT (projection_id) DO UPDATE SET made_at = excluded.made_at, projection = excluded.projection",
        (projection_id, made_at, json.dumps(dict(told), ensure_ascii=False, sort_keys=True)),
    )


def projection(reader: Reader, projection_id: str) -> dict[str, Any] | None:
    row = reader.connection.execute(
        "SELECT projection FROM projections WHERE projection_id = ?", (projection_id,)
    ).fetchone()
    return None if row is None else dict(json.loads(row[0]))


def remove_projections(connection: sqlite3.Connection, before: str) -> int:
    """Those that were made before a time (ISO 8601 in UTC). How many there were."""
    row = connection.execute("SELECT COUNT(*) FROM projections WHERE made_at < ?", (before,)).fetchone()
    connection.execute("DELETE FROM projections WHERE made_at < ?", (before,))
    return int(row[0])
