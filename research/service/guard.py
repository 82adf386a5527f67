"""The guard: the outermost application, which every request passes before anything else sees it.

In this order: the request has names (its id, its trace); it is no odd one; it is meant for us (Host); it comes from our
own page, from a page that was named at the start, or from a program (Origin, Sec-Fetch-Site); somebody we know asks
(a bearer token, or the cookie of a session); its body is no larger and no slower than it may be. Every answer goes out
with the headers that keep a browser from doing more with it than is meant, and whatever an application raises becomes a
problem document that tells nothing of its insides.

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
from html import escape
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
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

_UPLOADS = frozenset({"/api/ingest"})
_DRAINED_BYTES = 16 * 1024 * 1024
_DRAIN_SECONDS = 0.5

# In the place of the application's own, if it has any.
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
# Unless the application says something else: pictures may be kept by a browser, /docs needs other styles.
_UNLESS_SET = ((b"content-security-policy", CSP.encode()), (b"cache-control", b"no-store"))
_EXPOSED = ((b"access-control-expose-headers", b"X-Request-Id, Traceparent, Retry-After, Mcp-Session-Id"),)
# What a browser is told that asks before a request of another origin.
_PREFLIGHT: RawHeaders = [
    (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, Accept, X-Request-Id, Traceparent, Tracestate, Mcp-Session-Id,"
        b" Mcp-Protocol-Version, Last-Event-Id",
    ),
    (b"access-control-allow-private-network", b"true"),
    (b"access-control-max-age", b"600"),
]
_OURS = frozenset({name for name, _ in _ALWAYS} | {b"server", b"x-request-id", b"traceparent"})


# Each of these means one thing. With two of them, whoever stands before or behind us may choose the other.
_ONCE = (
    "host", "origin", "sec-fetch-site", "authorization", "content-length", "content-type", "transfer-encoding"
)  # fmt: skip
_LENGTH = re.compile(r"\d{1,18}")
# Paths that mean another one to some program that reads them: control characters, backslashes, an encoded slash, a dot
# encoded twice, a percent sign that begins nothing, empty segments; and segments of dots, encoded or not.
_ODD_PATH = re.compile(
    rb"[\x00-\x20\x7f-\xff\\]|%[01][0-9a-f]|%7f|%2f|%5c|%25(?:2e|2f|5c|00)|%(?![0-9a-f]{2})|//"
    rb"|/(?:\.|%2e){1,2}(?:;[^/]*)?(?:/|$)",
    re.IGNORECASE,
)


class Asked:
    """One request, by its headers."""

    def __init__(self, scope: Scope) -> None:
        self.headers = Headers(scope=scope)
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        server = scope.get("server")
        self.port: int | None = server[1] if server else None  # that we listen on; None for a socket file
        self.host, self.origin = self.headers.get("host", ""), self.headers.get("origin")
        self.length = self.headers.get("content-length")  # as it was announced; None if it was not
        self.has_body = "transfer-encoding" in self.headers or (self.length or "0") != "0"
        self.changes_something = self.method not in {"GET", "HEAD", "OPTIONS"}
        self.is_preflight = (
            self.method == "OPTIONS" and self.origin is not None and "access-control-request-method" in self.headers
        )

    @property
    def bearer(self) -> str | None:
        """What is brought as a token; None if nothing is, "" if it is something else."""
        given = self.headers.get("authorization")
        if given is None:
            return None
        scheme, _, token = given.partition(" ")
        return token.strip(" ") if scheme.lower() == "bearer" else ""

    @property
    def is_for_a_person(self) -> bool:
        """Whether somebody looks at what comes back: a page is shown to them, not a document for programs."""
        programs = ("/api/", "/knowledge/", "/mcp", "/metrics")
        return "text/html" in self.headers.get("accept", "") and not self.path.startswith(programs)

    def oddity(self, scope: Scope, longest: int) -> Problem | None:
        """Say why no application should see this request."""
        raw = scope.get("raw_path") or self.path.encode("utf-8", "surrogateescape")
        if len(raw) + len(scope["query_string"]) > longest:
            return Problem(414, "The address is too long", hint="POST takes longer questions", kind="uri-too-long")
        if not raw.startswith(b"/") or _ODD_PATH.search(raw) or not _is_utf8(raw):
            return Problem(400, "The path is odd", "it could be taken for another one", "name the path as /docs has it")
        twice = next((name for name in _ONCE if len(self.headers.getlist(name)) > 1), None)
        if twice:
            return Problem(400, "A header stands there twice", twice)
        if self.length is not None and (not _LENGTH.fullmatch(self.length) or "transfer-encoding" in self.headers):
            return Problem(400, "The length of the body is odd")
        return None


def _is_utf8(raw: bytes) -> bool:
    try:
        unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return False
    return True


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
    def of(
        cls, hosts: Iterable[str] = (), cors_origins: Iterable[str] = (), *, token_needed: bool = True
    ) -> AccessRules:
        """From what a user typed. Raises `UsageError` for what is no host, or no origin."""
        return cls(frozenset(map(_checked_host, hosts)), frozenset(map(_checked_origin, cors_origins)), token_needed)

    def allows_host(self, host: str, port: int | None) -> bool | None:
        """Whether this Host header names us, who listen on `port` (None: on a socket file); None if it is no host."""
        if not host:
            return True if port is None else None
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return None
        name, given = found["name"], found["port"]
        if name in _LOOPBACK and (given is None or port is None or int(given) == port):
            return True
        return name in self.hosts or found.group() in self.hosts

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
    return (
        default is not None
        and bool(authority)
        and authority.removesuffix(default) == host.lower().removesuffix(default)
    )


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


def completed(given: Iterable[tuple[bytes, bytes]], own: RawHeaders) -> RawHeaders:
    """The application's headers with ours: `own` are those of this very request."""
    headers = [(name, value) for name, value in given if name.lower() not in _OURS]
    there = {name.lower() for name, _ in headers}
    headers += _ALWAYS
    headers += [each for each in _UNLESS_SET if each[0] not in there]
    return headers + own


