"""Packages in the catalog: what was asked, what was built of it and which things it holds text of; packages that are
kept for a while, one row each; and projections, neighbourhoods shown to somebody, refs alone.

Every statement names tenant and principal: what was built for one is not found by another. A record holds ids and
numbers; text is in the cache alone, and what is removed from the index takes it along (`leave_packages`).

A kept text stands in the row, or on another server, and then the row has its digest. Whatever takes the row away (a
removed document, a package's record that goes) takes the package out of every cache: without it nothing is looked for
elsewhere. Writing is part of the caller's transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from research.store.catalog.labels import content_changed
from research.store.catalog.pages import batched, placeholders
from research.store.catalog.reader import Connection, Reader


@dataclass(frozen=True, slots=True)
class Whose:
    """Whom a package was built for."""

    tenant: str
    principal: str


@dataclass(frozen=True, slots=True)
class StoredRequest:
    request_id: str
    asked_at: str
    request: str  # JSON


@dataclass(frozen=True, slots=True)
class StoredPackage:
    """A package as it is kept for months. `revision` of the index's content; empty: something it held is gone."""

    package_id: str
    request_id: str
    built_at: str
    expires_at: str
    policy: str
    revision: str
    record: str  # JSON, without content


@dataclass(frozen=True, slots=True)
class Uses:
    """How often a thing was chosen, and what was said of it."""

    chosen: int = 0
    useful: int = 0
    not_useful: int = 0


def owner_of(ref: str) -> str:
    """What takes a thing along when it goes: its document, its file, or itself."""
    return ref.partition("#")[0]


def put_request(connection: sqlite3.Connection, whose: Whose, stored: StoredRequest) -> None:
    """Part of the caller's transaction, as are all that write."""
    connection.execute(
        "INSERT INTO package_requests (tenant, principal, request_id, asked_at, request) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (tenant, principal, request_id) DO NOTHING",
        (whose.tenant, whose.principal, stored.request_id, stored.asked_at, stored.request),
    )


def get_request(reader: Reader, whose: Whose, request_id: str) -> StoredRequest | None:
    row = reader.connection.execute(
        "SELECT request_id, asked_at, request FROM package_requests"
        " WHERE tenant = ? AND principal = ? AND request_id = ?",
        (whose.tenant, whose.principal, request_id),
    ).fetchone()
    return None if row is None else StoredRequest(str(row[0]), str(row[1]), str(row[2]))


def put_package(connection: sqlite3.Connection, whose: Whose, stored: StoredPackage, refs: Iterable[str]) -> None:
    """In place of what was built under this id before; what was said of its sources stays with those it still has."""
    connection.execute(
        "INSERT INTO packages (package_id, tenant, principal, request_id, built_at, expires_at, policy, revision,"
        " record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (package_id) DO UPDATE SET"
        " built_at = excluded.built_at, expires_at = excluded.expires_at, policy = excluded.policy,"
        " revision = excluded.revision, record = excluded.record",
        (
            stored.package_id,
            whose.tenant,
            whose.principal,
            stored.request_id,
            stored.built_at,
            stored.expires_at,
            stored.policy,
            stored.revision,
            stored.record,
        ),
    )
    rows = connection.execute("SELECT ref, useful FROM package_sources WHERE package_id = ?", (stored.package_id,))
    said = {str(ref): int(useful) for ref, useful in rows.fetchall()}
    connection.execute("DELETE FROM package_sources WHERE package_id = ?", (stored.package_id,))
    connection.executemany(
        "INSERT INTO package_sources (package_id, ref, owner, tenant, useful) VALUES (?, ?, ?, ?, ?)",
        [(stored.package_id, ref, owner_of(ref), whose.tenant, said.get(ref, 0)) for ref in dict.fromkeys(refs)],
    )


_COLUMNS = "package_id, request_id, built_at, expires_at, policy, revision, record"


def get_package(reader: Reader, whose: Whose, package_id: str) -> StoredPackage | None:
    row = reader.connection.execute(
        f"SELECT {_COLUMNS} FROM packages WHERE package_id = ? AND tenant = ? AND principal = ?",
        (package_id, whose.tenant, whose.principal),
    ).fetchone()
    return None if row is None else StoredPackage(*map(str, row))


def package_of_request(reader: Reader, whose: Whose, request_id: str) -> StoredPackage | None:
    row = reader.connection.execute(
        f"SELECT {_COLUMNS} FROM packages WHERE tenant = ? AND principal = ? AND request_id = ?"
        " ORDER BY built_at DESC LIMIT 1",
        (whose.tenant, whose.principal, request_id),
    ).fetchone()
    return None if row is None else StoredPackage(*map(str, row))


def list_packages(reader: Reader, whose: Whose, limit: int) -> list[StoredPackage]:
    """The one built last first."""
    rows = reader.connection.execute(
        f"SELECT {_COLUMNS} FROM packages WHERE tenant = ? AND principal = ?"
        " ORDER BY built_at DESC, package_id LIMIT ?",
        (whose.tenant, whose.principal, limit),
    )
    return [StoredPackage(*map(str, row)) for row in rows]


