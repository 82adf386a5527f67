"""The web page that people see: its files, the answer without JavaScript, and the page that shows the interface.

The page is HTML, CSS and JavaScript as they lie in web/: nothing is built, nothing is loaded from elsewhere. What it
shows of an index it asks for by the same interface as every program.
"""

from __future__ import annotations

import mimetypes
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Request
from pydantic import Field
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from research.context import Shown, answer_html, answer_view
from research.errors import CtxError
from research.request import parameters_of, read_request
from research.service import schemas
from research.service.problems import Problem, problem_of, refused
from research.service.schemas import Own, Routes, place

if TYPE_CHECKING:
    from research.context import SourceView
    from research.markdown import Marker
    from research.models import ResearchContext
    from research.service.service import Service


def answer_page(context: ResearchContext, mark: Marker, full_page: str) -> str:
    """The answer for a browser without JavaScript. `full_page` is the address of the same question on the page with."""
    view = answer_view(context, option="max_tokens=")
    return answer_html(view, mark, _shown, full_page=full_page)


def problem_page(problem: Problem, question: str) -> str:
    """What went wrong, and what to do next; somebody whom nobody knows gets a form to sign in."""
    return answer_html(None, lambda _: (), lambda _: Shown(), problem=problem, question=question)


def _shown(each: SourceView) -> Shown:
    source = each.source
    where = place(source.doc_id, source.page, image=source.image_path is not None)
    links = {"Picture of the page": where["image_url"], "PDF": where["file_url"]} if each.page else {}
    return Shown(
        where["thumbnail_url"] or "",
        where["image_url"] or "",
        links=tuple((name, url) for name, url in links.items() if url),
    )


_FOLDER = Path(__file__).parent / "web"
# Of the package fastapi-offline, whose code is not loaded: it carries what FastAPI's own page would fetch from a CDN.
_SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css")
# Swagger UI sets styles of its own and draws icons from data; all else is as for every page.
_DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_MOST_TEXTS, _LONGEST_TEXT = 2000, 100_000
_SIGN_IN = Problem(401, "Please sign in", hint="open the link that ctx serve printed, or paste a token")


class _Kept(StaticFiles):
    """Files that may change with the next version: a browser keeps them and asks whether they are the same."""

    def file_response(self, *args: Any, **more: Any) -> Response:
        response = super().file_response(*args, **more)
        response.headers["Cache-Control"] = "no-cache"
        return response


mimetypes.add_type("text/javascript", ".js")  # before Python 3.12 it is another

Text = Annotated[str, Field(max_length=_LONGEST_TEXT)]


class MatchesBody(schemas.Body):
    """Texts to look through for the words of a question."""

    question: schemas.Question
    texts: Annotated[list[Text], Field(max_length=_MOST_TEXTS)]


MatchesDocument = schemas.answer("MatchesDocument", matches=list[list[tuple[int, int]]])


router = Routes(tags=["web"])
_static = _Kept(directory=_FOLDER)


@router.get("/", include_in_schema=False)
async def start(request: Request) -> Response:
    return await _static.get_response("index.html", request.scope)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    response = await _static.get_response("docs.html", request.scope)
    response.headers["Content-Security-Policy"] = _DOCS_POLICY
    return response


@router.get("/static/{name}", include_in_schema=False)
async def file(name: str, request: Request) -> Response:
    if name in _SWAGGER:
        return await _swagger().get_response(name, request.scope)
    if name.endswith(".html"):
        raise refused(Problem(404, "There is no such file"))
    return await _static.get_response(name, request.scope)


@router.answer("POST /api/matches", "Where the words of a question stand in texts, to be marked", MatchesDocument)
async def matches(body: MatchesBody, own: Own) -> Any:
    found = await own.anyway(
        lambda index: [index.documents.matches(text, body.question) for text in body.texts], question=False
    )
    return {"schema": "ctx.research.matches/1", "matches": found}


@cache
def _swagger() -> StaticFiles:
    if find_spec("fastapi_offline") is None:
        hint = "pip install 'ctx-research[serve]'"
        raise refused(Problem(501, "The files of this page are missing", hint=hint))
    return _Kept(packages=[("fastapi_offline", "static")])


@router.get("/ask", include_in_schema=False)
async def ask(request: Request) -> Response:
    """The answer as a page of its own, by the fields of the form on the start page; empty ones say nothing."""
    service: Service = request.app.state.service
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
    return _page(
        answer_page(context, partial(service.index.documents.matches, question=context.query), f"/?{search}"), 200
    )


def _texts(request: Request, name: str) -> list[str]:
    return [text.strip() for text in request.query_params.getlist(name) if text.strip()]


def _page(html: str, status: int) -> Response:
    return Response(html, status, {"Cache-Control": "no-store"}, "text/html; charset=utf-8")