class LimitedBody:
    """`receive` for the application. Counted while it streams, so that a body without a length, or with a false one,
    ends at the limit like any other; what the application has not asked for waits in the connection. When the body
    breaks its limit, `refuse` answers the request, and to the application it looks as if the caller had gone: whatever
    it was doing with the body, it stops."""

    def __init__(
        self, limits: Limits, asked: Asked, receive: Receive, refuse: Callable[[Problem], Awaitable[None]]
    ) -> None:
        form = asked.headers.get("content-type", "").lower().startswith("multipart/form-data")
        upload = asked.path in _UPLOADS and form
        self._most = limits.upload_bytes if upload else limits.body_bytes
        self._seconds = limits.upload_seconds if upload else limits.body_seconds
        self._idle = limits.idle_body_seconds
        self._receive, self._refuse = receive, refuse
        self._size = 0
        self._due: float | None = None  # from the moment when the application begins to read
        self._whole = self._broken = False

    @property
    def too_large(self) -> Problem:
        return Problem(413, "The body is too large", f"at most {self._most} bytes are taken", "send less at a time")

    def objection(self, length: str | None) -> Problem | None:
        """Say why a body of this length need not even be sent."""
        return self.too_large if length is not None and int(length) > self._most else None

    async def receive(self) -> Message:
        if self._broken:
            return {"type": "http.disconnect"}
        if self._whole:
            return await self._receive()  # waits for the caller to go away, however long that takes
        now = asyncio.get_running_loop().time()
        if self._due is None:
            self._due = now + self._seconds
        try:
            async with asyncio.timeout(min(self._due - now, self._idle)):
                message = await self._receive()
        except TimeoutError:
            return await self._break(Problem(408, "The body came too slowly", hint="try again"))
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
        return message if self._size <= self._most else await self._break(self.too_large)

    async def _break(self, problem: Problem) -> Message:
        self._broken = True
        await self._refuse(problem)
        return {"type": "http.disconnect"}


async def drain(receive: Receive) -> None:
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