def give_feedback(connection: sqlite3.Connection, package_id: str, refs: Sequence[str], useful: int) -> list[str]:
    """What is said of sources of a package: 1 or -1. Those that it has."""
    known = []
    for ref in dict.fromkeys(refs):
        there = "SELECT 1 FROM package_sources WHERE package_id = ? AND ref = ?"
        if connection.execute(there, (package_id, ref)).fetchone() is not None:
            known.append(ref)
    connection.executemany(
        "UPDATE package_sources SET useful = ? WHERE package_id = ? AND ref = ?",
        [(useful, package_id, ref) for ref in known],
    )
    return known


def uses_of(reader: Reader, tenant: str, refs: Sequence[str]) -> dict[str, Uses]:
    """Of those of these that any package of the tenant holds."""
    found: dict[str, Uses] = {}
    for part in batched(list(dict.fromkeys(refs))):
        query = (
            "SELECT ref, COUNT(*), SUM(CASE WHEN useful > 0 THEN 1 ELSE 0 END),"
            " SUM(CASE WHEN useful < 0 THEN 1 ELSE 0 END) FROM package_sources"
            f" WHERE tenant = ? AND ref IN ({placeholders(part)}) GROUP BY ref"
        )
        for ref, chosen, useful, not_useful in reader.connection.execute(query, (tenant, *part)):
            found[str(ref)] = Uses(int(chosen), int(useful), int(not_useful))
    return found


def leave_packages(connection: sqlite3.Connection, owners: Sequence[str]) -> None:
    """These are gone or changed: packages that hold text of them leave the cache, and their records say so. The index
    holds something else from now on."""
    content_changed(connection)
    if connection.execute("SELECT 1 FROM package_sources LIMIT 1").fetchone() is None:
        return
    for part in batched(list(dict.fromkeys(owners))):
        holding = f"SELECT package_id FROM package_sources WHERE owner IN ({placeholders(part)})"
        connection.execute(f"DELETE FROM package_cache WHERE package_id IN ({holding})", part)
        connection.execute(f"UPDATE packages SET revision = '' WHERE package_id IN ({holding})", part)
        connection.execute(f"DELETE FROM package_sources WHERE owner IN ({placeholders(part)})", part)


def lost_documents(reader: Reader) -> list[str]:
    """Documents that packages hold text of and that are gone, which no run of ours leaves behind."""
    rows = reader.connection.execute(
        "SELECT DISTINCT owner FROM package_sources s WHERE substr(owner, 1, 5) = 'page:'"
        " AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.doc_id = substr(s.owner, 6)) ORDER BY owner"
    )
    return [str(row[0]) for row in rows]


def left_packages(reader: Reader) -> list[str]:
    """Packages of which something is gone: caches outside of the catalog still hold them, until `forget_left`."""
    return [str(row[0]) for row in reader.connection.execute("SELECT package_id FROM packages WHERE revision = ''")]


def forget_left(connection: sqlite3.Connection, package_ids: Sequence[str]) -> None:
    """They are gone from every cache."""
    for part in batched(package_ids):
        connection.execute(
            f"UPDATE packages SET revision = '-' WHERE revision = '' AND package_id IN ({placeholders(part)})", part
        )


def prune(connection: sqlite3.Connection, before: str) -> list[str]:
    """Remove what was built and asked before this time; the ids of the packages."""
    rows = connection.execute("SELECT package_id FROM packages WHERE built_at < ?", (before,)).fetchall()
    connection.execute("DELETE FROM packages WHERE built_at < ?", (before,))
    connection.execute(
        "DELETE FROM package_requests WHERE asked_at < ? AND NOT EXISTS (SELECT 1 FROM packages p WHERE"
        " p.tenant = package_requests.tenant AND p.principal = package_requests.principal"
        " AND p.request_id = package_requests.request_id)",
        (before,),
    )
    return [str(row[0]) for row in rows]


def owners_of_items(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """What packages know items by, from their kind, parent and key."""
    return [name for kind, parent, key in rows for name in (f"{kind}:{parent}", f"{kind}:{key.partition('#')[0]}")]


_CACHED = "package_id, tenant, principal, policy, revision, put_at, expires_at, digest, package"


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
        f"INSERT INTO package_cache ({_CACHED}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? FROM packages WHERE package_id = ?"
        " ON CONFLICT (package_id) DO UPDATE SET tenant = excluded.tenant, principal = excluded.principal,"
        " policy = excluded.policy, revision = excluded.revision, put_at = excluded.put_at,"
        " expires_at = excluded.expires_at, digest = excluded.digest, package = excluded.package",
        (*astuple(row), row.package_id),
    )


def get_cached(reader: Reader, package_id: str) -> CachedRow | None:
    row = reader.connection.execute(
        f"SELECT {_CACHED} FROM package_cache WHERE package_id = ?", (package_id,)
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
