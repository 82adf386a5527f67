"""`/mcp` of `ctx serve`: the tools over streamable HTTP, loaded with the first request that wants them.

No sessions are kept (the SDK's stateless mode). The tools need none: whatever a call depends on is in the call, and who
asks is in its token. So there is nothing to bound and nothing that outlives a client, a restart loses nobody, and one
client cannot speak in another's session. What that costs is little: a server cannot ask its client back, which ours
never does. Progress comes on the answer's own stream; a client cancels by closing it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from research.observe import log_failure

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import Receive, Scope, Send

_STOP_SECONDS = 4.0


class McpMount:
    """An ASGI application. `make` is called once, in a thread, with the first request. The guard outside has checked
    token, Host and Origin by then."""

    def __init__(self, make: Callable[[], Server[Any]]) -> None:
        self._make = make
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None  # the manager, from its beginning to its end
        self._ready, self._stopping = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":  # no stream of its own is offered, and there is no session to end
            await _refusal(405, -32600, "Send requests by POST", {"Allow": "POST"})(scope, receive, send)
            return
        if self._running is None and not self._stopping.is_set():
            self._running = asyncio.create_task(self._run())
        if not self._stopping.is_set():
            await self._ready.wait()
        if self._manager is None or self._stopping.is_set():
            await _refusal(503, -32603, "The server is stopping")(scope, receive, send)
            return
        await self._manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """End what runs, within a few seconds."""
        self._stopping.set()
        if self._running is not None:
            done, _ = await asyncio.wait([self._running], timeout=_STOP_SECONDS)
            if not done:
                self._running.cancel()
                await asyncio.wait([self._running])

    async def _run(self) -> None:
        """From beginning to end in one task, as the SDK's task group demands. One that failed is begun again."""
        try:
            # To import the SDK takes half a second, which the event loop must not stand still for.
            manager = await asyncio.to_thread(self._made)
            async with manager.run():
                self._manager = manager
                self._ready.set()
                await self._stopping.wait()
        except Exception as error:  # noqa: BLE001  of some request's task; the server goes on
            log_failure("mcp", "the session manager", error)
        finally:
            self._ready.set()
            self._manager = self._running = None
            self._ready = asyncio.Event()

    def _made(self) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        checked_outside = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        return StreamableHTTPSessionManager(self._make(), stateless=True, security_settings=checked_outside)


def _refusal(status: int, code: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return JSONResponse(error, status, headers)