class Reply:
    """`send` for the application, and the ways to answer without it. `own` are the headers of this very request."""

    def __init__(self, send: Send, receive: Receive, asked: Asked, name: str, own: RawHeaders) -> None:
        self._send, self._receive, self._asked, self._name, self._own = send, receive, asked, name, own
        self.begun = False
        self.refused = False
        self._held: list[Message] = []

    async def send(self, message: Message) -> None:
        if self.refused:  # whatever the application makes of a body that was cut off
            return
        if self._held or (message["type"] == "http.response.start" and message["status"] == 500):
            self._held.append(message)
        else:
            await self._forward(message)

    async def release(self) -> None:
        """Send what was held back: an answer of status 500, for frameworks send one of their own before they raise, and
        ours says more. If the application raises after it, `refuse` answers in its place."""
        for message in self._held:
            await self._forward(message)
        self._held = []

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem, and let nothing of the application through after it. If it had begun to answer, there
        is no way but to end in the middle, upon which the server cuts the connection."""
        if self.begun:
            self.refused = True
            return
        page = problem.status == 401 and self._asked.is_for_a_person
        body = _page(problem) if page else problem.body(self._name)
        headers: RawHeaders = [
            (b"content-type", b"text/html; charset=utf-8" if page else MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
        ]
        unread = self._asked.has_body
        if unread:
            headers.append((b"connection", b"close"))
        await self._start(problem.status, headers)
        await self._send({"type": "http.response.body", "body": body, "more_body": unread})
        if unread:
            if problem.status != 408 and "expect" not in self._asked.headers:
                await drain(self._receive)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _forward(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            message = {**message, "headers": completed(message.get("headers", ()), self._own)}
        await self._send(message)

    async def nothing(self, headers: RawHeaders) -> None:
        await self._start(204, headers)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _start(self, status: int, headers: RawHeaders) -> None:
        self.begun = self.refused = True
        await self._send({"type": "http.response.start", "status": status, "headers": completed(headers, self._own)})


def _page(problem: Problem) -> bytes:
    """The same for somebody who looks at it in a browser."""
    title = escape(problem.title)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>ctx: {title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<p>{title}. <a href="/">Log in</a>, or open the link that ctx serve prints.</p></html>\n'
    ).encode()


# These hold nothing of an index; /ask looks for the caller itself, and shows a form to whom nobody knows.
PUBLIC = frozenset({"/", "/ask", "/docs", "/openapi.json", "/login", "/api/login", "/health", "/ready"})

NO_HOST = Problem(400, "The Host header is missing, or is no host")
FOREIGN_HOST = Problem(
    403,
    "This server does not go by that name",
    hint="use 127.0.0.1 or localhost with its port; other names are allowed at the start: ctx serve --allow-host NAME",
)
FOREIGN_ORIGIN = Problem(
    403,
    "The request comes from another page",
    hint="open the address yourself; pages elsewhere are allowed at the start: ctx serve --cors-origin URL",
)
# The same words whether there is no token, a wrong one, or one that is over.
UNKNOWN_CALLER = Problem(
    401,
    "A token is needed",
    hint="send Authorization: Bearer TOKEN; in a browser, open the link that ctx serve prints",
    headers={"WWW-Authenticate": "Bearer"},
)


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
        if scope["type"] == "http":
            await self._pass(scope, receive, send)
        elif scope["type"] == "websocket":  # nothing of ours speaks it
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._app(scope, receive, send)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Asked(scope)
        state = scope.setdefault("state", {})
        name = state["request_id"] = request_id(asked.headers.get("x-request-id"))
        # A recorder that has a span for this request has said so already (`Measured`).
        state["traceparent"] = state.get("traceparent") or own_traceparent(taken_up(scope["headers"]))
        state["caller"] = None
        whence = self._rules.whence(asked.host, asked.origin, asked.headers.get("sec-fetch-site"))
        own: RawHeaders = [(b"x-request-id", name.encode()), (b"traceparent", state["traceparent"].encode())]
        if self._rules.origins:
            own.append((b"vary", b"Origin"))
        if whence is From.NAMED and asked.origin is not None:  # without credentials: cookies are for our own page
            own += [(b"access-control-allow-origin", asked.origin.encode("latin-1")), *_EXPOSED]
        reply = Reply(send, receive, asked, name, own)
        problem = asked.oddity(scope, self._limits.header_bytes) or self._misdirected(asked, whence)
        if problem is None and asked.is_preflight:
            await reply.nothing(_PREFLIGHT)
            return
        body = LimitedBody(self._limits, asked, receive, reply.refuse)
        if problem is None:
            caller = state["caller"] = self._caller(asked, whence)
            problem = self._unknown(asked, whence, caller) or body.objection(asked.length)
        if problem is not None:
            await reply.refuse(problem)
            return
        await self._run(scope, body.receive if asked.has_body else receive, reply)

    def _misdirected(self, asked: Asked, whence: From) -> Problem | None:
        """Why this request is not meant for us, or may not come from where it does."""
        allowed = self._rules.allows_host(asked.host, asked.port)
        if not allowed:
            return NO_HOST if allowed is None else FOREIGN_HOST
        if whence is From.ELSEWHERE and asked.changes_something:
            return FOREIGN_ORIGIN
        return FOREIGN_ORIGIN if asked.is_preflight and whence is not From.NAMED else None

    def _caller(self, asked: Asked, whence: From) -> Principal | None:
        """Who asks. A cookie, or that nobody needs a token, counts only where no foreign page could have sent it."""
        caller = None
        if asked.bearer is not None:
            caller = self._tokens.caller_for(asked.bearer)
        elif whence is From.HERE:
            caller = self._sessions.caller_for(session_ids(asked.headers.getlist("cookie"), asked.port))
        if caller is None and not self._rules.token_needed and whence is not From.ELSEWHERE:
            return self._tokens.owner
        return caller

    def _unknown(self, asked: Asked, whence: From, caller: Principal | None) -> Problem | None:
        if caller is not None or asked.path in PUBLIC or asked.path.startswith("/static/"):
            return None
        return FOREIGN_ORIGIN if whence is From.ELSEWHERE and asked.bearer is None else UNKNOWN_CALLER

    async def _run(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        """Run the application, whatever becomes of it."""
        gone = False

        async def watched() -> Message:
            nonlocal gone
            message = await receive()
            gone = gone or message["type"] == "http.disconnect"
            return message

        problem = problem_of(RuntimeError())  # of one that ends without an answer
        try:
            await self._app(scope, watched, reply.send)
            await reply.release()
        except Exception as error:  # noqa: BLE001  the outermost application: nobody else would make an answer of it
            problem = problem_of(error)
            if problem.status >= 500 and not gone and not reply.refused:
                # By its type: its message may hold what somebody asked, or a document's text.
                log_failure("service", "a request failed", error)
        if not reply.begun and not gone:
            await reply.refuse(problem)
