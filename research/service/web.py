"""The web page that people see: its files, the answer without JavaScript, and the page that shows the interface.

The page is HTML, CSS and JavaScript as they lie in web/: nothing is built, nothing is loaded from elsewhere. What it
shows of an index it asks for by the same interface as every program.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import RedirectResponse, Response

from research.errors import CtxError
from research.request import parameters_of, read_request
from research.service import schemas
from research.service.answer_page import answer_page, problem_page
from research.service.answers import json_response
from research.service.problems import Problem, problem_of, refused

if TYPE_CHECKING:
    from research.service.service import Service

_FOLDER = Path(__file__).parent / "web"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Of the package fastapi-offline, whose code is not loaded: it carries what FastAPI's own page would fetch from a CDN.
_SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css")
# Swagger UI sets styles of its own and draws icons from data; all else is as for every page.
_DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_MOST_TEXTS, _LONGEST_TEXT = 2000, 100_000
_SIGN_IN = Problem(401, "Please sign in", hint="open the link that ctx serve printed, or paste a token")


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the page. It may change with the next version: a browser keeps it and asks whether it is the same."""

    content: bytes
    kind: str
    etag: str

    @classmethod
    def of(cls, name: str, content: bytes) -> StaticFile:
        digest = hashlib.sha256(content).hexdigest()[:20]
        return cls(content, _KINDS[Path(name).suffix], f'"{digest}"')

    def response(self, request: Request, policy: str = "") -> Response:
        headers = {"ETag": self.etag, "Cache-Control": "no-cache"}
        if policy:
            headers["Content-Security-Policy"] = policy
        known = (each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(","))
        if self.etag in known:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.kind)


Text = Annotated[str, Field(max_length=_LONGEST_TEXT)]


class MatchesBody(schemas.Body):
    """Texts to look through for the words of a question."""

    question: schemas.Question
    texts: Annotated[list[Text], Field(max_length=_MOST_TEXTS)]


MatchesDocument = schemas.answer("MatchesDocument", matches=list[list[tuple[int, int]]])


def web_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["web"])
    static = {
        path.name: StaticFile.of(path.name, path.read_bytes()) for path in _FOLDER.iterdir() if path.suffix in _KINDS
    }

    @router.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return static["index.html"].response(request)

    @router.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return static["docs.html"].response(request, _DOCS_POLICY)

    @router.get("/static/{name}", include_in_schema=False)
    async def file(name: str, request: Request) -> Response:
        if name in _SWAGGER and name not in static:
            static[name] = StaticFile.of(name, _swagger_file(name))
        if name not in static or name.endswith(".html"):
            raise refused(Problem(404, "There is no such file"))
        return static[name].response(request)

    @router.get("/ask", include_in_schema=False)
    async def ask(request: Request) -> Response:
        return await _ask(service, request)

    @router.post(
        "/api/matches",
        summary="Where the words of a question stand in texts, to be marked",
        response_class=Response,
        responses={200: {"model": MatchesDocument}},
    )
    async def matches(body: MatchesBody) -> Response:
        found = await service.looking.run(lambda: [service.index.matches(text, body.question) for text in body.texts])
        return json_response({"schema": "ctx.research.matches/1", "matches": found})

    return router


def _swagger_file(name: str) -> bytes:
    try:
        return files("fastapi_offline").joinpath("static", name).read_bytes()
    except (ModuleNotFoundError, OSError):
        raise refused(
            Problem(501, "The files of this page are missing", hint="pip install 'ctx-research[serve]'")
        ) from None


async def _ask(service: Service, request: Request) -> Response:
    """The answer as a page of its own, by the fields of the form on the start page; empty ones say nothing."""
    lists = {each.name: each.kind == "texts" for each in parameters_of("GET ask")}
    said = {name: _texts(request, name) for name in lists}
    question = " ".join(said["q"])
    given = {name: texts if lists[name] else texts[0] for name, texts in said.items() if texts} | {"q": question}
    try:
        if getattr(request.state, "caller", None) is None:  # the path is public, so that a form can be shown
            raise refused(_SIGN_IN)
        if not question:
            return RedirectResponse("/", 303)
        context = await service.acting_as(request.state.caller).ask(read_request("GET ask", given))
    except CtxError as error:
        problem = problem_of(error)
        return _page(problem_page(problem, question), problem.status)
    search = str(request.url.query)
    return _page(answer_page(context, partial(service.index.matches, question=context.query), f"/?{search}"), 200)


def _texts(request: Request, name: str) -> list[str]:
    return [text.strip() for text in request.query_params.getlist(name) if text.strip()]


def _page(html: str, status: int) -> Response:
    return Response(html, status, {"Cache-Control": "no-store"}, "text/html; charset=utf-8")
