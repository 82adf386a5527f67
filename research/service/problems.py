"""Errors as problem documents (RFC 9457): what went wrong, and the next thing to do.

    {"type": "urn:ctx:problem:nothing-found", "title": "Nothing found", "status": 404,
     "detail": "no document has the id 1234", "hint": "see them all with: ctx list", "instance": "<request id>"}

Messages of our own errors are written for users and pass as they are. Of any other exception nobody hears more than
that there was one: its words may quote a document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from research.errors import (
    BusyError,
    CtxError,
    EncoderUnavailable,
    IndexUnusableError,
    ModelError,
    NothingFoundError,
    ProblemError,
    UntrustedError,
    UsageError,
)

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

MEDIA_TYPE = "application/problem+json"
_INTERFACE = "the interface is described at /docs"
_MOST_ERRORS = 20

_WORDS = {
    413: "too-large",
    422: "invalid",
    500: "internal",
    503: "unavailable",
    504: "timeout",
    507: "disk-full",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem document, and the headers that go with it."""

    status: int
    title: str
    detail: str = ""
    hint: str = ""
    kind: str = ""  # the last part of its type; by the status where nothing is said
    errors: Sequence[Mapping[str, Any]] = ()  # which part of a request is wrong
    trace: str = ""  # the id of the trace in which it came about
    headers: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self, instance: str = "") -> dict[str, Any]:
        """With the id of the request that it answers."""
        word = self.kind or _WORDS.get(self.status) or HTTPStatus(self.status).phrase.lower().replace(" ", "-")
        document: dict[str, Any] = {"type": f"urn:ctx:problem:{word}", "title": self.title, "status": self.status}
        optional = {
            "detail": self.detail,
            "hint": self.hint,
            "instance": instance,
            "errors": list(self.errors),
            "traceId": self.trace,
        }
        return document | {name: value for name, value in optional.items() if value}

    def body(self, instance: str = "") -> bytes:
        """Lone halves of characters, which a request may hold, are replaced: they cannot be encoded."""
        return json.dumps(self.to_dict(instance), ensure_ascii=False).encode("utf-8", "replace")


def refused(problem: Problem) -> ProblemError:
    """To be raised inside the service, where no error of ours says it better."""
    return ProblemError(problem.detail or problem.title, hint=problem.hint, problem=problem)


def only_for_owner(what: str) -> ProblemError:
    """The error for somebody else, who asks for what is of everybody."""
    hint = "use the owner's token; it lies in the file that ctx serve names at its start"
    return refused(Problem(403, f"Only the owner may {what}", hint=hint))


def problem_response(problem: Problem, request: Request) -> Response:
    """Answer with a problem document, which names the request; of a package its trace, as everything of one does."""
    instance = str(getattr(request.state, "request_id", ""))
    if not problem.trace and request.url.path.startswith("/knowledge/"):
        problem = replace(problem, trace=str(getattr(request.state, "traceparent", ""))[3:35])
    return Response(problem.body(instance), problem.status, dict(problem.headers), MEDIA_TYPE)


def problem_of(error: BaseException) -> Problem:
    """What is told of an error."""
    if isinstance(error, ProblemError) and isinstance(error.problem, Problem):
        return error.problem
    if not isinstance(error, CtxError):
        return Problem(500, "Something unexpected happened", hint="the server's log says where: ctx serve --log-file")
    status, title, kind = next(
        (known[1:] for known in _OURS if isinstance(error, known[0])), (500, "It failed", "failed")
    )
    headers = {"Retry-After": "1"} if isinstance(error, BusyError) else {}
    return Problem(status, title, error.message, error.hint, kind, headers=headers, trace=error.trace_id)


def add_problem_handlers(app: FastAPI) -> None:
    """Let an application answer every error with a problem document."""
    for kind in (CtxError, Exception):
        app.add_exception_handler(kind, _on_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)


async def _on_error(request: Request, error: Exception) -> Response:
    return problem_response(problem_of(error), request)


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


_OURS: tuple[tuple[type[CtxError], int, str, str], ...] = (
    (UsageError, 422, "The request cannot be understood", "invalid"),
    (NothingFoundError, 404, "Nothing found", "nothing-found"),
    (BusyError, 503, "The index is busy", "busy"),
    (IndexUnusableError, 503, "The index cannot be used", "index-unusable"),
    (UntrustedError, 503, "The index is not trusted", "untrusted"),
    (EncoderUnavailable, 503, "A model cannot run", "encoder-unavailable"),
    (ModelError, 502, "The model wrote no answer", "model"),
)
