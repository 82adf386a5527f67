"""The guard: the outermost application, which every request passes before anything else sees it.

In this order: the request has names (its id, its trace); it is meant for us (Host); it comes from our own page, from a
page that was named at the start, or from a program (Origin, Sec-Fetch-Site); somebody we know asks (a bearer token, or
the cookie of a session); its body is no larger and no slower than it may be. Every answer goes out with the headers
that keep a browser from doing more with it than is meant.

What it found out is in `scope["state"]`: `request_id`, `traceparent` (the caller's trace with a span id of ours), and
`caller`, which is None on public paths if nobody known asks.

A browser sends requests wherever a page tells it to. Two checks tell our own page from others: the Host header names
us, and no name that somebody pointed at 127.0.0.1 (DNS rebinding); the Origin is our own, or one that was named at the
start. Programs send no Origin. They are told apart by their token alone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from research.errors import UsageError
from research.governance import Principal
from research.observe import log_failure, taken_up
from research.service.metrics import own_traceparent, request_id
from research.service.problems import MEDIA_TYPE, Problem, problem_of
from research.service.service import Limits
from research.service.sessions import Sessions, session_ids
from research.service.tokens import TokenBook

RawHeaders = list[tuple[bytes, bytes]]

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

# In the place of the application's own, if it has any.
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
# Unless the application says something else: pictures may be kept by a browser, /docs needs other styles.
_UNLESS_SET = ((b"content-security-policy", CSP.encode()), (b"cache-control", b"no-store"))
_NAMES = (("x-request-id", "request_id"), ("traceparent", "traceparent"))  # of a request, and where they are kept
_OURS = frozenset({name for name, _ in _ALWAYS} | {b"server", b"x-request-id", b"traceparent"})
# Each of these means one thing. With two of them, whoever stands before or behind us may choose the other.
_ONCE = ("host", "origin", "sec-fetch-site", "authorization", "content-length", "content-type", "transfer-encoding")
# These hold nothing of an index; /ask looks for the caller itself, and shows a form to whom nobody knows.
_PUBLIC = frozenset({"/", "/ask", "/docs", "/openapi.json", "/login", "/api/login", "/health", "/ready"})
_UPLOADS = frozenset({"/api/ingest"})
_DRAINED_BYTES = 16 * 1024 * 1024
_DRAIN_SECONDS = 0.5

_FOREIGN_HOST = Problem(
    403,
    "This server does not go by that name",
    hint="use 127.0.0.1 or localhost with its port; other names are allowed at the start: ctx serve --allow-host NAME",
)
_FOREIGN_ORIGIN = Problem(
    403,
    "The request comes from another page",
    hint="open the address yourself; pages elsewhere are allowed at the start: ctx serve --cors-origin URL",
)
# The same words whether there is no token, a wrong one, or one that is over.
_UNKNOWN_CALLER = Problem(
    401,
    "A token is needed",
    hint="send Authorization: Bearer TOKEN; in a browser, open the link that ctx serve prints",
    headers={"WWW-Authenticate": "Bearer"},
)

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9_-](?:[a-z0-9_.-]{0,251}[a-z0-9_-])?)(?::(?P<port>\d{1,5}))?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class From(Enum):
    """Where a request comes from."""

    HERE = "our own page, or a program that is no browser"
    NAMED = "a page of another origin that was named at the start"
    ELSEWHERE = "any other page"


@dataclass(frozen=True, slots=True)
class AccessRules:
    """What was allowed at the start. `hosts`: names beside those of loopback, with a port or for all ports; `origins`:
    pages that may use a bearer token from a browser; without `token_needed` everybody on this machine is the owner."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    token_needed: bool = True

    @classmethod
    def of(cls, hosts: Iterable[str], origins: Iterable[str] = (), *, token_needed: bool = True) -> AccessRules:
        """Check what somebody typed. Raises UsageError for what is no host or no origin."""
        return cls(frozenset(map(_checked_host, hosts)), frozenset(map(_checked_origin, origins)), token_needed)

    def allows_host(self, host: str, port: int | None) -> bool:
        """Whether a Host header names this server. `port` is the one it listens on, None for a socket file, whose
        clients say whatever they like, or nothing."""
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return port is None and not host
        if found["name"] in _LOOPBACK and (found["port"] is None or port is None or int(found["port"]) == port):
            return True
        return found["name"] in self.hosts or found.group() in self.hosts

    def whence(self, host: str, origin: str | None, site: str | None) -> From:
        """By Host, Origin and Sec-Fetch-Site, of which the last two are missing where no browser asks."""
        if origin is not None and origin.lower() in self.origins:
            return From.NAMED
        if site is not None and site not in {"same-origin", "none"}:
            return From.ELSEWHERE  # "same-site" too: another port of this machine may be another user's
        if origin is None:
            return From.HERE
        if origin == "null":
            # A form on our own page sends it, for our pages tell no referrer; then the browser vouches for the site.
            return From.HERE if site == "same-origin" else From.ELSEWHERE
        return From.HERE if _is_origin_of(origin, host) else From.ELSEWHERE


