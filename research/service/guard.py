"""The guard: the outermost application, which every request passes before anything else sees it.

In this order: the request has names (its id, its trace); it is no odd one; it is meant for us (Host); it comes from our
own page, from a page that was named at the start, or from a program (Origin, Sec-Fetch-Site); somebody we know asks
(a bearer token, or the cookie of a session); its body is no larger and no slower than it may be. Every answer goes out
with the headers that keep a browser from doing more with it than is meant, and whatever an application raises becomes a
problem document that tells nothing of its insides.

What it found out is in `scope["state"]`: `request_id`, `traceparent` (the caller's trace with a span id of ours), and
`caller`, which is None on public paths if nobody known asks.

The headers that every answer carries, so that a browser does with it what is meant, and no more.

The body of a request on its way to the application: no more than it may be, and no slower.

Counted while it streams, so that one without a length, or with a false one, ends at the limit like any other. What the
application has not asked for waits in the connection, and is not in memory.

What goes back to whoever asked: the application's answer with our headers, or a problem in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from html import escape

from research.governance import Principal
from research.observe import log_failure, taken_up
from research.service.asked import (
    AccessRules,
    Application,
    Asked,
    From,
    Message,
    Receive,
    Scope,
    Send,
    own_traceparent,
    request_id,
)
from research.service.problems import MEDIA_TYPE, Problem, problem_of
from research.service.service import Limits
from research.service.sessions import Sessions, session_ids
from research.service.tokens import TokenBook

Headers = list[tuple[bytes, bytes]]

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
_UNLESS_SET = (
    (b"content-security-policy", CSP.encode()),
    (b"cache-control", b"no-store"),
)
_EXPOSED = b"X-Request-Id, Traceparent, Retry-After, Mcp-Session-Id"
_METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"
_ALLOWED_HEADERS = (
    b"Authorization, Content-Type, Accept, X-Request-Id, Traceparent, Tracestate, Mcp-Session-Id, Mcp-Protocol-Version,"
    b" Last-Event-Id"
)
_OURS = frozenset({name for name, _ in _ALWAYS} | {b"server", b"x-request-id", b"traceparent"})


def completed(given: Iterable[tuple[bytes, bytes]], own: Headers) -> Headers:
    """The application's headers with ours: `own` are those of this very request."""
    headers = [(name, value) for name, value in given if name.lower() not in _OURS]
    there = {name.lower() for name, _ in headers}
    headers += _ALWAYS
    headers += [each for each in _UNLESS_SET if each[0] not in there]
    return headers + own


def cors_headers(origin: str | None) -> Headers:
    """For a page of an origin that was named at the start, or None for any other. Without credentials: cookies are for
    our own page."""
    if origin is None:
        return [(b"vary", b"Origin")]
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"Origin"),
    ]


def preflight_headers() -> Headers:
    """What a browser is told that asks before a request of another origin."""
    return [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-allow-private-network", b"true"),
        (b"access-control-max-age", b"600"),
    ]


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


class Reply:
    """`send` for the application, and the ways to answer without it. `own` are the headers of this very request."""

    def __init__(self, send: Send, receive: Receive, asked: Asked, name: str, own: Headers) -> None:
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
        headers: Headers = [
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
            if problem.status != 408 and not self._asked.waits_to_send:
                await drain(self._receive)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _forward(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            message = {**message, "headers": completed(message.get("headers", ()), self._own)}
        await self._send(message)

    async def nothing(self, headers: Headers) -> None:
        await self._start(204, headers)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _start(self, status: int, headers: Headers) -> None:
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
PUBLIC_BELOW = "/static/"

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


def is_public(path: str) -> bool:
    return path in PUBLIC or path.startswith(PUBLIC_BELOW)


class Guard:
    """Stands before an application: `Guard(app, rules=…, tokens=…, sessions=…, limits=…)`."""

    def __init__(
        self,
        app: Application,
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
        asked = Asked.of(scope)
        state = scope.setdefault("state", {})
        name = state["request_id"] = request_id(asked.headers.get(b"x-request-id"))
        # A recorder that has a span for this request has said so already (`Measured`).
        state["traceparent"] = state.get("traceparent") or own_traceparent(taken_up(scope["headers"]))
        state["caller"] = None
        whence = self._rules.whence(asked.host, asked.origin, asked.headers.get(b"sec-fetch-site"))
        own: Headers = [(b"x-request-id", name.encode()), (b"traceparent", state["traceparent"].encode())]
        if self._rules.origins:
            own += cors_headers(asked.origin if whence is From.NAMED else None)
        reply = Reply(send, receive, asked, name, own)
        problem = asked.oddity(scope, self._limits.header_bytes) or self._misdirected(asked, whence)
        if problem is None and asked.is_preflight:
            await reply.nothing(preflight_headers())
            return
        limit = BodyLimit.for_request(self._limits, asked)
        if problem is None:
            caller = state["caller"] = self._caller(asked, whence)
            problem = self._unknown(asked, whence, caller) or limit.objection(asked)
        if problem is not None:
            await reply.refuse(problem)
            return
        await self._run(scope, receive, reply, limit if asked.has_body else None)

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
        elif whence is From.HERE and asked.cookies:
            caller = self._sessions.caller_for(session_ids(asked.cookies, asked.port))
        if caller is None and not self._rules.token_needed and whence is not From.ELSEWHERE:
            return self._tokens.owner
        return caller

    def _unknown(self, asked: Asked, whence: From, caller: Principal | None) -> Problem | None:
        if caller is not None or is_public(asked.path):
            return None
        return FOREIGN_ORIGIN if whence is From.ELSEWHERE and asked.bearer is None else UNKNOWN_CALLER

    async def _run(self, scope: Scope, receive: Receive, reply: Reply, limit: BodyLimit | None) -> None:
        """The application, within its limits, and whatever becomes of it."""
        gone = False

        async def watched() -> Message:
            nonlocal gone
            message = await receive()
            gone = gone or message["type"] == "http.disconnect"
            return message

        inner = watched if limit is None else LimitedBody(watched, limit, reply.refuse).receive
        problem = problem_of(RuntimeError())  # of one that ends without an answer
        try:
            await self._app(scope, inner, reply.send)
            await reply.release()
        except Exception as error:  # noqa: BLE001  the outermost application: nobody else would make an answer of it
            problem = problem_of(error)
            if problem.status >= 500 and not gone and not reply.refused:
                _log(error)
        if not reply.begun and not gone:
            await reply.refuse(problem)


def _log(error: Exception) -> None:
    """By its type: its message may hold what somebody asked, or a document's text."""
    log_failure("service", "a request failed", error)
