"""Connections that say nothing, say it too slowly or say too much end here, before there is a request.

uvicorn gives a connection all the time in the world for its headers, and all the memory. A thousand that send nothing
would keep everybody else out.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from research.service.options import Limits


def bounded_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """uvicorn's protocol within these limits, for all connections of one server."""
    silent: dict[BoundedProtocol, None] = {}  # those without a request under way, the oldest first

    class BoundedProtocol(HttpToolsProtocol):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._header_bytes = 0
            self._headers_due: asyncio.TimerHandle | None = None
            self._refused = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                # Whoever has waited longest without a word makes room. If all are at work, the newcomer has to go.
                oldest = next(iter(silent), None)
                if oldest is None:
                    self._refuse(503, "too many connections")
                    return
                oldest._end()
            silent[self] = None
            self._await_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            silent.pop(self, None)
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self in silent:
                self._header_bytes += len(data)
                if self._headers_due is None:  # a further request on the same connection
                    self._await_headers()
            if self._refused:
                return
            super().data_received(data)
            if self in silent and self._header_bytes > limits.header_bytes:
                self._refuse(431, "the headers are too large")

        def on_headers_complete(self) -> None:
            silent.pop(self, None)
            self._stop_waiting()
            self._header_bytes = 0
            # They may have come in one piece, together with a body.
            if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > limits.header_bytes:
                self._refuse(431, "the headers are too large")
            else:
                super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if not self._refused:
                super().on_body(body)

        def on_message_complete(self) -> None:
            if not self._refused:
                super().on_message_complete()

        def on_response_complete(self) -> None:
            another = bool(self.pipeline)  # it came before the end of this answer, and begins with it
            super().on_response_complete()
            if not self.transport.is_closing() and not another:
                silent[self] = None

        def _await_headers(self) -> None:
            self._headers_due = self.loop.call_later(limits.header_seconds, self._end)

        def _stop_waiting(self) -> None:
            if self._headers_due is not None:
                self._headers_due.cancel()
                self._headers_due = None

        def _end(self) -> None:
            silent.pop(self, None)
            if not self.transport.is_closing():
                self.transport.abort()

        def _refuse(self, status: int, why: str) -> None:
            if self._refused:
                return
            self._refused = True
            silent.pop(self, None)
            body = why.encode()
            head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[status] + head % len(body) + body)
            self.transport.close()

    return BoundedProtocol
