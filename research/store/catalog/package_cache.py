"""Packages that are kept for a while: one row for each, which alone says whether it may still be served.

Its text stands in the row, or on another server, and then the row has its digest. Whatever takes the row away (a
removed document, a package's record that goes) takes the package out of every cache: without it nothing is looked for
elsewhere.
Writing is part of the caller's transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from research.store.catalog.pages import batched, placeholders
from research.store.catalog.reader import Connection, Reader

_COLUMNS = "package_id, tenant, principal, policy, revision, put_at, expires_at, digest, package"


@dataclass(frozen=True, slots=True)
class CachedRow:
    package_id: str
    tenant: str
    principal: str
    policy: str
    revision: str
    put_at: str
    expires_at: str
    digest: str
    package: bytes


def put_cached(connection: sqlite3.Connection, row: CachedRow) -> None:
    """In the place of the one before. One whose record is gone meanwhile is not kept."""
    connection.execute(
        f"INSERT INTO package_cache ({_COLUMNS}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? FROM packages WHERE package_id = ?"
        " ON CONFLICT (package_id) DO UPDATE SET tenant = excluded.tenant, principal = excluded.principal,"
        " policy = excluded.policy, revision = excluded.revision, put_at = excluded.put_at,"
        " expires_at = excluded.expires_at, digest = excluded.digest, package = excluded.package",
        (*astuple(row), row.package_id),
    )


def get_cached(reader: Reader, package_id: str) -> CachedRow | None:
    row = reader.connection.execute(
        f"SELECT {_COLUMNS} FROM package_cache WHERE package_id = ?", (package_id,)
    ).fetchone()
    if row is None:
        return None
    package_id, tenant, principal, policy, revision, put_at, expires_at, digest = map(str, tuple(row)[:-1])
    text = row[8] if isinstance(row[8], bytes) else b""
    return CachedRow(package_id, tenant, principal, policy, revision, put_at, expires_at, digest, text)


def cached_ids(reader: Reader) -> set[str]:
    return {str(row[0]) for row in reader.connection.execute("SELECT package_id FROM package_cache")}


def expired_ids(connection: Connection, now: str) -> list[str]:
    """Those whose time is over, or that were put later than now: the clock was set back, and tells nothing of them."""
    rows = connection.execute(
        "SELECT package_id FROM package_cache WHERE expires_at <= ? OR put_at > ? ORDER BY package_id", (now, now)
    )
    return [str(row[0]) for row in rows]


def remove_cached(connection: sqlite3.Connection, package_ids: Sequence[str]) -> None:
    for part in batched(list(package_ids)):
        connection.execute(f"DELETE FROM package_cache WHERE package_id IN ({placeholders(part)})", part)


def clear_cached(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM package_cache")
