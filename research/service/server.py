"""The server itself: where it listens, and how it ends.

It ends in good order: nobody new is let in, streams close, what runs may finish within its time. Signals are the
command line's; it calls `stop`.

Connections that say nothing, say it too slowly or say too much end before there is a request: uvicorn gives each all
the time in the world for its headers, and all the memory, and a thousand that send nothing would keep everybody out.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import stat
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from research.errors import CtxError, UsageError
from research.observe import logger_of
from research.service.service import Limits, ServeOptions

if TYPE_CHECKING:
    from pathlib import Path

    from research.service.service import Service


def bounded_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """uvicorn's protocol within these limits, for all connections of one server."""
    silent: dict[BoundedProtocol, None] = {}  # those without a request under way, the oldest first

    class BoundedProtocol(HttpToolsProtocol):
        _headers_due: asyncio.TimerHandle | None = None
        _header_bytes = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                # Whoever has waited longest without a word makes room. If all are at work, the newcomer has to go.
                next(iter(silent), self).transport.abort()
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._work()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self in silent:
                self._header_bytes += len(data)
                if self._headers_due is None:  # a further request on the same connection
                    self._wait()
            if self.transport.is_closing():
                return
            super().data_received(data)
            if self in silent and self._header_bytes > limits.header_bytes:
                self.send_400_response("the headers are too large")

        def on_headers_complete(self) -> None:
            self._work()
            # They may have come in one piece, together with a body.
            if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > limits.header_bytes:
                self.send_400_response("the headers are too large")
            else:
                super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if not self.transport.is_closing():
                super().on_body(body)

        def on_message_complete(self) -> None:
            if not self.transport.is_closing():
                super().on_message_complete()

        def on_response_complete(self) -> None:
            another = bool(self.pipeline)  # it came before the end of this answer, and begins with it
            super().on_response_complete()
            if not self.transport.is_closing() and not another:
                silent[self] = None

        def _wait(self) -> None:
            silent[self] = None
            self._headers_due = self.loop.call_later(limits.header_seconds, self.transport.abort)

        def _work(self) -> None:
            silent.pop(self, None)
            self._header_bytes = 0
            if self._headers_due is not None:
                self._headers_due.cancel()
                self._headers_due = None

    return BoundedProtocol


LOOPBACK = "127.0.0.1"
_BACKLOG = 1024
_KEEP_ALIVE_SECONDS = 75
STOP_JOB_SECONDS = 3.0  # of the time for the end, for what an ingest has begun


class IndexServer(uvicorn.Server):
    """uvicorn for one service. Made before the loop runs; `stop` may be called from a signal handler or a thread."""

    def __init__(self, service: Service, app: Any, *, on_started: Callable[[], object] | None = None) -> None:
        limits = service.options.limits
        super().__init__(
            uvicorn.Config(
                app,
                http=bounded_protocol(limits),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=int(limits.stop_seconds - STOP_JOB_SECONDS),
                backlog=_BACKLOG,
            )
        )
        self._service = service
        self._on_started = on_started
        self._loop: asyncio.AbstractEventLoop | None = None
        _hush()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        super().run(sockets)
        if not self.started and not self.should_exit:
            raise CtxError("the server could not start", hint="the reason stands in: ctx serve --log-file FILE")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started and self._on_started is not None:
            self._on_started()

    def stop(self) -> None:
        """The first call ends it in good order, the second at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._service.begin_stop)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _hush() -> None:
    """Send what libraries have to say into our log, if there is one, and not to a terminal by itself."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "python_multipart.multipart"):
        logging.getLogger(name).parent = logger_of("server")


def listen(options: ServeOptions) -> socket.socket:
    """A socket on this machine: of a port, or a file that only its owner may use. Raises CtxError if it is taken."""
    return _unix(options.socket) if options.socket is not None else _loopback(options.port)


def address_of(listening: socket.socket) -> str:
    """What a client is told: `http://127.0.0.1:8765`, or the socket's path."""
    name = listening.getsockname()
    return f"http://{name[0]}:{name[1]}" if isinstance(name, tuple) else f"unix:{name}"


def _loopback(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((LOOPBACK, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise CtxError(f"port {port} is taken", hint="choose another with --port N; --port 0 takes any") from None
        if error.errno in (errno.EACCES, errno.EPERM):
            raise CtxError(f"port {port} is not for this user", hint="choose one above 1023 with --port N") from None
        raise CtxError(f"cannot listen on port {port}: {error.strerror}", hint="choose another with --port N") from None
    return made


def _unix(path: Path) -> socket.socket:
    """Nobody can connect before `listen`, and by then the file is its owner's alone."""
    _clear(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(str(path))
        path.chmod(0o600)
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        reason = "its path is too long" if "too long" in str(error) else error.strerror
        raise CtxError(f"cannot listen on {path}: {reason}", hint="choose another with --socket PATH") from None
    return made


def _clear(path: Path) -> None:
    """Remove a socket that a server left behind; whatever else stands there is somebody's."""
    try:
        found = path.lstat()
    except OSError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise UsageError(f"{path} is no socket", hint="choose another with --socket PATH")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        try:
            asking.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise CtxError(f"a server listens on {path} already", hint="stop it, or choose another with --socket PATH")
