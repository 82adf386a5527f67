"""Browsers: a link with a one-time token opens a session, which a cookie carries from then on.

The token stands in the link's fragment, which a browser sends to nobody; our page posts it. It works once and not for
long, so that a history or a screen that somebody sees later opens nothing. Sessions live in memory, as hashes: they end
with the server, with their token, after a week, or after a day that nobody used them.

A cookie is as private as the host: browsers hand those of 127.0.0.1 to every port of it (the name carries ours so that
two servers do not overwrite each other's). Whoever opens pages of other users' servers on the same machine in the same
browser shows them the cookie; a program with a bearer token shows its token to us alone.

The routes by which a browser gets its session, and ends it.

A token that is not accepted is told in the same words whatever was wrong with it, and stands in no answer and no log:
bodies are read here by hand, because FastAPI would repeat them in its errors.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from research.governance import Principal
from research.secret import Secret
from research.service.problems import MEDIA_TYPE, Problem
from research.service.tokens import Grant, TokenBook, digest, new_token, position_of

_LINK_SECONDS = 600.0
_MOST_LINKS = 8  # that nobody has used yet; the oldest go
_MOST_SESSIONS = 64  # those that were used longest ago go
_IDLE_SECONDS = 24 * 3600.0
_LIFE_SECONDS = 7 * 24 * 3600.0
_LONGEST_COOKIE = 128

_WRONG_AT_ONCE = 10
_SECONDS_A_WRONG_ONE = 6.0


@dataclass(frozen=True, slots=True)
class _Session:
    grant: Grant
    opened: float
    used: float


class Sessions:
    """One-time tokens and the sessions of browsers. `clock` is in seconds, and never goes back."""

    def __init__(self, tokens: TokenBook, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._clock = clock
        self._links: OrderedDict[str, float] = OrderedDict()  # hashes, and until when they are good
        self._sessions: OrderedDict[str, _Session] = OrderedDict()  # by hash, the one used last at the end
        self._changing = threading.Lock()
        self.guesses = Guesses(clock)

    def new_link(self) -> Secret:
        """A token for the owner's browser, good once and for ten minutes. There may be several at a time."""
        token = new_token()
        with self._changing:
            self._links[digest(token)] = self._clock() + _LINK_SECONDS
            while len(self._links) > _MOST_LINKS:
                self._links.popitem(last=False)
        return Secret(token)

    def log_in(self, token: str) -> str | None:
        """The id of a new session, for its cookie, in exchange for a one-time or lasting token; None for any other."""
        grant = self._redeem(token) or self._tokens.grant_for(token)
        if grant is None:
            return None
        name, now = secrets.token_urlsafe(32), self._clock()
        with self._changing:
            self._sessions[digest(name)] = _Session(grant, now, now)
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return name

    def caller_for(self, cookies: Sequence[str]) -> Principal | None:
        """Whose session one of these ids is. (A browser may hold several of one name: other ports can set them.)"""
        for name in cookies:
            if 0 < len(name) <= _LONGEST_COOKIE and (session := self._use(digest(name))) is not None:
                return session.grant.caller
        return None

    def log_out(self, cookies: Sequence[str]) -> None:
        with self._changing:
            for name in cookies:
                self._sessions.pop(digest(name), None)

    def _redeem(self, token: str) -> Grant | None:
        """What the owner's token gives, for a one-time token that is still good, and never for the same again."""
        with self._changing:
            found = position_of(digest(token), tuple(self._links))
            if found is None:
                return None
            until = self._links.pop(list(self._links)[found])
        return self._tokens.owner_grant() if self._clock() < until else None

    def _use(self, known_as: str) -> _Session | None:
        """Looked up by hash, whose likeness to another says nothing of the ids: no time is worth measuring here."""
        now = self._clock()
        with self._changing:
            session = self._sessions.get(known_as)
            if session is None:
                return None
            over = now - session.used >= _IDLE_SECONDS or now - session.opened >= _LIFE_SECONDS
            if over or not self._tokens.still_gives(session.grant):
                del self._sessions[known_as]
                return None
            self._sessions[known_as] = replace(session, used=now)
            self._sessions.move_to_end(known_as)
            return session


