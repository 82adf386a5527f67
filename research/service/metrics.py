"""What a running server tells of itself: `GET /metrics`, and every request to a recorder.

`Measured` stands outside of everything else, so that also what the guard turns away is counted. It takes up the trace
that a request names (`research.observe`) and passes it on to all that happens because of the request.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, get_args

from fastapi import Request
from starlette.responses import Response

from research.observe import TRACE, Recorder, RequestRecorder, logger_of, taken_up
from research.service.jobs import State
from research.service.schemas import Routes, for_owner

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from research.observe import PrometheusRecorder
    from research.service.jobs import JobRunner
    from research.service.service import Service

NO_ROUTE = "none"
"""The route of a request that reached none: nothing has this path, or the guard turned it away."""

_log = logger_of("requests")
_CLIENT_GONE = 499  # by nginx's custom: whoever asked did not wait for an answer


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # what may stand in a log, a header and a document as it is
_SAMPLED = "01"


def request_id(given: str | None) -> str:
    """The id that the caller gave, if it is a short plain word; else a new one."""
    return given if given is not None and _ID.fullmatch(given) else os.urandom(8).hex()


def own_traceparent(trace: Mapping[str, str]) -> str:
    """The caller's trace (`research.observe.taken_up`) with a span id of ours; a new one where there is none."""
    span = os.urandom(8).hex()
    given = trace.get("traceparent")
    if given is None:
        return f"00-{os.urandom(16).hex()}-{span}-{_SAMPLED}"
    flags = _SAMPLED if int(given[53:55], 16) & 1 else "00"  # what the other flags mean is not known yet
    return f"00-{given[3:35]}-{span}-{flags}"


class Measured:
    """An ASGI application whose requests a recorder hears of."""

    def __init__(self, app: ASGIApp, recorder: Recorder) -> None:
        self._app = app
        self._recorder = recorder if isinstance(recorder, RequestRecorder) else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace = taken_up(scope["headers"])
        token = TRACE.set(trace)
        ended = self._recorder.request(scope["method"], trace) if self._recorder else None
        if (own := TRACE.get()) is not trace:  # a recorder has a span for it, which is what the answer should name
            scope.setdefault("state", {})["traceparent"] = own["traceparent"]
        status, begun = 0, perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception:
            status = status or 500  # as the server will answer
            raise
        finally:
            route, status = route_of(scope), status or _CLIENT_GONE
            if ended is not None:
                ended(route, status)
            if _log.isEnabledFor(logging.INFO):
                _log.info("%s", _line(scope, route, status, perf_counter() - begun))
            TRACE.reset(token)


def _line(scope: Scope, route: str, status: int, seconds: float) -> str:
    """A request in the log: never its path, which may name a document, nor its question."""
    state = scope.get("state", {})
    caller = getattr(state.get("caller"), "name", "-")
    return f"{scope['method']} {route} {status} {1000 * seconds:.1f} ms {state.get('request_id', '-')} {caller}"


def route_of(scope: Scope) -> str:
    """The route's template, which is the same for all documents and pages; never the path, which is the user's."""
    return getattr(scope.get("route"), "path", "") or NO_ROUTE


def metrics_router(recorder: PrometheusRecorder) -> Routes:
    router = Routes(tags=["state"])

    @router.answer(
        "GET /metrics",
        "Times and counts for Prometheus; for the owner alone",
        responses={403: {"description": "Only the owner may read the metrics"}},
        dependencies=[for_owner("read the metrics")],  # they count what is done for everybody
    )
    async def metrics(request: Request) -> Response:
        text, content_type = recorder.render(request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    return router


def measure(recorder: PrometheusRecorder, service: Service, jobs: JobRunner) -> None:
    """The gauges of a service: what is in work and what waits, at the moment when somebody looks."""

    def by_state() -> dict[str, float]:
        return dict.fromkeys(get_args(State), 0.0) | Counter(job["state"] for job in jobs.documents())

    recorder.gauge("questions_in_work", "Questions that are being answered.", lambda: service.turns.working)
    recorder.gauge("questions_waiting", "Questions that wait for their turn.", lambda: service.turns.waiting)
    recorder.gauge("jobs", "Ingests that the server knows of.", by_state, "state")
