"""A Redis server that may be there: asked briefly, left alone for a while when it does not answer, never waited for.

Whatever goes wrong with it (gone, slow, full, another program at its address) is an answer that did not come. Its
address may hold a password, so neither it nor what the client says of it is logged.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from research.errors import CtxError, UsageError

if TYPE_CHECKING:
    from redis import Redis

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
