"""Which trace the work in hand belongs to: the headers of W3C's Trace Context, taken up from whoever asks and passed on
to whoever is asked. Nothing here needs OpenTelemetry; its recorder uses the same headers where it is on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

TRACE: ContextVar[Mapping[str, str]] = ContextVar("ctx_trace", default={})  # noqa: B039  nobody changes it
"""The headers that say so, empty if nobody did. Threads see it that are started with a copy of the context."""

# version, trace, parent, flags; later versions may have more after it. A trace or parent of zeros is none.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]{0,200})?")
_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_TRACESTATE = re.compile(r"[ -~\t]{1,512}")  # as much as everybody must pass on


def taken_up(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """The trace that the headers of a request name; what is not as the standard has it is as if it were not there."""
    parents: list[str] = []
    states: list[str] = []
    for name, value in headers:
        if name == b"traceparent":
            parents.append(value.decode("latin-1"))
        elif name == b"tracestate":
            states.append(value.decode("latin-1"))
    if len(parents) != 1 or not _TRACEPARENT.fullmatch(parents[0]) or (parents[0][:2] == "00" and len(parents[0]) > 55):
        return {}
    state = ",".join(states)
    return {"traceparent": parents[0]} | ({"tracestate": state} if _TRACESTATE.fullmatch(state) else {})


def current_trace() -> str:
    """The id of the trace that the work in hand belongs to; empty if it belongs to none."""
    import sys

    if "opentelemetry.trace" in sys.modules:  # only where its recorder is on
        from opentelemetry.trace import get_current_span

        context = get_current_span().get_span_context()
        if context.is_valid:
            return f"{context.trace_id:032x}"
    return TRACE.get().get("traceparent", "--").split("-")[1]


@contextmanager
def traced(named: str) -> Iterator[str]:
    """The id under which this work is told of: as it was named, else that of the trace it belongs to, else a new one.
    One that a trace can have is the trace's, where there is none yet: its spans are found by it."""
    import secrets

    name = named or current_trace() or secrets.token_hex(16)
    if current_trace() or not _TRACE_ID.fullmatch(name):
        yield name
        return
    token = TRACE.set({"traceparent": f"00-{name}-{secrets.token_hex(8)}-01"})
    try:
        yield name
    finally:
        TRACE.reset(token)


@contextmanager
def telling(trace: str) -> Iterator[None]:
    """An error that is raised inside says in which trace that was."""
    from research.errors import CtxError

    try:
        yield
    except CtxError as error:
        error.trace_id = error.trace_id or trace
        raise
