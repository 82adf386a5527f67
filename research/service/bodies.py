"""The body of a request on its way to the application: no more than it may be, and no slower.

Counted while it streams, so that one without a length, or with a false one, ends at the limit like any other. What the
application has not asked for waits in the connection, and is not in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from research.service.asgi import Message, Receive
from research.service.asked import Asked
from research.service.options import Limits
from research.service.problems import Problem

_UPLOADS = frozenset({"/api/ingest"})
_DRAINED_BYTES = 16 * 1024 * 1024
_DRAIN_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """`seconds` for all of it, `idle_seconds` for each piece."""

    size: int
    seconds: float
    idle_seconds: float

    @classmethod
    def for_request(cls, limits: Limits, asked: Asked) -> BodyLimit:
        if asked.path in _UPLOADS and asked.headers.get(b"content-type", "").lower().startswith("multipart/form-data"):
            return cls(limits.upload_bytes, limits.upload_seconds, limits.idle_body_seconds)
        return cls(limits.body_bytes, limits.body_seconds, limits.idle_body_seconds)

    def objection(self, asked: Asked) -> Problem | None:
        """Why the body need not even be sent."""
        return self.too_large() if asked.length is not None and asked.length > self.size else None

    def too_large(self) -> Problem:
        return Problem(413, "The body is too large", f"at most {self.size} bytes are taken", "send less at a time")

    def too_slow(self) -> Problem:
        return Problem(408, "The body came too slowly", hint="try again")


class LimitedBody:
    """`receive` for the application. When the body breaks its limit, `refuse` answers the request, and to the
    application it looks as if the caller had gone: whatever it was doing with the body, it stops."""

    def __init__(self, receive: Receive, limit: BodyLimit, refuse: Callable[[Problem], Awaitable[None]]) -> None:
        self._receive, self._limit, self._refuse = receive, limit, refuse
        self._size = 0
        self._due: float | None = None  # from the moment when the application begins to read
        self._whole = False
        self._broken = False

    async def receive(self) -> Message:
        if self._broken:
            return {"type": "http.disconnect"}
        if self._whole:
            return await self._receive()  # waits for the caller to go away, however long that takes
        now = asyncio.get_running_loop().time()
        if self._due is None:
            self._due = now + self._limit.seconds
        try:
            async with asyncio.timeout(min(self._due - now, self._limit.idle_seconds)):
                message = await self._receive()
        except TimeoutError:
            return await self._break(self._limit.too_slow())
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
        if self._size > self._limit.size:
            return await self._break(self._limit.too_large())
        return message

    async def _break(self, problem: Problem) -> Message:
        self._broken = True
        await self._refuse(problem)
        return {"type": "http.disconnect"}


async def drain(receive: Receive) -> None:
    """Take in the rest of a body that nobody wants, within bounds. A connection that is closed while the other side
    still sends is reset, and then the answer may never be read."""
    size = 0
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while size < _DRAINED_BYTES:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                size += len(message.get("body", b""))
    except TimeoutError:
        return
