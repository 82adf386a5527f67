"""The guard: the outermost application, which every request passes before anything else sees it.

In this order: the request has names (its id, its trace); it is no odd one; it is meant for us (Host); it comes from our
own page, from a page that was named at the start, or from a program (Origin, Sec-Fetch-Site); somebody we know asks
(a bearer token, or the cookie of a session); its body is no larger and no slower than it may be. Every answer goes out
with the headers that keep a browser from doing more with it than is meant, and whatever an application raises becomes a
problem document that tells nothing of its insides.

What it found out is in `scope["state"]`: `request_id`, `traceparent` (the caller's trace with a span id of ours), and
`caller`, which is None on public paths if nobody known asks.
"""

from __future__ import annotations

from research.governance.access import Principal
from research.observe import log_failure, taken_up
from research.service.access import AccessRules, From
from research.service.answer_headers import Headers, cors_headers, preflight_headers
from research.service.asgi import Application, Message, Receive, Scope, Send
from research.service.asked import Asked
from research.service.bodies import BodyLimit, LimitedBody
from research.service.options import Limits
from research.service.problems import Problem, problem_of
from research.service.reply import Reply
from research.service.request_ids import own_traceparent, request_id
from research.service.sessions import Sessions, session_ids
from research.service.tokens import TokenBook

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
