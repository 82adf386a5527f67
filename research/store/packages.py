"""Packages in the catalog: what was asked, what was built of it and which things it holds text of; packages that are
kept for a while, one row each; and projections, neighbourhoods shown to somebody, refs alone.

Every statement names tenant and principal: what was built for one is not found by another. A record holds ids and
numbers; text is in the cache alone, and what is removed from the index takes it along (`Packages.leave`).

A kept text stands in the row, or on another server, and then the row has its digest. Whatever takes the row away (a
removed document, a package's record that goes) takes the package out of every cache: without it nothing is looked for
elsewhere. Writing is part of the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from research.store.reader import Repository


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


_COLUMNS = "package_id, request_id, built_at, expires_at, policy, revision, record"


def owner_of(ref: str) -> str:
    """What takes a thing along when it goes: its document, its file, or itself."""
    return ref.partition("#")[0]


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


class Packages(Repository):
    """What was asked for, what was built of it, and what of it is kept."""

    def put_request(self, whose: Whose, stored: StoredRequest) -> None:
        """Part of the caller's transaction, as are all that write."""
        self._db.execute(
            "INSERT INTO package_requests (tenant, principal, request_id, asked_at, request) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (tenant, principal, request_id) DO NOTHING",
            (*astuple(whose), *astuple(stored)),
        )

    def request(self, whose: Whose, request_id: str) -> StoredRequest | None:
        return self._db.record(
            StoredRequest,
            "SELECT request_id, asked_at, request FROM package_requests"
            " WHERE tenant = ? AND principal = ? AND request_id = ?",
            (*astuple(whose), request_id),
        )

    def put(self, whose: Whose, stored: StoredPackage, refs: Iterable[str]) -> None:
        """In place of what was built under this id before; what was said of its sources stays with those it still
        has."""
        row = (*astuple(whose), *astuple(stored))
        self._db.put_rows("packages", f"tenant, principal, {_COLUMNS}", [row], over="package_id")
        number = stored.package_id
        said = dict(
            self._db.execute("SELECT ref, useful FROM package_sources WHERE package_id = ?", (number,)).fetchall()
        )
        self._db.execute("DELETE FROM package_sources WHERE package_id = ?", (number,))
        rows = [(number, ref, owner_of(ref), whose.tenant, said.get(ref, 0)) for ref in dict.fromkeys(refs)]
        self._db.put_rows("package_sources", "package_id, ref, owner, tenant, useful", rows)

    def get(self, whose: Whose, package_id: str) -> StoredPackage | None:
        return self._db.record(
            StoredPackage,
            f"SELECT {_COLUMNS} FROM packages WHERE package_id = ? AND tenant = ? AND principal = ?",
            (package_id, *astuple(whose)),
        )

    def of_request(self, whose: Whose, request_id: str) -> StoredPackage | None:
        return self._db.record(
            StoredPackage,
            f"SELECT {_COLUMNS} FROM packages WHERE tenant = ? AND principal = ? AND request_id = ?"
            " ORDER BY built_at DESC LIMIT 1",
            (*astuple(whose), request_id),
        )

    def recent(self, whose: Whose, limit: int) -> list[StoredPackage]:
        """The one built last first."""
        return self._db.records(
            StoredPackage,
            f"SELECT {_COLUMNS} FROM packages WHERE tenant = ? AND principal = ?"
            " ORDER BY built_at DESC, package_id LIMIT ?",
            (*astuple(whose), limit),
        )

    def give_feedback(self, package_id: str, refs: Sequence[str], useful: int) -> list[str]:
        """What is said of sources of a package: 1 or -1. Those that it has."""
        query, first = "SELECT ref FROM package_sources WHERE package_id = ? AND ref IN", (package_id,)
        there = {row[0] for row in self._db.rows_in(query, refs, first=first)}
        query = "UPDATE package_sources SET useful = ? WHERE package_id = ? AND ref IN"
        self._db.rows_in(query, there, first=(useful, package_id))
        return [ref for ref in dict.fromkeys(refs) if ref in there]

    def uses(self, tenant: str, refs: Sequence[str]) -> dict[str, Uses]:
        """Of those of these that any package of the tenant holds."""
        query = (
            "SELECT ref, COUNT(*), SUM(CASE WHEN useful > 0 THEN 1 ELSE 0 END),"
            " SUM(CASE WHEN useful < 0 THEN 1 ELSE 0 END) FROM package_sources WHERE tenant = ? AND ref IN"
        )
        rows = self._db.rows_in(query, list(dict.fromkeys(refs)), "GROUP BY ref", first=(tenant,))
        return {ref: Uses(int(chosen), int(useful), int(not_useful)) for ref, chosen, useful, not_useful in rows}

    def leave(self, owners: Sequence[str]) -> None:
        """These are gone or changed: packages that hold text of them leave the cache, and their records say so. The
        index holds something else from now on."""
        self._db.labels.content_changed()
        if self._db.execute("SELECT 1 FROM package_sources LIMIT 1").fetchone() is None:
            return
        holding = "package_id IN (SELECT package_id FROM package_sources WHERE owner IN"
        self._db.rows_in(f"DELETE FROM package_cache WHERE {holding}", owners, ")")
        self._db.rows_in(f"UPDATE packages SET revision = '' WHERE {holding}", owners, ")")
        self._db.rows_in("DELETE FROM package_sources WHERE owner IN", owners)

    def lost_documents(self) -> list[str]:
        """Documents that packages hold text of and that are gone, which no run of ours leaves behind."""
        return self._db.column(
            "SELECT DISTINCT owner FROM package_sources s WHERE substr(owner, 1, 5) = 'page:'"
            " AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.doc_id = substr(s.owner, 6)) ORDER BY owner"
        )

    def left(self) -> list[str]:
        """Packages of which something is gone: caches outside of the catalog still hold them, until `forget_left`."""
        return self._db.column("SELECT package_id FROM packages WHERE revision = ''")

    def forget_left(self, package_ids: Sequence[str]) -> None:
        """They are gone from every cache."""
        self._db.rows_in("UPDATE packages SET revision = '-' WHERE revision = '' AND package_id IN", package_ids)

    def prune(self, before: str) -> list[str]:
        """Remove what was built and asked before this time; the ids of the packages."""
        rows = self._db.execute("SELECT package_id FROM packages WHERE built_at < ?", (before,)).fetchall()
        self._db.execute("DELETE FROM packages WHERE built_at < ?", (before,))
        self._db.execute(
            "DELETE FROM package_requests WHERE asked_at < ? AND NOT EXISTS (SELECT 1 FROM packages p WHERE"
            " p.tenant = package_requests.tenant AND p.principal = package_requests.principal"
            " AND p.request_id = package_requests.request_id)",
            (before,),
        )
        return [str(row[0]) for row in rows]

    def put_cached(self, row: CachedRow) -> None:
        """In the place of the one before. One whose record is gone meanwhile is not kept."""
        if self._db.value("SELECT 1 FROM packages WHERE package_id = ?", (row.package_id,)):
            self._db.put_rows("package_cache", _CACHED, [astuple(row)], over="package_id")

    def cached(self, package_id: str) -> CachedRow | None:
        return self._db.record(CachedRow, f"SELECT {_CACHED} FROM package_cache WHERE package_id = ?", (package_id,))

    def expired_ids(self, now: str) -> list[str]:
        """Those whose time is over, or that were put later than now: the clock was set back, and tells nothing of
        them."""
        return self._db.column(
            "SELECT package_id FROM package_cache WHERE expires_at <= ? OR put_at > ? ORDER BY package_id", (now, now)
        )

    def remove_cached(self, package_ids: Sequence[str]) -> None:
        self._db.rows_in("DELETE FROM package_cache WHERE package_id IN", package_ids)

    def put_projection(self, projection_id: str, made_at: str, told: Mapping[str, Any]) -> None:
        """Part of the caller's transaction. The same id told again is the newer one."""
        row = (projection_id, made_at, json.dumps(dict(told), ensure_ascii=False, sort_keys=True))
        self._db.put_rows("projections", "projection_id, made_at, projection", [row], over="projection_id")

    def projection(self, projection_id: str) -> dict[str, Any] | None:
        row = self._db.execute(
            "SELECT projection FROM projections WHERE projection_id = ?", (projection_id,)
        ).fetchone()
        return None if row is None else dict(json.loads(row[0]))

    def remove_projections(self, before: str) -> int:
        """Those that were made before a time (ISO 8601 in UTC). How many there were."""
        row = self._db.execute("SELECT COUNT(*) FROM projections WHERE made_at < ?", (before,)).fetchone()
        self._db.execute("DELETE FROM projections WHERE made_at < ?", (before,))
        return int(row[0])
