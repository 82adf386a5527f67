"""What a running ctx tells of itself: times, counts and events to a recorder, lines to loggers; and whose trace it is.

Code that does something worth knowing is given a `Recorder` and calls it; by default nobody listens:

    with recorder.time("retrieve"):
        ...
    recorder.count("pages_read", 12, reader="pdf")
    recorder.event("generation_published", number=7, records=120_000)

Names are lower case with underscores, labels have few values (a stage, a leg, a status), and neither labels nor fields
ever hold text of a document or a question: what is recorded may be kept for years by others.

A recorder for Prometheus or OpenTelemetry is one more class in a file of its own beside this one: `time` becomes a
histogram `ctx_<stage>_seconds` or a span, `count` a counter `ctx_<name>_total` with its labels or nothing, `event` a
span event or nothing. Only that file imports the library, and raises `CtxError` with the `pip install` line where it is
missing. Methods are called from many threads at once and must neither block nor raise; `Recorders` holds them to it.

The stages of a question, as they lie in each other:

    ask, search ── retrieve ── fuse
                ├─ govern
                ├─ passages
                ├─ fit
                ├─ render
                └─ answer       its quotes
    context ── retrieve, govern, fit      of several sources; so is a premortem
    answer ── write             with a model

The loggers are `ctx`, with one child for each part (`ctx.ingest`, `ctx.store`, `ctx.cli` …): Python's own, silent until
somebody adds a handler. A program that uses ctx as a library sets up `logging` as it likes, the command line does it
for `--log-file` and `CTX_LOG`. What is logged as INFO or above holds no text of a document and no question. Names of
files, numbers, times and the types of exceptions are fine; the message of an exception is not, because it may quote
what it choked on. `DEBUG` may hold anything, and so may what is added with `extra=in_full(…)`: the same in all its
words, which stand in the record's place with --debug and in a log of level DEBUG.

Traces are W3C's Trace Context: headers taken up from whoever asks and passed on to whoever is asked. Nothing here needs
OpenTelemetry; its recorder uses the same headers where it is on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import logging

Ended = Callable[[str, int], None]
"""Told of a request when it has ended: its route as it is written in the program, and the status of its answer."""

_NOTHING = nullcontext()  # holds no state, so one serves all threads at once

NAME = "ctx"  # of the logger above all others
_IN_FULL = "in_full"  # an attribute of a record

TRACE: ContextVar[Mapping[str, str]] = ContextVar("ctx_trace", default={})  # noqa: B039  nobody changes it
"""The headers that say which trace the work in hand belongs to, empty if none do. Threads see it that are started with
a copy of the context."""

# version, trace, parent, flags; later versions may have more after it. A trace or parent of zeros is none.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]{0,200})?")
_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_TRACESTATE = re.compile(r"[ -~\t]{1,512}")  # as much as everybody must pass on


class Recorder(Protocol):
    def time(self, stage: str) -> AbstractContextManager[None]:
        """Measure what runs inside it, also if that raises."""
        ...

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        """Count so many more of something."""
        ...

    def event(self, name: str, **fields: str | int | float) -> None:
        """Tell of something that happens seldom and is worth a line."""
        ...


@runtime_checkable
class RequestRecorder(Protocol):
    """A recorder that also hears of HTTP requests."""

    def request(self, method: str, trace: Mapping[str, str]) -> Ended:
        """Hear that a request begins, which belongs to this trace. Called in the context that it runs in, and so is
        what comes back."""
        ...


class NullRecorder:
    """The default: hears everything and keeps nothing."""

    def time(self, stage: str) -> AbstractContextManager[None]:
        return _NOTHING

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        pass

    def event(self, name: str, **fields: str | int | float) -> None:
        pass


NULL_RECORDER = NullRecorder()


class Recorders:
    """Several as one. What fails in one of them reaches neither the others nor what is measured: it is logged, once."""

    def __init__(self, *recorders: Recorder) -> None:
        self._recorders = recorders
        self._failed: set[int] = set()

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        entered: list[tuple[Recorder, AbstractContextManager[None]]] = []
        for recorder in self._recorders:
            with self._guarded(recorder):
                timed = recorder.time(stage)
                timed.__enter__()
                entered.append((recorder, timed))
        raised: tuple[Any, Any, Any] = (None, None, None)
        try:
            yield
        except BaseException as error:
            raised = type(error), error, error.__traceback__
            raise
        finally:
            for recorder, timed in reversed(entered):
                with self._guarded(recorder, but=raised[1]):
                    timed.__exit__(*raised)
            del raised  # or its traceback would hold itself

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        for recorder in self._recorders:
            with self._guarded(recorder):
                recorder.count(name, value, **labels)

    def event(self, name: str, **fields: str | int | float) -> None:
        for recorder in self._recorders:
            with self._guarded(recorder):
                recorder.event(name, **fields)

    def request(self, method: str, trace: Mapping[str, str]) -> Ended:
        begun: list[tuple[Recorder, Ended]] = []
        for recorder in self._recorders:
            if isinstance(recorder, RequestRecorder):
                with self._guarded(recorder):
                    begun.append((recorder, recorder.request(method, trace)))

        def ended(route: str, status: int) -> None:
            for recorder, end in reversed(begun):
                with self._guarded(recorder):
                    end(route, status)

        return ended

    def close(self) -> None:
        """Let those that send what they hear send the rest."""
        for recorder in self._recorders:
            close_recorder(recorder)

    @contextmanager
    def _guarded(self, recorder: Recorder, but: BaseException | None = None) -> Iterator[None]:
        """Log what is raised inside. `but`: what is measured raised it itself."""
        try:
            yield
        except Exception as error:  # noqa: BLE001
            if error is not but and id(recorder) not in self._failed:
                self._failed.add(id(recorder))
                log_failure("observe", f"{type(recorder).__name__} failed", error)


def close_recorder(recorder: Recorder) -> None:
    """Close a recorder that can be, which the protocol does not ask for. Fails as quietly as all they do."""
    close = getattr(recorder, "close", None)
    if close is not None:
        try:
            close()
        except Exception as error:  # noqa: BLE001
            log_failure("observe", f"{type(recorder).__name__} could not be closed", error)


def recorder_for(environment: Mapping[str, str], *others: Recorder) -> Recorder:
    """Make what a process should record with: `others`, and spans if the standard variables name an exporter of traces.
    Only then is anything of OpenTelemetry imported; a package it lacks raises CtxError with the line that installs it.
    """
    chosen = list(others)
    if exporters := span_exporters(environment):
        from research.observe.exporters import OpenTelemetryRecorder

        chosen.append(OpenTelemetryRecorder.exporting(exporters, environment))
    return Recorders(*chosen) if chosen else NullRecorder()


def span_exporters(environment: Mapping[str, str]) -> list[str]:
    """Return the exporters of traces that OTEL_* variables name: "otlp", "console" or another. By the standard alone it
    would be "otlp" also where nothing is said; here nothing leaves the machine unless somebody says where to."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    named = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if not named:
        addresses = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
        return ["otlp"] if any(environment.get(name, "").strip() for name in addresses) else []
    exporters = dict.fromkeys(name.strip() for name in named.split(","))
    return [name for name in exporters if name and name != "none"]