class Guesses:
    """How many wrong tokens were brought of late: ten at once, then one in six seconds, and the rest are told to wait.

    Only wrong ones are. Everybody on this machine comes from the same address, so a limit that also held back the right
    token would let any stranger lock the owner out. It need not: 256 random bits are found by nobody, however often
    they try. What it does is to stop programs that go on and on, and to say so in the log, once in a while."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = float(_WRONG_AT_ONCE)
        self._at = clock()
        self._told = False

    def too_many(self) -> bool:
        """Note a wrong token, and tell whether there were too many."""
        now = self._clock()
        self._left = min(_WRONG_AT_ONCE, self._left + (now - self._at) / _SECONDS_A_WRONG_ONE)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            self._told = False
            return False
        if not self._told:
            from research.observe import logger_of

            logger_of("service").warning("many wrong tokens were brought to log in")
            self._told = True
        return True

    @property
    def wait_seconds(self) -> int:
        return int(_SECONDS_A_WRONG_ONE)


def cookie_name(port: int | None) -> str:
    return "ctx_session" if port is None else f"ctx_session_{port}"


def cookie_for(name: str, port: int | None, *, https: bool = False, over: bool = False) -> str:
    """The header that gives a browser its session, or with `over` takes it away. Scripts do not see it, and no other
    site makes the browser send it."""
    age = 0 if over else int(_LIFE_SECONDS)
    return (
        f"{cookie_name(port)}={'' if over else name}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict"
        f"{'; Secure' if https else ''}"
    )


def session_ids(cookie_headers: Sequence[str], port: int | None) -> list[str]:
    """The values of our cookie in a request; the first few, if somebody sends many."""
    wanted = f"{cookie_name(port)}="
    parts = [part.strip() for header in cookie_headers for part in header.split(";")]
    return [part.removeprefix(wanted).strip('"') for part in parts if part.startswith(wanted)][:4]


_LONGEST = 4096  # bytes of a body with a token in it
_TRY = "open the link that ctx serve prints; each works once"
_WRONG = Problem(401, "The token is not accepted", hint=_TRY, headers={"WWW-Authenticate": "Bearer"})
_UNREADABLE = Problem(422, "The request holds no token", hint='send {"token": "…"} as JSON')

_TOKEN_SCHEMA = {
    "type": "object",
    "properties": {"token": {"type": "string", "description": "one-time, of the link; or a lasting one"}},
    "required": ["token"],
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    401: {"description": "The token is not accepted"},
    413: {"description": "Too large"},
    415: {"description": "Another kind of body than this takes"},
    422: {"description": "The request holds no token"},
    429: {"description": "Too many wrong tokens"},
}


def login_router(sessions: Sessions) -> APIRouter:
    """`POST /api/login`, `POST /login` for a form, `POST /api/logout`."""
    router = APIRouter(tags=["login"], default_response_class=Response)

    @router.post(
        "/api/login",
        status_code=204,
        summary="Exchange a token for a session's cookie",
        responses=_RESPONSES,
        openapi_extra=_takes("application/json"),
    )
    async def log_in(request: Request) -> Response:
        found = await _token_of(request, "application/json")
        return _enter(sessions, request, found, Response(status_code=204))

    @router.post(
        "/login",
        status_code=303,
        summary="The same for a form without JavaScript",
        responses=_RESPONSES,
        openapi_extra=_takes("application/x-www-form-urlencoded"),
    )
    async def log_in_by_form(request: Request) -> Response:
        found = await _token_of(request, "application/x-www-form-urlencoded")
        entered = _enter(sessions, request, found, Response(status_code=303, headers={"Location": "/"}))
        if entered.status_code != 303 and "text/html" in request.headers.get("accept", ""):
            return Response(_PAGE, entered.status_code, media_type="text/html")
        return entered

    @router.post("/api/logout", status_code=204, response_class=Response, summary="End the session")
    async def log_out(request: Request) -> Response:
        port = _port(request)
        sessions.log_out(session_ids(request.headers.getlist("cookie"), port))
        return Response(status_code=204, headers={"Set-Cookie": cookie_for("", port, over=True)})

    return router


def _takes(kind: str) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {kind: {"schema": _TOKEN_SCHEMA}}}}


async def _token_of(request: Request, kind: str) -> str | Problem:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != kind:
        return Problem(415, "The body is of another kind", hint=f"send it as {kind}")
    body = b""
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > _LONGEST:
                return Problem(413, "The body is too large", f"a token with its name has at most {_LONGEST} bytes")
    except ClientDisconnect:
        return _UNREADABLE
    try:
        token = json.loads(body)["token"] if kind == "application/json" else parse_qs(body.decode("ascii"))["token"][0]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return _UNREADABLE
    return token if isinstance(token, str) else _UNREADABLE


def _enter(sessions: Sessions, request: Request, found: str | Problem, entered: Response) -> Response:
    if isinstance(found, Problem):
        return _told(found, request)
    session = sessions.log_in(found.strip())
    if session is not None:
        entered.headers["Set-Cookie"] = cookie_for(session, _port(request), https=request.url.scheme == "https")
        return entered
    if not sessions.guesses.too_many():
        return _told(_WRONG, request)
    wait = sessions.guesses.wait_seconds
    hint = f"wait {wait} seconds; the right token is accepted at any time"
    return _told(Problem(429, "Too many wrong tokens", hint=hint, headers={"Retry-After": str(wait)}), request)


def _told(problem: Problem, request: Request) -> Response:
    instance = str(getattr(request.state, "request_id", ""))
    return Response(problem.body(instance), problem.status, dict(problem.headers), MEDIA_TYPE)


def _port(request: Request) -> int | None:
    server = request.scope.get("server")
    return server[1] if server else None


_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>ctx: not logged in</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<p>This token is not accepted. <a href="/">Try again</a> with the token from its file, or open a new link of ctx'
    " serve; each works once.</p></html>\n"
)
