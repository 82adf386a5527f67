"""The web page that people see: its files, the answer without JavaScript, and the page that shows the interface.

The page is HTML, CSS and JavaScript as they lie in web/: nothing is built, nothing is loaded from elsewhere. What it
shows of an index it asks for by the same interface as every program.

An answer as a plain page, for browsers without JavaScript: quotes, sources, passages, pictures with boxes.

All text is somebody else's and is escaped. It has no scripts and no styles of its own: boxes are drawn as SVG, whose
places are attributes and no styles, because the policy of every page forbids those.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from functools import cache, partial
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Request
from pydantic import Field
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from research.context import grown, html_blocks, html_text
from research.errors import CtxError
from research.models import Confidence
from research.request import parameters_of, read_request
from research.service import schemas
from research.service.problems import Problem, problem_of, refused
from research.service.schemas import Own, Routes, place
from research.text import one_line, phrase

if TYPE_CHECKING:
    from research.markdown import Marker
    from research.models import ResearchContext, SourceDocument
    from research.service.service import Service


_PASSAGES = 3  # of a source
_BEGINNING = 900  # characters of a page without passages
_TITLE = 120


def answer_page(context: ResearchContext, mark: Marker, full_page: str) -> str:
    """`full_page` is the address of the same question on the page that needs JavaScript."""
    return _document(phrase(context.query), _answer(context, mark, full_page))


def problem_page(problem: Problem, question: str) -> str:
    """What went wrong, and what to do next; somebody whom nobody knows gets a form to sign in."""
    return _document(phrase(question), _problem(problem))


def _document(question: str, body: Iterator[str]) -> str:
    return "\n".join([*_beginning(question), *body, "</main></body></html>"]) + "\n"


def _beginning(question: str) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f"<title>{html_text(question[:_TITLE]) or 'ctx'}</title>"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
    for name in ("base", "answer", "plain"):
        yield f'<link rel="stylesheet" href="/static/{name}.css">'
    yield '<link rel="stylesheet" href="/static/print.css" media="print"></head><body>'
    yield '<header class="bar"><a class="brand" href="/">ctx</a></header><main id="main">'
    yield f'<h1 class="hidden-text">{html_text(question) or "ctx"}</h1>'
    yield '<form action="/ask" method="get" role="search"><div class="ask-box">'
    yield '<label for="q" class="hidden-text">Question</label>'
    yield f'<textarea id="q" name="q" rows="2" maxlength="3000" required>{html_text(question)}</textarea>'
    yield '<button class="primary">Ask</button></div></form>'


def _problem(problem: Problem) -> Iterator[str]:
    told = [problem.detail, problem.hint]
    yield f'<div class="problem"><p class="problem-title">{html_text(problem.title)}</p>'
    yield from (f"<p>{html_text(phrase(each))}</p>" for each in told if each)
    yield "</div>"
    if problem.status == 401:
        yield '<form action="/login" method="post" class="row"><label for="token" class="hidden-text">Token</label>'
        yield '<input id="token" name="token" type="password" required autocomplete="off" placeholder="Token">'
        yield '<button class="primary">Sign in</button></form>'


def _answer(context: ResearchContext, mark: Marker, full_page: str) -> Iterator[str]:
    known = context.confidence or Confidence.of(0.0)
    yield '<div id="answer"><div class="answer-head"><div>'
    yield f'<h2 class="level {escape(known.level)}">{known.words}</h2>'
    yield f'<p class="soft">{context.coverage.pages:,} pages were searched.</p></div>'
    yield f'<div class="answer-tools"><a href="{escape(full_page)}">With JavaScript</a></div></div>'
    if known.level != "none":
        yield from _quotes(context, mark)
    yield from _notes(context)
    if context.sources:
        yield '<section class="sources"><h2>Sources</h2><ol>'
        for number, source in context.get_citation_map().items():
            yield from _source(number, source, mark)
        yield "</ol></section>"
    yield "</div>"


def _quotes(context: ResearchContext, mark: Marker) -> Iterator[str]:
    sources = context.get_citation_map()
    yield '<section class="quotes">'
    for quote in context.quotes:
        number = quote.citation
        yield f'<figure><blockquote dir="auto">{html_blocks(quote.in_table, mark)}</blockquote>'
        yield f'<figcaption><a class="cite" href="#source-{number}">{number}</a>'
        yield f'<span class="soft">{_name(sources[number])}</span></figcaption></figure>'
    yield "</section>"


def _notes(context: ResearchContext) -> Iterator[str]:
    sources = context.get_citation_map().items()
    cut = [str(number) for number, source in sources if source.cut and context.truncated]
    notes = [f"Shortened to fit {context.max_tokens:,} tokens: {', '.join(cut)}."] if cut else []
    if context.dropped:
        notes.append(f"Left out to fit {context.max_tokens:,} tokens: {len(context.dropped)} more.")
    failed = [leg for leg in context.coverage.legs if leg.status == "failed"]
    notes += [f"The {leg.name} search failed ({leg.reason}); the answer rests on the others." for leg in failed]
    notes += context.coverage.notes
    if context.coverage.pages_without_vectors:
        notes.append(f"Searched by their words only, so far: {context.coverage.pages_without_vectors:,} pages.")
    if notes:
        yield f'<ul class="notes">{"".join(f"<li>{html_text(phrase(note))}</li>" for note in notes)}</ul>'


def _source(number: int, source: SourceDocument, mark: Marker) -> Iterator[str]:
    where = place(source.doc_id, source.page, image=source.image_path is not None)
    section = next((each.section_path for each in source.passages if each.section_path), source.section_path or "")
    passages = [each.text for each in source.passages if each.text][:_PASSAGES]
    yield f'<li><article class="source" id="source-{number}">{_picture(source, where)}<div class="source-text">'
    yield f'<h3><span class="number">{number}</span><span class="source-name">{_name(source)}</span></h3>'
    if section:
        yield f'<p class="section soft" dir="auto">{html_text(phrase(section))}</p>'
    for text in passages or [source.markdown_content[:_BEGINNING]]:
        yield f'<div class="passage" dir="auto">{html_blocks(text, mark)}</div>'
    links = {"Picture of the page": where["image_url"], "PDF": where["file_url"]}
    shown = "".join(f'<a href="{escape(url)}">{name}</a>' for name, url in links.items() if url)
    yield f'<p class="source-foot soft"><span>relevance {source.relevance_score:.2f}</span>{shown}</p>'
    yield "</div></article></li>"


def _picture(source: SourceDocument, where: dict[str, str | None]) -> str:
    small, large = where["thumbnail_url"], where["image_url"]
    if not small or not large:
        return '<span class="thumbnail"></span>'
    boxes = [each.box for each in source.passages if each.box is not None][:_PASSAGES]
    drawn = "".join(_rectangle(*grown(box)) for box in boxes)
    overlay = f'<svg class="boxes" viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'
    alt = f"Picture of {_name(source)}"
    return f'<a class="thumbnail" href="{escape(large)}"><img alt="{alt}" src="{escape(small)}">{overlay}</a>'


def _rectangle(x0: float, y0: float, x1: float, y1: float) -> str:
    return f'<rect x="{x0:.4f}" y="{y0:.4f}" width="{x1 - x0:.4f}" height="{y1 - y0:.4f}"/>'


def _name(source: SourceDocument) -> str:
    """The file and its page: the physical one, and the printed one where it is another."""
    printed = source.page_label and source.page_label != str(source.page)
    label = f" (printed {one_line(source.page_label)})" if printed else ""
    return html_text(f"{one_line(source.filename)}, page {source.page}{label}")


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