def _is_origin_of(origin: str, host: str) -> bool:
    """Whether it is the page that we ourselves served under this very name. (https: by a proxy before us.)"""
    scheme, _, authority = origin.lower().partition("://")
    default = _DEFAULT_PORTS.get(scheme)
    if default is None or not authority:
        return False
    return authority.removesuffix(default) == host.lower().removesuffix(default)


def _checked_host(given: str) -> str:
    host = given.strip().lower()
    if not _HOST.fullmatch(host):
        raise UsageError(f"{given!r} is no host name", hint="--allow-host NAME or NAME:PORT, such as box.example")
    return host


def _checked_origin(given: str) -> str:
    origin = given.strip().lower().rstrip("/")
    scheme, _, authority = origin.partition("://")
    if scheme not in _DEFAULT_PORTS or not _HOST.fullmatch(authority):
        raise UsageError(
            f"{given!r} is no origin", hint="name each page's own: --cors-origin https://notes.example (no path, no *)"
        )
    return f"{scheme}://{authority.removesuffix(_DEFAULT_PORTS[scheme])}"


class Guard:
    """Stands before an application: `Guard(app, rules=…, tokens=…, sessions=…, limits=…)`."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        rules: AccessRules,
        tokens: TokenBook,
        sessions: Sessions,
        limits: Limits | None = None,
    ) -> None:
        self._app, self._rules, self._tokens, self._sessions = app, rules, tokens, sessions
        self._limits = limits or Limits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # nothing of ours speaks it
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._rules.origins:  # without credentials: cookies are for our own page
            await self._named(scope, receive, send)
        else:
            await self._pass(scope, receive, send)

    async def _named(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell a browser that pages which were named at the start may ask, and read what is answered."""
        await CORSMiddleware(
            self._pass,
            allow_origins=self._rules.origins,
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=("Authorization", "X-Request-Id", "Traceparent", "Tracestate", "Mcp-Protocol-Version"),
            expose_headers=("X-Request-Id", "Traceparent", "Retry-After"),
            allow_private_network=True,
        )(scope, receive, send)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, state = Headers(scope=scope), scope.setdefault("state", {})
        state["request_id"] = request_id(headers.get("x-request-id"))
        # A recorder that has a span for this request has said so already (`Measured`).
        state["traceparent"] = state.get("traceparent") or own_traceparent(taken_up(scope["headers"]))
        state["caller"] = None
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        reply = _Reply(scope, headers, receive if has_body else None, send)
        body = _LimitedBody(self._limits, scope["path"], headers, receive, reply.refuse)
        problem = self._objection(scope, headers) or body.objection(headers.get("content-length"))
        if problem is not None:
            await reply.refuse(problem)
            return
        try:
            await self._app(scope, body.receive if has_body else receive, reply.send)
            problem = problem_of(RuntimeError())  # of one that ends without an answer
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001  the outermost application: nobody else would make an answer of it
            problem = problem_of(error)
            if problem.status >= 500 and not reply.refused:
                # By its type: its message may hold what somebody asked, or a document's text.
                log_failure("service", "a request failed", error)
        if not reply.begun:
            await reply.refuse(problem)

    def _objection(self, scope: Scope, headers: Headers) -> Problem | None:
        """Say why this request is not meant for us, or may not come from where it does; note who asks."""
        twice = next((name for name in _ONCE if len(headers.getlist(name)) > 1), None)
        if twice:
            return Problem(400, "A header stands there twice", twice)
        host, port = headers.get("host", ""), (scope.get("server") or (None, None))[1]
        if not self._rules.allows_host(host, port):
            return _FOREIGN_HOST
        whence = self._rules.whence(host, headers.get("origin"), headers.get("sec-fetch-site"))
        preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if whence is From.ELSEWHERE and (scope["method"] not in {"GET", "HEAD", "OPTIONS"} or preflight):
            return _FOREIGN_ORIGIN
        bearer = _bearer(headers)
        caller = scope["state"]["caller"] = self._caller(bearer, headers.getlist("cookie"), port, whence)
        if caller is not None or scope["path"] in _PUBLIC or scope["path"].startswith("/static/"):
            return None
        return _FOREIGN_ORIGIN if whence is From.ELSEWHERE and bearer is None else _UNKNOWN_CALLER

    def _caller(self, bearer: str | None, cookies: list[str], port: int | None, whence: From) -> Principal | None:
        """Who asks. A cookie, or that nobody needs a token, counts only where no foreign page could have sent it."""
        caller = None
        if bearer is not None:
            caller = self._tokens.caller_for(bearer)
        elif whence is From.HERE:
            caller = self._sessions.caller_for(session_ids(cookies, port))
        if caller is None and not self._rules.token_needed and whence is not From.ELSEWHERE:
            return self._tokens.owner
        return caller


