"""Browsers: a link with a one-time token opens a session, which a cookie carries from then on.

The token stands in the link's fragment, which a browser sends to nobody; our page posts it. It works once and not for
long, so that a history or a screen that somebody sees later opens nothing. Sessions live in memory, as hashes: they end
with the server, with their token, after a week, or after a day that nobody used them.

A cookie is as private as the host: browsers hand those of 127.0.0.1 to every port of it (the name carries ours so that
two servers do not overwrite each other's). Whoever opens pages of other users' servers on the same machine in the same
browser shows them the cookie; a program with a bearer token shows its token to us alone.

The routes by which a browser gets its session, and ends it.

A token that is not accepted is told in the same words whatever was wrong with it, and stands in no answer and no log.
There is no limit to wrong ones: 256 random bits are found by nobody, and one would let a stranger lock the owner out.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Form, Request
from pydantic import Field
from starlette.responses import Response

from research.governance import Principal
from research.secret import Secret
from research.service.problems import Problem, problem_response
from research.service.schemas import Body, Routes
from research.service.tokens import Grant, TokenBook, digest, new_token

_LINK_SECONDS = 600.0
_MOST_SESSIONS = 64  # those that were used longest ago go
_IDLE_SECONDS = 24 * 3600.0
_LIFE_SECONDS = 7 * 24 * 3600.0


@dataclass(slots=True)
class _Session:
    grant: Grant
    opened: float
    used: float


class Sessions:
    """One-time tokens and the sessions of browsers, by their hashes: what they are like says nothing of the ids, so no
    time is worth measuring. Of one event loop, and whoever makes a link before it runs. `clock` never goes back."""

    def __init__(self, tokens: TokenBook, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._clock = clock
        self._links: dict[str, float] = {}  # until when they are good
        self._sessions: OrderedDict[str, _Session] = OrderedDict()  # the one used last at the end

    def new_link(self) -> Secret:
        """A token for the owner's browser, good once and for ten minutes. There may be several at a time."""
        token = new_token()
        self._links[digest(token)] = self._clock() + _LINK_SECONDS
        return Secret(token)

    def log_in(self, token: str) -> str | None:
        """The id of a new session, for its cookie, in exchange for a one-time or lasting token; None for any other."""
        now = self._clock()
        linked = now < self._links.pop(digest(token), 0.0)
        grant = (self._tokens.owner_grant() if linked else None) or self._tokens.grant_for(token)
        if grant is None:
            return None
        name = secrets.token_urlsafe(32)
        self._sessions[digest(name)] = _Session(grant, now, now)
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return name

    def caller_for(self, cookies: Sequence[str]) -> Principal | None:
        """Whose session one of these ids is. (A browser may hold several of one name: other ports can set them.)"""
        now = self._clock()
        for known_as in map(digest, cookies):
            session = self._sessions.get(known_as)
            if session is None:
                continue
            over = now - session.used >= _IDLE_SECONDS or now - session.opened >= _LIFE_SECONDS
            if not over and self._tokens.still_gives(session.grant):
                session.used = now
                self._sessions.move_to_end(known_as)
                return session.grant.caller
            del self._sessions[known_as]
        return None

    def log_out(self, cookies: Sequence[str]) -> None:
        for name in cookies:
            self._sessions.pop(digest(name), None)


def cookie_name(port: int | None) -> str:
    return "ctx_session" if port is None else f"ctx_session_{port}"


def set_session(response: Response, name: str, request: Request) -> None:
    """Give a browser its session, or with an empty one take it away. Scripts do not see it, and no other site makes the
    browser send it."""
    response.set_cookie(
        cookie_name(_port(request)), name, max_age=int(_LIFE_SECONDS) if name else 0, httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip


def session_ids(cookie_headers: Sequence[str], port: int | None) -> list[str]:
    """The values of our cookie in a request; the first few, if somebody sends many."""
    wanted = f"{cookie_name(port)}="
    parts = [part.strip() for header in cookie_headers for part in header.split(";")]
    return [part.removeprefix(wanted).strip('"') for part in parts if part.startswith(wanted)][:4]


_WRONG = Problem(
    401,
    "The token is not accepted",
    hint="open the link that ctx serve prints; each works once",
    headers={"WWW-Authenticate": "Bearer"},
)
_RESPONSES = {401: {"description": "The token is not accepted"}}
Token = Annotated[str, Field(max_length=512, description="one-time, of the link; or a lasting one")]


class LoginBody(Body):
    token: Token


def login_router(sessions: Sessions) -> Routes:
    """`POST /api/login`, `POST /login` for a form, `POST /api/logout`."""
    router = Routes(tags=["login"])

    def enter(token: str, request: Request, entered: Response) -> Response:
        session = sessions.log_in(token.strip())
        if session is None:
            return problem_response(_WRONG, request)
        set_session(entered, session, request)
        return entered

    @router.answer("POST /api/login", "Exchange a token for a session's cookie", status=204, responses=_RESPONSES)
    async def log_in(body: LoginBody, request: Request) -> Response:
        return enter(body.token, request, Response(status_code=204))

    @router.answer("POST /login", "The same for a form without JavaScript", status=303, responses=_RESPONSES)
    async def log_in_by_form(token: Annotated[Token, Form()], request: Request) -> Response:
        entered = enter(token, request, Response(status_code=303, headers={"Location": "/"}))
        if entered.status_code != 303 and "text/html" in request.headers.get("accept", ""):
            return Response(_PAGE, entered.status_code, media_type="text/html")
        return entered

    @router.answer("POST /api/logout", "End the session", status=204)
    async def log_out(request: Request) -> Response:
        sessions.log_out(session_ids(request.headers.getlist("cookie"), _port(request)))
        response = Response(status_code=204)
        set_session(response, "", request)
        return response

    return router


def _port(request: Request) -> int | None:
    server = request.scope.get("server")
    return server[1] if server else None


_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>ctx: not logged in</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<p>This token is not accepted. <a href="/">Try again</a> with the token from its file, or open a new link of ctx'
    " serve; each works once.</p></html>\n"
)
