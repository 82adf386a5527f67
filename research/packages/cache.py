"""Texts of packages, kept for their time: on a Redis server that may be there, else in the catalog.

The server is asked briefly, left alone for a while when it does not answer, and never waited for. Whatever goes wrong
with it (gone, slow, full, another program at its address) is an answer that did not come. Its address may hold a
password, so neither it nor what the client says of it is logged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from research.errors import BusyError, CtxError, UsageError
from research.store import CachedRow, IndexPaths, index_id
from research.store import packages as rows

if TYPE_CHECKING:
    from redis import Redis

    from research.settings import Settings
    from research.store import Catalog

T = TypeVar("T")

INSTALL = "pip install 'ctx-research[govern]'"
_SCHEMES = ("redis://", "rediss://", "unix://")
_SECONDS = 0.3  # for a connection, and for an answer
_PAUSE = 5.0  # in which one that failed is not asked


class RedisLink:
    """Connects with the first call. Many threads may use it."""

    def __init__(self, url: str, *, pause: float = _PAUSE, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises UsageError for what is no address of Redis, CtxError without its package."""
        if not url.startswith(_SCHEMES):
            raise UsageError("redis_url is no address of Redis", hint='redis_url = "redis://localhost:6379/0"')
        try:
            from redis import Redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            raise CtxError("Redis is asked by a package that is not installed", hint=INSTALL) from error
        try:
            self._client: Redis = Redis.from_url(
                url,
                socket_timeout=_SECONDS,
                socket_connect_timeout=_SECONDS,
                retry=Retry(NoBackoff(), 0),
                protocol=2,
            )
        except ValueError:  # whose words may hold the address
            raise UsageError(
                "redis_url is no address of Redis", hint='redis_url = "redis://localhost:6379/0"'
            ) from None
        self._pause, self._clock = pause, clock
        self._paused_until: float | None = None
        self._told = False

    def call(self, ask: Callable[[Redis], T]) -> T | None:
        """What it answers; None if it did not."""
        if self._paused_until is not None and self._clock() < self._paused_until:
            return None
        from redis.exceptions import ResponseError

        try:
            answer = ask(self._client)
        except ResponseError as error:  # it is there, and refuses: full, of another type, without rights
            self._tell(error)
            return None
        except Exception as error:  # noqa: BLE001  whatever a server or another program there makes the client raise
            self._paused_until = self._clock() + self._pause
            self._tell(error)
            return None
        self._paused_until, self._told = None, False
        return answer

    def close(self) -> None:
        self._client.close()

    def _tell(self, error: Exception) -> None:
        """Once, until it answers again."""
        if not self._told:
            from research.observe import logger_of

            self._told = True
            logger_of("packages").warning("Redis is not used for now: %s", type(error).__name__)


def shown_address(url: str) -> str:
    """Where it is, without user, password and whatever else an address may hold."""
    from urllib.parse import urlsplit

    try:
        found = urlsplit(url)
        where = found.path if found.scheme == "unix" else ":".join(map(str, filter(None, (found.hostname, found.port))))
    except ValueError:
        return "Redis"
    return f"{found.scheme}://{where}"


def raw(value: Any) -> bytes:
    """An answer as bytes; of anything else nothing."""
    return value if isinstance(value, bytes) else b""


LARGEST = 16 << 20  # bytes of a package; what is larger is built each time
_PUT_SECONDS = 0.2  # that a package, which is ready, waits for whoever writes
_MOST_OWED = 10_000
_AT_ONCE = 500

Now = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Cached:
    """A package as JSON, and what it was built for."""

    package: bytes
    expires_at: datetime
    principal: str
    tenant: str
    policy: str  # revision
    revision: str  # of the index's content


class PackageCache(Protocol):
    """One interface, wherever packages are kept. Many threads may use it."""

    def get(self, package_id: str) -> Cached | None:
        """None if it is not there, or its time is over: then it is gone for good, whatever the clock says later."""

    def put(self, package_id: str, cached: Cached) -> bool:
        """False if it could not be kept, which is no error: the next `get` finds nothing."""

    def remove(self, package_ids: Sequence[str]) -> None:
        """Raises BusyError if the catalog cannot be written just now."""

    def clear(self) -> None: ...

    def sweep(self) -> list[str]:
        """Remove what is over; the ids of those."""

    def close(self) -> None:
        """Let go of connections; the next call opens them anew."""


def cache_for(
    paths: IndexPaths, catalog: Callable[[], Catalog], settings: Settings, *, now: Now | None = None
) -> PackageCache:
    """Redis, if the setting `redis_url` names one, else the catalog."""
    if not settings.redis_url:
        return CatalogCache(catalog, now=now)
    return RedisCache(catalog, RedisLink(settings.redis_url), index_id(paths.root), now=now)


