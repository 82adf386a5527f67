"""The routes by which a browser gets its session, and ends it.

A token that is not accepted is told in the same words whatever was wrong with it, and stands in no answer and no log:
bodies are read here by hand, because FastAPI would repeat them in its errors.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from research.service.problems import MEDIA_TYPE, Problem
from research.service.sessions import Sessions, cookie_for, session_ids

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
    router = APIRouter(tags=["login"])

    @router.post(
        "/api/login",
        status_code=204,
        response_class=Response,
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
        response_class=Response,
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
