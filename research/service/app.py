"""The application: routes, errors as problem documents, and what begins and ends with the server.

From outside in: the measuring of requests, the guard (who may ask, what reaches us at all), FastAPI, the routes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

import research
from research.conversation import ContextBuilderMetrics, TurnMaker
from research.errors import CtxError
from research.observe import PrometheusRecorder, close_recorder, recorder_for
from research.service import documents, knowledge, questions, schemas, web
from research.service.guard import AccessRules, Guard
from research.service.jobs import JobRunner
from research.service.mcp.mount import McpMount
from research.service.metrics import Measured, measure, metrics_router
from research.service.problems import MEDIA_TYPE, Problem, on_error, problem_response
from research.service.schemas import Own, Routes
from research.service.server import STOP_JOB_SECONDS
from research.service.service import ServeOptions, Service
from research.service.sessions import Sessions, login_router
from research.service.tokens import TokenBook, default_token_file, owner_token
from research.service.uploads import Uploads, ingest_router

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from subprocess import Popen

    from research.index import Index
    from research.settings import Settings

    StartJob = Callable[[Path, Settings, Sequence[Path]], Popen[bytes]]

DESCRIPTION = (
    "Ask an index of documents: quotes, numbered citations, physical page numbers, a token budget that holds."
    " Every request but those for the page itself needs `Authorization: Bearer TOKEN`. Errors are problem documents"
    " (RFC 9457) with a `hint`."
)

_MOST_ERRORS = 20
_INTERFACE = "the interface is described at /docs"
_PROBLEMS = {
    400: "The body is no JSON",
    401: "No token, or not a valid one",
    404: "Nothing found",
    413: "Too large",
    422: "The request cannot be understood",
    429: "Too many questions at once",
    503: "The index cannot be used now",
}


def create_app(
    service: Service, routers: Iterable[APIRouter] = (), doors: Mapping[str, ASGIApp] | None = None
) -> FastAPI:
    """Make all of it but the guard, which stands before it. `routers` need more than the service; `doors` are
    applications of their own, by their path."""
    app = FastAPI(
        title="ctx",
        version=research.__version__,
        description=DESCRIPTION,
        lifespan=_lifespan(service),
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        separate_input_output_schemas=False,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # its spans would hold questions; ours do not
        responses={
            status: {"model": schemas.ProblemDocument, "description": words, "content": {MEDIA_TYPE: {}}}
            for status, words in _PROBLEMS.items()
        },
    )
    for kind in (CtxError, Exception):
        app.add_exception_handler(kind, on_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    for each in (
        questions.router,
        documents.router,
        knowledge.router,
        knowledge.memories,
        web.router,
        router,
        *routers,
    ):
        app.include_router(each)
    for path, door in (doors or {}).items():
        app.router.routes.append(Route(path, door, include_in_schema=False))
    app.state.service = service
    return app


router = Routes(tags=["state"])


@router.answer("GET /health", "Whether the process answers")
async def health() -> Any:
    return {"status": "ok"}


@router.answer("GET /ready", "Whether the index can be asked")
async def ready(request: Request) -> Any:
    service: Service = request.app.state.service
    if service.stopping.is_set():
        return problem_response(Problem(503, "The server is stopping"), request)
    if not service.index.exists and service.options.allow_ingest:  # it can be filled, which is what it is there for
        return {"status": "ready", "empty": True}
    try:
        documents, _ = await service.look(lambda index: index.documents.totals())
    except CtxError:  # anybody may ask this, and the reason names the index's folder
        hint = "ask with a token to hear why, or run: ctx doctor"
        return problem_response(Problem(503, "The index cannot be asked", hint=hint), request)
    return {"status": "ready", "empty": documents == 0}


@router.answer("GET /api/status", "What there is to ask", schemas.StatusBody)
async def status(own: Own) -> Any:
    documents, pages = await own.anyway(
        lambda index: index.documents.totals() if index.exists else (0, 0), question=False
    )
    caller = own.index.acting()
    return {
        "schema": "ctx.research.status/1",
        "version": research.__version__,
        "documents": documents,
        "pages": pages,
        "empty": pages == 0,
        "ingest_allowed": own.options.allow_ingest and caller.owner,
        "model": own.model,
        "principal": caller.name,
        "tenant": caller.tenant,
    }


def _lifespan(service: Service) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for start in service.when_started:
            start()
        service.warm_up()
        try:
            yield
        finally:
            await service.close()

    return lifespan


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = {404: "There is nothing here", 405: "Not with this method"}.get(error.status_code, str(error.detail))
    hint = _INTERFACE if error.status_code in (404, 405) else ""
    problem = Problem(error.status_code, title, hint=hint, headers=error.headers or {})
    return problem_response(problem, request)


async def _on_invalid(request: Request, error: Exception) -> Response:
    """Which fields are wrong, and why; never the values, which may be megabytes or secrets."""
    assert isinstance(error, RequestValidationError)
    if any(each["type"] == "json_invalid" for each in error.errors()):
        problem = Problem(400, "The body is no JSON", hint=_INTERFACE)
        return problem_response(problem, request)
    found = [{"field": ".".join(map(str, each["loc"])), "message": str(each["msg"])} for each in error.errors()]
    first = f"{found[0]['field']}: {found[0]['message']}" if found else ""
    problem = Problem(
        422,
        "The request cannot be understood",
        first,
        _INTERFACE,
        errors=found[:_MOST_ERRORS],
    )
    return problem_response(problem, request)


@dataclass(frozen=True, slots=True)
class Assembled:
    """What a server runs."""

    service: Service
    app: ASGIApp
    sessions: Sessions

    def link(self, address: str) -> str:
        """What opens the page in a browser: its token stands in the fragment, which no browser sends anywhere."""
        if not self.service.options.token_needed:
            return f"{address}/"
        return f"{address}/#token={self.sessions.new_link().reveal()}"


def assemble(index: Index, options: ServeOptions, *, start_job: StartJob) -> Assembled:
    """`start_job` begins the process of an ingest: this package knows nothing of the one that does it. Raises CtxError
    for a token file that is not safe, and for hosts and origins that are none."""
    rules = AccessRules.of(options.hosts, options.cors_origins, token_needed=options.token_needed)
    owner_file = None
    if options.token_needed:
        owner_file = options.token_file or default_token_file()
        owner_token(owner_file)  # made here, where a person sees what is wrong with it
    tokens = TokenBook(index.root, owner_file=owner_file)
    sessions = Sessions(tokens)
    counts = PrometheusRecorder()
    recorder = recorder_for(os.environ, counts)
    index.recorder = recorder
    maker = TurnMaker(index, metrics=ContextBuilderMetrics(counts.registry))
    service = Service(index, options, recorder=recorder, maker=maker)
    service.when_closing.append(partial(asyncio.to_thread, close_recorder, recorder))
    jobs, uploads = _ingests(service, start_job)
    measure(counts, service, jobs)
    routers = [login_router(sessions), metrics_router(counts), ingest_router(jobs, uploads, options)]
    app = create_app(service, routers, {"/mcp": _mcp(service, jobs)})
    guard = Guard(app, rules=rules, tokens=tokens, sessions=sessions, limits=options.limits)
    return Assembled(service, Measured(guard, recorder), sessions)


def _ingests(service: Service, start_job: StartJob) -> tuple[JobRunner, Uploads]:
    """Files that an earlier server took in and did not get to are taken up by this one."""
    index, limits = service.index, service.options.limits
    jobs = JobRunner(partial(start_job, index.root, index.settings), most_waiting=limits.jobs)
    uploads = Uploads(index.paths, jobs, limits)

    service.when_stopping.append(jobs.begin_stop)
    service.when_closing.append(partial(asyncio.to_thread, jobs.stop, STOP_JOB_SECONDS))
    if service.options.allow_ingest:
        service.when_started.append(uploads.resume)
    return jobs, uploads


def _mcp(service: Service, jobs: JobRunner) -> McpMount:
    """Tools for agents take their turns with everybody else. Nothing of the SDK is loaded before somebody wants it."""
    options = service.options

    def make() -> Any:
        from research.service.mcp.server import build_server

        allowed = options.allow_ingest and bool(options.roots)
        return build_server(service, jobs=jobs if allowed else None, roots=options.roots)

    mount = McpMount(make)
    service.when_closing.insert(0, mount.close)
    return mount