def _bearer(headers: Headers) -> str | None:
    """What is brought as a token; None if nothing is, "" if it is something else."""
    given = headers.get("authorization")
    if given is None:
        return None
    scheme, _, token = given.partition(" ")
    return token.strip(" ") if scheme.lower() == "bearer" else ""


class _Reply:
    """`send` for the application, and the way to answer without it. `unread` gives the body, if there is one."""

    def __init__(self, scope: Scope, headers: Headers, unread: Receive | None, send: Send) -> None:
        self._send, self._unread, self._state = send, unread, scope["state"]
        self._drains = "expect" not in headers  # else the rest of the body is not even asked for
        self.begun = self.refused = False

    async def send(self, message: Message) -> None:
        if not self.refused:  # else whatever the application makes of a body that was cut off
            await self._forward(message)

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem, and let nothing of the application through after it. If it had begun to answer, there
        is no way but to end in the middle, upon which the server cuts the connection."""
        self.refused = True
        if self.begun:
            return
        body, unread = problem.body(self._state["request_id"]), self._unread
        headers: RawHeaders = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
            *([(b"connection", b"close")] if unread else []),
        ]
        await self._forward({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": unread is not None})
        if unread is not None:
            if self._drains and problem.status != 408:
                await _drain(unread)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _forward(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = [each for each in message.get("headers", ()) if each[0].lower() not in _OURS]
            there = {name.lower() for name, _ in headers}
            headers += [*_ALWAYS, *(each for each in _UNLESS_SET if each[0] not in there)]
            headers += [(name.encode(), self._state[key].encode()) for name, key in _NAMES]
            message = {**message, "headers": headers}
        await self._send(message)


async def _drain(receive: Receive) -> None:
    """Take in the rest of a body that nobody wants, within bounds. A connection that is closed while the other side
    still sends is reset, and then the answer may never be read."""
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while size < _DRAINED_BYTES:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                size += len(message.get("body", b""))


class _LimitedBody:
    """`receive` for the application. Counted while it streams, so that a body without a length, or with a false one,
    ends at the limit like any other; what the application has not asked for waits in the connection. When the body
    breaks its limit, `refuse` answers the request, and to the application it looks as if the caller had gone: whatever
    it was doing with the body, it stops."""

    def __init__(
        self,
        limits: Limits,
        path: str,
        headers: Headers,
        receive: Receive,
        refuse: Callable[[Problem], Awaitable[None]],
    ) -> None:
        upload = path in _UPLOADS and headers.get("content-type", "").lower().startswith("multipart/form-data")
        self._most = limits.upload_bytes if upload else limits.body_bytes
        self._seconds = limits.upload_seconds if upload else limits.body_seconds
        self._idle = limits.idle_body_seconds
        self._receive, self._refuse = receive, refuse
        self._size = 0
        self._due: float | None = None  # from the moment when the application begins to read
        self._whole = self._broken = False

    def objection(self, length: str | None) -> Problem | None:
        """Say why a body of this length need not even be sent."""
        return self._too_large if length is not None and int(length) > self._most else None

    @property
    def _too_large(self) -> Problem:
        return Problem(413, "The body is too large", f"at most {self._most} bytes are taken", "send less at a time")

    async def receive(self) -> Message:
        if self._broken:
            return {"type": "http.disconnect"}
        if self._whole:
            return await self._receive()  # waits for the caller to go away, however long that takes
        now = asyncio.get_running_loop().time()
        self._due = self._due or now + self._seconds
        try:
            async with asyncio.timeout(min(self._due - now, self._idle)):
                message = await self._receive()
        except TimeoutError:
            return await self._break(Problem(408, "The body came too slowly", hint="try again"))
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
        return message if self._size <= self._most else await self._break(self._too_large)

    async def _break(self, problem: Problem) -> Message:
        self._broken = True
        await self._refuse(problem)
        return {"type": "http.disconnect"}