class CatalogCache:
    """Texts stand in the catalog."""

    def __init__(self, catalog: Callable[[], Catalog], *, now: Now | None = None) -> None:
        self._catalog = catalog
        self._now = now or (lambda: datetime.now(UTC))

    def get(self, package_id: str) -> Cached | None:
        with self._catalog().snapshot() as reader:
            row = rows.get_cached(reader, package_id)
        if row is None:
            return None
        now = _utc(self._now())
        if not row.put_at <= now < row.expires_at:
            with suppress(BusyError):
                self.remove([package_id])
            return None
        text = row.package or self._fetch(package_id)
        if sha256(text).hexdigest() != row.digest:
            return None
        try:
            expires = datetime.fromisoformat(row.expires_at)
        except ValueError:  # no time of ours
            return None
        return Cached(text, expires, row.principal, row.tenant, row.policy, row.revision)

    def put(self, package_id: str, cached: Cached) -> bool:
        now, expires = self._now(), _utc(cached.expires_at)
        if expires <= _utc(now) or not 0 < len(cached.package) <= LARGEST:
            return False
        elsewhere = self._keep(package_id, cached.package, (cached.expires_at - now).total_seconds())
        row = CachedRow(
            package_id=package_id,
            tenant=cached.tenant,
            principal=cached.principal,
            policy=cached.policy,
            revision=cached.revision,
            put_at=_utc(now),
            expires_at=expires,
            digest=sha256(cached.package).hexdigest(),
            package=b"" if elsewhere else cached.package,
        )
        try:
            with self._catalog().short_write(wait=_PUT_SECONDS, erase=True) as connection:
                # Whoever keeps one takes away what is over: nobody else may come by to do it.
                rows.remove_cached(connection, rows.expired_ids(connection, row.put_at))
                rows.put_cached(connection, row)
        except CtxError as error:  # somebody writes for long, or the disk is full: the package itself is fine
            from research.observe import log_failure

            log_failure("packages", "a package was not kept", error)
            return False
        return True

    def remove(self, package_ids: Sequence[str]) -> None:
        if package_ids:
            with self._catalog().short_write(erase=True) as connection:
                rows.remove_cached(connection, package_ids)
            self._drop(package_ids)

    def clear(self) -> None:
        with self._catalog().short_write(erase=True) as connection:
            rows.clear_cached(connection)
        self._drop_orphans()

    def sweep(self) -> list[str]:
        now = _utc(self._now())
        with self._catalog().snapshot() as reader:
            over = rows.expired_ids(reader.connection, now)
        self.remove(over)
        self._drop_orphans()
        return over

    def close(self) -> None:
        """The catalog is another's to close."""

    def _keep(self, package_id: str, text: bytes, seconds: float) -> bool:
        """Keep the text elsewhere. False: it has to stand in the catalog."""
        return False

    def _fetch(self, package_id: str) -> bytes:
        """The text that is kept elsewhere, or what is found in its place."""
        return b""

    def _drop(self, package_ids: Sequence[str]) -> None:
        """Let go of texts that are kept elsewhere."""

    def _drop_orphans(self) -> None:
        """The same for all that have no row any more."""


class RedisCache(CatalogCache):
    """Texts stand in Redis, as `ctx:<index id>:package:<id>`; while it does not answer, in the catalog."""

    def __init__(self, catalog: Callable[[], Catalog], link: RedisLink, index: str, *, now: Now | None = None) -> None:
        super().__init__(catalog, now=now)
        self._link = link
        self._prefix = f"ctx:{index}:package:"
        self._owed: set[str] = set()  # removed while it did not answer

    def close(self) -> None:
        self._link.close()

    def _keep(self, package_id: str, text: bytes, seconds: float) -> bool:
        self._settle()
        milliseconds = max(1, math.ceil(seconds * 1000))
        return bool(self._link.call(lambda redis: redis.set(self._key(package_id), text, px=milliseconds)))

    def _fetch(self, package_id: str) -> bytes:
        # Of what somebody else put there no more than a package can have.
        return raw(self._link.call(lambda redis: redis.getrange(self._key(package_id), 0, LARGEST)))

    def _drop(self, package_ids: Sequence[str]) -> None:
        if len(self._owed) < _MOST_OWED:  # the rest goes with its time
            self._owed.update(package_ids)
        self._settle()

    def _settle(self) -> None:
        owed = list(self._owed)
        for start in range(0, len(owed), _AT_ONCE):
            keys = [self._key(package_id) for package_id in owed[start : start + _AT_ONCE]]
            if self._link.call(lambda redis, keys=keys: redis.delete(*keys)) is None:  # type: ignore[misc]
                return
            self._owed.difference_update(owed[start : start + _AT_ONCE])

    def _drop_orphans(self) -> None:
        """Keys are listed before rows: one that comes meanwhile is in neither list."""
        found = self._link.call(lambda redis: [raw(key) for key in redis.scan_iter(f"{self._prefix}*", count=1000)])
        if found:
            with self._catalog().snapshot() as reader:
                known = rows.cached_ids(reader)
            ids = (key.decode("utf-8", "replace").removeprefix(self._prefix) for key in found)
            self._drop([package_id for package_id in ids if package_id not in known])

    def _key(self, package_id: str) -> str:
        return f"{self._prefix}{package_id}"


def _utc(moment: datetime) -> str:
    """So that the order of texts is that of times."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
