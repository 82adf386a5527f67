"""The application: routes, errors as problem documents, and what begins and ends with the server.

From outside in: the guard (who may ask, what reaches us at all), the measuring of requests, FastAPI, the routes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

import research
from research.errors import CtxError
from research.service import schemas
from research.service.answers import json_response
from research.service.documents import documents_router
from research.service.problems import MEDIA_TYPE, Problem, problem_of
from research.service.questions import questions_router

if TYPE_CHECKING:
    from research.service.service import Service

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
    """All of it but the guard, which stands before it. `routers` hold what is not about documents and questions;
    `doors` are applications of their own, by their path."""
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
    app.add_exception_handler(CtxError, _on_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.include_router(questions_router(service))
    app.include_router(documents_router(service))
    for router in routers:
        app.include_router(router)
    for path, door in (doors or {}).items():
        app.router.routes.append(Route(path, door, include_in_schema=False))
    _add_state(app, service)
    return app


def _add_state(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["state"], summary="Whether the process answers", response_class=Response)
    async def health() -> Response:
        return json_response({"status": "ok"})

    @app.get("/ready", tags=["state"], summary="Whether the index can be asked", response_class=Response)
    async def ready(request: Request) -> Response:
        if service.stopping.is_set():
            return problem_response(Problem(503, "The server is stopping"), _instance(request))
        if not service.index.exists and service.options.allow_ingest:  # it can be filled, which is what it is there for
            return json_response({"status": "ready", "empty": True})
        try:
            documents, _ = await service.look(lambda index: index.totals())
        except CtxError:  # anybody may ask this, and the reason names the index's folder
            hint = "ask with a token to hear why, or run: ctx doctor"
            return problem_response(Problem(503, "The index cannot be asked", hint=hint), _instance(request))
        return json_response({"status": "ready", "empty": documents == 0})

    @app.get(
        "/api/status",
        tags=["state"],
        summary="What there is to ask",
        response_class=Response,
        responses={200: {"model": schemas.StatusBody}},
    )
    async def status(request: Request) -> Response:
        caller = request.state.caller
        own = service.index.acting_as(caller)
        totals = await service.looking.run(lambda: own.totals() if own.exists else (0, 0))
        return json_response(
            {
                "schema": "ctx.research.status/1",
                "version": research.__version__,
                "documents": totals[0],
                "pages": totals[1],
                "empty": totals[1] == 0,
                "ingest_allowed": service.options.allow_ingest and caller.owner,
                "model": service.model,
                "principal": caller.name,
                "tenant": caller.tenant,
            }
        )


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


def _traced(problem: Problem, request: Request) -> Problem:
    """What goes wrong with a package names its trace, as everything of a package does."""
    if problem.trace or not request.url.path.startswith("/knowledge/"):
        return problem
    return replace(problem, trace=str(getattr(request.state, "traceparent", "")).partition("-")[2].partition("-")[0])


def problem_response(problem: Problem, instance: str = "") -> Response:
    return Response(problem.body(instance), problem.status, dict(problem.headers), MEDIA_TYPE)


def _instance(request: Request) -> str:
    return str(getattr(request.state, "request_id", ""))


async def _on_error(request: Request, error: Exception) -> Response:
    return problem_response(_traced(problem_of(error), request), _instance(request))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = {404: "There is nothing here", 405: "Not with this method"}.get(error.status_code, str(error.detail))
    hint = _INTERFACE if error.status_code in (404, 405) else ""
    problem = Problem(error.status_code, title, hint=hint, headers=error.headers or {})
    return problem_response(problem, _instance(request))


async def _on_invalid(request: Request, error: Exception) -> Response:
    """Which fields are wrong, and why; never the values, which may be megabytes or secrets."""
    assert isinstance(error, RequestValidationError)
    if any(each["type"] == "json_invalid" for each in error.errors()):
        problem = Problem(400, "The body is no JSON", hint=_INTERFACE)
        return problem_response(_traced(problem, request), _instance(request))
    found = [{"field": ".".join(map(str, each["loc"])), "message": str(each["msg"])} for each in error.errors()]
    first = f"{found[0]['field']}: {found[0]['message']}" if found else ""
    problem = Problem(
        422,
        "The request cannot be understood",
        first,
        _INTERFACE,
        errors=found[:_MOST_ERRORS],
    )
    return problem_response(_traced(problem, request), _instance(request))
