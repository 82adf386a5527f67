"""Which trace the work in hand belongs to: the headers of W3C's Trace Context, taken up from whoever asks and passed on
to whoever is asked. Nothing here needs OpenTelemetry; its recorder uses the same headers where it is on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar

TRACE: ContextVar[Mapping[str, str]] = ContextVar("ctx_trace", default={})  # noqa: B039  nobody changes it
"""The headers that say so, empty if nobody did. Threads see it that are started with a copy of the context."""

# version, trace, parent, flags; later versions may have more after it. A trace or parent of zeros is none.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]{0,200})?")
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


def current_trace_id() -> str:
    """The id of the trace that the work in hand belongs to; empty if nobody named one."""
    parent = TRACE.get().get("traceparent", "")
    return parent.split("-")[1] if parent else ""
