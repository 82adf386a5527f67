"""Texts of packages, kept for their time: in the catalog, or on a Redis server, and then their row has the digest.

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
from typing import TYPE_CHECKING, Any, TypeVar

from research.errors import BusyError, CtxError, UsageError
from research.store import CachedRow, IndexPaths, index_id

if TYPE_CHECKING:
    from redis import Redis

    from research.settings import Settings
    from research.store import Catalog

T = TypeVar("T")

INSTALL = "pip install 'ctx-research[govern]'"
_SCHEMES = ("redis://", "rediss://", "unix://")
_ADDRESS = 'redis_url = "redis://localhost:6379/0"'
_SECONDS = 0.3  # for a connection, and for an answer
_PAUSE = 5.0  # in which one that failed is not asked


class RedisLink:
    """Connects with the first call. Many threads may use it."""

    def __init__(self, url: str, *, pause: float = _PAUSE) -> None:
        """Raises UsageError for what is no address of Redis, CtxError without its package."""
        if not url.startswith(_SCHEMES):
            raise UsageError("redis_url is no address of Redis", hint=_ADDRESS)
        try:
            from redis import Redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            raise CtxError("Redis is asked by a package that is not installed", hint=INSTALL) from error
        patience: dict[str, Any] = {"socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS}
        try:
            self._client: Redis = Redis.from_url(url, retry=Retry(NoBackoff(), 0), protocol=2, **patience)
        except ValueError:  # whose words may hold the address
            raise UsageError("redis_url is no address of Redis", hint=_ADDRESS) from None
        self._pause = pause
        self._paused_until = -math.inf
        self._told = False

    def call(self, ask: Callable[[Redis], T]) -> T | None:
        """What it answers; None if it did not."""
        if time.monotonic() < self._paused_until:
            return None
        from redis.exceptions import ResponseError

        try:
            answer = ask(self._client)
        except ResponseError as error:  # it is there, and refuses: full, of another type, without rights
            self._tell(error)
            return None
        except Exception as error:  # noqa: BLE001  whatever a server or another program there makes the client raise
            self._paused_until = time.monotonic() + self._pause
            self._tell(error)
            return None
        self._told = False
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


LARGEST = 16 << 20  # bytes of a package; what is larger is built each time
_PUT_SECONDS = 0.2  # that a package, which is ready, waits for whoever writes


@dataclass(frozen=True, slots=True)
class Cached:
    """A package as JSON, and what it was built for."""

    package: bytes
    expires_at: datetime
    principal: str
    tenant: str
    policy: str  # revision
    revision: str  # of the index's content


class PackageCache:
    """Packages by their id. With a link their texts stand in Redis, as `ctx:<index id>:package:<id>`, and while it does
    not answer, in the catalog. Without its row no text is looked for. Many threads may use it."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        link: RedisLink | None = None,
        index: str = "",
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._catalog, self._link, self._now = catalog, link, now
        self._prefix = f"ctx:{index}:package:"

    def get(self, package_id: str) -> Cached | None:
        """Return it; None if it is not there, or its time is over: then it is gone for good, whatever the clock says
        later."""
        with self._catalog().snapshot() as reader:
            row = reader.packages.cached(package_id)
        if row is None:
            return None
        if not row.put_at <= _utc(self._now()) < row.expires_at:
            with suppress(BusyError):
                self.remove([package_id])
            return None
        text: object = row.package
        if not text and self._link is not None:  # of what somebody else put there no more than a package can have
            text = self._link.call(lambda redis: redis.getrange(f"{self._prefix}{package_id}", 0, LARGEST))
        if not isinstance(text, bytes) or sha256(text).hexdigest() != row.digest:
            return None
        try:
            expires = datetime.fromisoformat(row.expires_at)
        except ValueError:  # no time of ours
            return None
        return Cached(text, expires, row.principal, row.tenant, row.policy, row.revision)

    def put(self, package_id: str, cached: Cached) -> bool:
        """Keep it. False if that could not be done, which is no error: the next `get` finds nothing."""
        now, expires, text = self._now(), _utc(cached.expires_at), cached.package
        if expires <= _utc(now) or not 0 < len(text) <= LARGEST:
            return False
        elsewhere = False
        if self._link is not None:
            milliseconds = max(1, math.ceil((cached.expires_at - now).total_seconds() * 1000))
            elsewhere = bool(
                self._link.call(lambda redis: redis.set(f"{self._prefix}{package_id}", text, px=milliseconds))
            )
        row = CachedRow(
            package_id=package_id,
            tenant=cached.tenant,
            principal=cached.principal,
            policy=cached.policy,
            revision=cached.revision,
            put_at=_utc(now),
            expires_at=expires,
            digest=sha256(text).hexdigest(),
            package=b"" if elsewhere else text,
        )
        try:
            with self._catalog().short_write(wait=_PUT_SECONDS, erase=True) as connection:
                # Whoever keeps one takes away what is over: nobody else may come by to do it.
                connection.packages.remove_cached(connection.packages.expired_ids(row.put_at))
                connection.packages.put_cached(row)
        except CtxError as error:  # somebody writes for long, or the disk is full: the package itself is fine
            from research.observe import log_failure

            log_failure("packages", "a package was not kept", error)
            return False
        return True

    def remove(self, package_ids: Sequence[str]) -> bool:
        """Take packages away. False if Redis, which does not answer, still has their texts. Raises BusyError if the
        catalog cannot be written just now."""
        if not package_ids:
            return True
        with self._catalog().short_write(erase=True) as connection:
            connection.packages.remove_cached(package_ids)
        keys = [f"{self._prefix}{package_id}" for package_id in package_ids]
        return self._link is None or self._link.call(lambda redis: redis.delete(*keys)) is not None

    def close(self) -> None:
        """Let go of connections; the next call opens them anew."""
        if self._link is not None:
            self._link.close()


def cache_for(paths: IndexPaths, catalog: Callable[[], Catalog], settings: Settings) -> PackageCache:
    """Make the cache that the setting `redis_url` names, else that of the catalog."""
    if not settings.redis_url:
        return PackageCache(catalog)
    return PackageCache(catalog, RedisLink(settings.redis_url), index_id(paths.root))


def _utc(moment: datetime) -> str:
    """So that the order of texts is that of times."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
