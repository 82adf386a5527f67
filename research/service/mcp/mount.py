"""`/mcp` of `ctx serve`: the tools over streamable HTTP, loaded with the first request that wants them.

No sessions are kept (the SDK's stateless mode). The tools need none: whatever a call depends on is in the call, and who
asks is in its token. So there is nothing to bound and nothing that outlives a client, a restart loses nobody, and one
client cannot speak in another's session. What that costs is little: a server cannot ask its client back, which ours
never does. Progress comes on the answer's own stream; a client cancels by closing it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from research.observe.log import log_failure

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from research.service.asgi import Message, Receive, Scope, Send
    from research.service.mcp.toolbox import Toolbox

_STOP_SECONDS = 4.0
# Escapes of characters, not behind a backslash that is escaped itself.
_ESCAPES = re.compile(rb"(?<!\\)((?:\\\\)*)((?:\\u[0-9a-fA-F]{4})+)")
_ONLY_POST = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Send requests by POST"}}'


class McpMount:
    """An ASGI application. `make_toolbox` is called once, in a thread, with the first request. The guard outside has
    checked token, Host and Origin by then."""

    def __init__(self, make_toolbox: Callable[[], Toolbox]) -> None:
        self._make_toolbox = make_toolbox
        self._starting = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._toolbox: Toolbox | None = None
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["method"] != "POST":  # no stream of its own is offered, and there is no session to end
            await _answer(send, 405, _ONLY_POST, [(b"allow", b"POST")])
            return
        manager = await self._started()
        if manager is None:
            await _answer(send, 503, _unavailable("The server is stopping"), [])
            return
        await manager.handle_request(scope, receive, _InUtf8(send))

    async def close(self) -> None:
        """End what runs, within a few seconds. Nothing begins afterwards."""
        self._stopping.set()
        async with self._starting:
            running, self._manager = self._running, None
        if running is not None:
            done, _ = await asyncio.wait([running], timeout=_STOP_SECONDS)
            if not done:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running
        if self._toolbox is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._toolbox.stop_ingests)

    async def _started(self) -> StreamableHTTPSessionManager | None:
        """The manager, made by the first request; None once it has ended. One whose task failed is made again."""
        if not self._runs():
            async with self._starting:
                if not self._runs() and not self._stopping.is_set():
                    # To import the SDK takes half a second, which the event loop must not stand still for.
                    manager = await asyncio.get_running_loop().run_in_executor(None, self._made)
                    ready = asyncio.Event()
                    self._running = asyncio.create_task(self._run(manager, ready))
                    await ready.wait()
                    self._manager = manager
        return self._manager

    def _runs(self) -> bool:
        return self._manager is not None and self._running is not None and not self._running.done()

    def _made(self) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        from research.service.mcp.server import build_server

        self._toolbox = self._make_toolbox()
        checked_outside = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        return StreamableHTTPSessionManager(
            build_server(self._toolbox), stateless=True, security_settings=checked_outside
        )

    async def _run(self, manager: StreamableHTTPSessionManager, ready: asyncio.Event) -> None:
        """From beginning to end in one task, as the SDK's task group demands."""
        try:
            async with manager.run():
                ready.set()
                await self._stopping.wait()
        except Exception as error:  # noqa: BLE001  of some request's task; the server goes on
            log_failure("mcp", "the session manager", error)
        finally:
            ready.set()


class _InUtf8:
    """Passes an answer on with its characters as they are. The SDK spells what is not ASCII as `\\u2026`: up to six
    times the tokens for whoever reads the wire, where over pipes and by older versions of the protocol it is UTF-8."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None  # of an answer whose length is not known yet

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_json(message):
            self._start = message
            return
        if message["type"] == "http.response.body" and b"\\u" in message.get("body", b""):
            message = {**message, "body": _ESCAPES.sub(_unescaped, message["body"])}
        if self._start is not None:
            start, self._start = self._start, None
            await self._send(_with_length(start, message))
        await self._send(message)


def _is_json(start: Message) -> bool:
    return any(name == b"content-type" and kind.startswith(b"application/json") for name, kind in start["headers"])


def _with_length(start: Message, body: Message) -> Message:
    """The beginning of an answer with the length that its body has now."""
    if body.get("more_body"):
        return start
    others = [(name, value) for name, value in start["headers"] if name != b"content-length"]
    return {**start, "headers": [*others, (b"content-length", b"%d" % len(body.get("body", b"")))]}


def _unescaped(found: re.Match[bytes]) -> bytes:
    text = json.dumps(json.loads(b'"%s"' % found[2]), ensure_ascii=False)[1:-1]
    try:
        return found[1] + text.encode()
    except UnicodeEncodeError:  # half a character
        return found[0]


def _unavailable(words: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"%s"}}' % words.encode()


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    own = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": own})
    await send({"type": "http.response.body", "body": body})