def logger_of(part: str) -> logging.Logger:
    """Return the logger of one part of ctx. With nobody listening, Python would print its warnings on stderr."""
    import logging  # where it happens: a question that fails nowhere loads none

    root = logging.getLogger(NAME)
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    return root.getChild(part)


def log_failure(part: str, what: str, error: BaseException) -> None:
    """Log that a part failed while the rest goes on."""
    logger_of(part).warning("%s: %s", what, type(error).__name__, exc_info=error)


def in_full(text: str) -> dict[str, str]:
    return {_IN_FULL: text}


def full_text(record: logging.LogRecord) -> str:
    """Return a record in all its words; for readers who may see them."""
    return str(getattr(record, _IN_FULL, "") or record.getMessage())


def frames_of(error: BaseException) -> str:
    """Return a traceback that may be logged: where it happened and what type each exception was, without their
    messages."""
    import traceback

    chain: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        kind = type(current)
        chain.append("".join(traceback.format_tb(current.__traceback__)) + f"{kind.__module__}.{kind.__qualname__}")
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return "Traceback (most recent call last):\n" + "\nwhile this was handled, or because of it:\n".join(chain[::-1])


def taken_up(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Return the trace that the headers of a request name; what is not as the standard has it is as if it were not
    there."""
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
    """Return the id of the trace that the work in hand belongs to; empty if it belongs to none."""
    import sys

    if "opentelemetry.trace" in sys.modules:  # only where its recorder is on
        from opentelemetry.trace import get_current_span

        context = get_current_span().get_span_context()
        if context.is_valid:
            return f"{context.trace_id:032x}"
    return TRACE.get().get("traceparent", "--").split("-")[1]


@contextmanager
def traced(named: str) -> Iterator[str]:
    """Give the id under which this work is told of: as it was named, else that of the trace it belongs to, else a new
    one. One that a trace can have is the trace's, where there is none yet: its spans are found by it."""
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
    """Let an error that is raised inside say in which trace that was."""
    from research.errors import CtxError

    try:
        yield
    except CtxError as error:
        error.trace_id = error.trace_id or trace
        raise
