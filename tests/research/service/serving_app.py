"""The application in this process, as whoever stands behind the guard sees it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
from fastapi import APIRouter

from ingest import start_job
from research.governance import Principal
from research.index import Index
from research.observe import TRACE
from research.service.app import Assembled, assemble, create_app
from research.service.service import ServeOptions, Service
from research.settings import Settings
from tests.soak.running import PATIENCE

OWNER = Principal("me", "", owner=True)


@asynccontextmanager
async def client_of(
    root: Path,
    options: ServeOptions | None = None,
    settings: Settings | None = None,
    *,
    routers: Iterable[APIRouter] = (),
    caller: Principal | None = OWNER,
    trace: str = "",
) -> AsyncIterator[tuple[httpx.AsyncClient, Service]]:
    """A client of a service on this index, asking as somebody, or as nobody."""
    service = Service(Index(root, settings), options)
    app = create_app(service, routers)

    async def behind_the_guard(scope: Any, receive: Any, send: Any) -> None:
        scope.setdefault("state", {}).update(request_id="test-request", caller=caller, traceparent=trace)
        if trace:
            TRACE.set({"traceparent": trace})
        await app(scope, receive, send)

    transport = httpx.ASGITransport(behind_the_guard)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
        try:
            yield client, service
        finally:
            await service.close()


def run(work: Callable[[httpx.AsyncClient, Service], Coroutine[Any, Any, None]], root: Path, **options: Any) -> None:
    async def main() -> None:
        async with client_of(root, **options) as (client, service):
            await work(client, service)

    asyncio.run(main())


def run_client(work: Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]], root: Path, **options: Any) -> None:
    run(lambda client, _: work(client), root, **options)


@dataclass(frozen=True)
class Whole:
    """A whole server without sockets."""

    made: Assembled
    token: str

    @classmethod
    def of(cls, root: Path, folder: Path) -> Self:
        options = ServeOptions(token_file=folder / "token")
        made = assemble(Index(root), options, start_job=start_job)
        return cls(made, (folder / "token").read_text(encoding="ascii").strip())

    async def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}", **options.pop("headers", {})}
        transport = httpx.ASGITransport(self.made.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765", timeout=60) as client:
            return await client.request(method, path, headers=headers, **options)

    def close(self) -> None:
        asyncio.run(self.made.service.close())


def wait_for(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def events(text: str) -> list[tuple[str, Any]]:
    """Server-sent events by name."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found
