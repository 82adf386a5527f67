"""A small application behind the real guard, and ways to send it what no client library would."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp

from research.errors import NothingFoundError
from research.service.guard import AccessRules, Guard
from research.service.problems import add_problem_handlers
from research.service.service import Limits
from research.service.sessions import Sessions, login_router
from research.service.tokens import TokenBook, owner_token

PORT = 7777
HOST = f"127.0.0.1:{PORT}"
SECRET_WORDS = "the secret words of a document"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str:
        """A header that stands there once."""
        [value] = [value for each, value in self.headers if each == name]
        return value

    def __contains__(self, name: str) -> bool:
        return any(each == name for each, _ in self.headers)

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Guarded:
    """The guard, what it is made of, and the application behind it."""

    def __init__(self, folder: Path, *, rules: AccessRules | None = None, limits: Limits | None = None) -> None:
        rules = rules or AccessRules()
        self.token_file, self.store = folder / "serve" / "token", folder / "serve" / "tokens.json"
        self.root = folder / "index"
        self.token = owner_token(self.token_file).reveal() if rules.token_needed else ""
        self.clock = Clock()
        self.tokens = TokenBook(self.root, owner_file=self.token_file if rules.token_needed else None, store=self.store)
        self.sessions = Sessions(self.tokens, clock=self.clock)
        self.reached: list[str] = []  # paths that came through
        self.app = Guard(
            small_app(self.sessions, self.reached),
            rules=rules,
            tokens=self.tokens,
            sessions=self.sessions,
            limits=limits,
        )

    def ask(
        self,
        path: str = "/api/whoami",
        method: str = "GET",
        headers: dict[str, str] | list[tuple[str, str]] | None = None,
        body: bytes = b"",
        *,
        host: str | None = HOST,
        port: int | None = PORT,
        token: str = "",
        kind: str = "http",
    ) -> Answer:
        """One request as a server would hand it over, its path as it stood on the wire."""
        given = list(headers.items()) if isinstance(headers, dict) else headers or []
        given += [("host", host)] if host is not None else []
        given += [("authorization", f"Bearer {token}")] if token else []
        given += [("content-length", str(len(body)))] if body else []
        raw, _, query = path.encode("latin-1").partition(b"?")
        scope = {
            "type": kind,
            "method": method,
            "path": unquote(raw.decode("latin-1")),
            "raw_path": raw,
            "query_string": query,
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given],
            "server": ("127.0.0.1", port) if port is not None else ("/run/ctx.sock", None),
            "scheme": "http",
            "client": None,
            "http_version": "1.1",
            "root_path": "",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
        }
        return asyncio.run(_exchange(self.app, scope, body))

    def owner(self, path: str = "/api/whoami", **options: Any) -> Answer:
        return self.ask(path, token=self.token, **options)


async def _exchange(app: Any, scope: dict[str, Any], body: bytes) -> Answer:
    messages: list[dict[str, Any]] = []
    incoming = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return incoming.pop() if incoming else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await app(scope, receive, send)
    start, *parts = messages
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start.get("headers", ())]
    return Answer(start.get("status", 0), headers, b"".join(part.get("body", b"") for part in parts))


def small_app(sessions: Sessions, reached: list[str]) -> ASGIApp:
    app = FastAPI(redirect_slashes=False)
    app.include_router(login_router(sessions))
    add_problem_handlers(app)

    @app.api_route("/api/whoami", methods=["GET", "POST", "DELETE"])
    @app.get("/health")
    @app.get("/")
    @app.get("/static/{name:path}")
    @app.get("/page")
    async def whoami(request: Request) -> JSONResponse:
        state = request.state
        caller = state.caller
        who = None if caller is None else [caller.name, caller.tenant, caller.owner]
        return JSONResponse({"caller": who, "id": state.request_id, "trace": state.traceparent})

    @app.post("/api/size")
    @app.post("/api/ingest")
    async def size(request: Request) -> dict[str, int]:
        return {"size": sum([len(piece) async for piece in request.stream()])}

    @app.post("/api/late")
    async def late(request: Request) -> StreamingResponse:
        size = len(await request.body())

        async def pieces() -> Any:
            await asyncio.sleep(0.3)
            yield str(size).encode()

        return StreamingResponse(pieces())

    @app.post("/api/echo")
    async def echo(request: Request) -> StreamingResponse:
        """Begins to answer before it has read everything."""
        return StreamingResponse(request.stream())

    @app.post("/api/json")
    async def read_json(request: Request) -> dict[str, int]:
        return {"fields": len(await request.json())}

    @app.get("/own-headers")
    async def own_headers() -> Response:
        headers = {
            "Content-Security-Policy": "default-src 'self'",
            "Cache-Control": "private",
            "Server": "secret/1.0",
            "X-Request-Id": "mine",
            "Referrer-Policy": "unsafe-url",
        }
        return Response("x", headers=headers)

    @app.get("/api/fails")
    async def fails() -> None:
        raise ValueError(SECRET_WORDS)

    @app.get("/api/nothing")
    async def nothing() -> None:
        raise NothingFoundError("there is no such thing", hint="look elsewhere")

    @app.get("/api/breaks-off")
    async def breaks_off() -> StreamingResponse:
        async def pieces() -> Any:
            yield b"a piece"
            raise ValueError(SECRET_WORDS)

        return StreamingResponse(pieces())

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["path"])
        await app(scope, receive, send)

    return noting
