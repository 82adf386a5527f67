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
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

import research
from research.conversation import ContextBuilderMetrics, TurnMaker
from research.errors import CtxError
from research.observe import PrometheusRecorder, close_recorder, recorder_for
from research.service import documents, knowledge, questions, schemas, web
from research.service.guard import AccessRules, Guard
from research.service.jobs import JobRunner
from research.service.metrics import Measured, measure, metrics_router
from research.service.problems import MEDIA_TYPE, Problem, add_problem_handlers, problem_response, refused
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

    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from research.index import Index
    from research.settings import Settings

    StartJob = Callable[[Path, Settings, Sequence[Path]], Popen[bytes]]

DESCRIPTION = (
    "Ask an index of documents: quotes, numbered citations, physical page numbers, a token budget that holds."
    " Every request but those for the page itself needs `Authorization: Bearer TOKEN`. Errors are problem documents"
    " (RFC 9457) with a `hint`."
)

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
    applications of their own, which take POST, by their path."""
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
    add_problem_handlers(app)
    for each in (questions, documents, knowledge, web):
        app.include_router(each.router)
    for each_router in (knowledge.memories, router, *routers):
        app.include_router(each_router)
    for path, door in (doors or {}).items():
        app.router.routes.append(Route(path, door, methods=["POST"], include_in_schema=False))
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
    app = create_app(service, routers, {"/mcp": _McpDoor(service, jobs)})
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


class _McpDoor:
    """`/mcp`: the tools for agents over streamable HTTP, where the guard has checked token, Host and Origin.

    No sessions are kept (the SDK's stateless mode): whatever a call depends on is in the call, and who asks is in its
    token. So nothing outlives a client, a restart loses nobody, and one client cannot speak in another's session. What
    that costs is little: a server cannot ask its client back, which ours never does.
    """

    def __init__(self, service: Service, jobs: JobRunner) -> None:
        self._service = service
        allowed = service.options.allow_ingest and bool(service.options.roots)
        self._jobs = jobs if allowed else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._service.stopping.is_set():
            raise refused(Problem(503, "The server is stopping"))
        # To import the SDK takes half a second, which the event loop must not stand still for.
        manager = await asyncio.to_thread(self._manager)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    def _manager(self) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        from research.service.mcp.server import build_server

        checked_outside = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server = build_server(self._service, jobs=self._jobs, roots=self._service.options.roots)
        return StreamableHTTPSessionManager(server, stateless=True, security_settings=checked_outside)
