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
from typing import TYPE_CHECKING

from research.observe import log_failure

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from research.service.asked import Message, Receive, Scope, Send
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
        self._closed = False
        self._toolbox: Toolbox | None = None
        self._beginning: asyncio.Task[StreamableHTTPSessionManager] | None = None
        self._running: asyncio.Task[None] | None = None  # the manager, from its beginning to its end
        self._stopping = asyncio.Event()

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

    def begin_stop(self) -> None:
        """Nothing begins any more, and ingests end in good order: whoever waits for one hears how. Does not wait."""
        self._closed = True
        for ingest in self._toolbox.ingests if self._toolbox is not None else ():
            ingest.stop()

    async def close(self) -> None:
        """End what runs, within a few seconds."""
        self.begin_stop()
        if self._beginning is not None:
            await asyncio.wait([self._beginning])
        if self._toolbox is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._toolbox.stop_ingests)
        self._stopping.set()
        if self._running is not None:
            done, _ = await asyncio.wait([self._running], timeout=_STOP_SECONDS)
            if not done:
                self._running.cancel()
                await asyncio.wait([self._running])

    async def _started(self) -> StreamableHTTPSessionManager | None:
        """The manager, which the first request begins and does not take with it if it goes away; None at the end. One
        that failed is made again."""
        if self._closed:
            return None
        begun = self._beginning
        if begun is None or (begun.done() and (self._running is None or self._running.done())):
            begun = self._beginning = asyncio.create_task(self._begin())
        return await asyncio.shield(begun)

    async def _begin(self) -> StreamableHTTPSessionManager:
        # To import the SDK takes half a second, which the event loop must not stand still for.
        manager = await asyncio.get_running_loop().run_in_executor(None, self._made)
        ready = asyncio.Event()
        self._running = asyncio.create_task(self._run(manager, ready))
        await ready.wait()
        return manager

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
