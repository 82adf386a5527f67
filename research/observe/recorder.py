"""Times, counts and events of a running ctx, for whoever wants them; by default nobody does.

Code that does something worth knowing is given a `Recorder` and calls it:

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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import logging
    from types import TracebackType


class Recorder(Protocol):
    def time(self, stage: str) -> AbstractContextManager[None]:
        """Measures what runs inside it, also if that raises."""
        ...

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        """So many more of something."""
        ...

    def event(self, name: str, **fields: str | int | float) -> None:
        """Something that happens seldom and is worth a line."""
        ...


Ended = Callable[[str, int], None]
"""Told of a request when it has ended: its route as it is written in the program, and the status of its answer."""


@runtime_checkable
class RequestRecorder(Protocol):
    """A recorder that also hears of HTTP requests."""

    def request(self, method: str, trace: Mapping[str, str]) -> Ended:
        """A request begins, which belongs to this trace (`research.observe.trace`). Called in the context that it runs
        in, and so is what comes back."""
        ...


class NullRecorder:
    """The default: hears everything and keeps nothing."""

    def time(self, stage: str) -> AbstractContextManager[None]:
        return _NOTHING

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        pass

    def event(self, name: str, **fields: str | int | float) -> None:
        pass


_NOTHING = nullcontext()  # holds no state, so one serves all threads at once


class LoggingRecorder:
    """Everything as lines of the logger `ctx.recorder`: events as INFO, times and counts, of which there are many, as
    DEBUG. A logger may be given instead."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        if logger is None:
            from research.observe.log import logger_of

            logger = logger_of("recorder")
        self._logger = logger

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        from time import perf_counter

        begun, ended = perf_counter(), "failed"
        try:
            yield
            ended = "done"
        finally:
            self._logger.debug("time %s: %.1f ms, %s", stage, (perf_counter() - begun) * 1000, ended)

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        self._logger.debug("count %s: %d%s", name, value, _pairs(labels))

    def event(self, name: str, **fields: str | int | float) -> None:
        self._logger.info("event %s%s", name, _pairs(fields))


def _pairs(fields: dict[str, str] | dict[str, str | int | float]) -> str:
    return "".join(f" {name}={value}" for name, value in fields.items())


class Recorders:
    """Several as one. What fails in one of them reaches neither the others nor what is measured: it is logged, once."""

    def __init__(self, *recorders: Recorder) -> None:
        self._recorders = recorders
        self._of_requests = [(each, each.request) for each in recorders if isinstance(each, RequestRecorder)]
        self._failed: set[int] = set()

    def time(self, stage: str) -> AbstractContextManager[None]:
        return _TimedByAll(self, self._recorders, stage)

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        for recorder in self._recorders:
            try:
                recorder.count(name, value, **labels)
            except Exception as error:  # noqa: BLE001
                self.failed(recorder, error)

    def event(self, name: str, **fields: str | int | float) -> None:
        for recorder in self._recorders:
            try:
                recorder.event(name, **fields)
            except Exception as error:  # noqa: BLE001
                self.failed(recorder, error)

    def request(self, method: str, trace: Mapping[str, str]) -> Ended:
        told: list[tuple[Recorder, Ended]] = []
        for recorder, request in self._of_requests:
            try:
                told.append((recorder, request(method, trace)))
            except Exception as error:  # noqa: BLE001
                self.failed(recorder, error)

        def ended(route: str, status: int) -> None:
            for recorder, tell in reversed(told):
                try:
                    tell(route, status)
                except Exception as error:  # noqa: BLE001
                    self.failed(recorder, error)

        return ended

    def close(self) -> None:
        """Let those that send what they hear send the rest."""
        for recorder in self._recorders:
            close_recorder(recorder)

    def failed(self, recorder: Recorder, error: Exception) -> None:
        if id(recorder) not in self._failed:
            self._failed.add(id(recorder))
            from research.observe.log import log_failure

            log_failure("observe", f"{type(recorder).__name__} failed", error)


class _TimedByAll:
    __slots__ = ("_entered", "_recorders", "_stage", "_together")

    def __init__(self, together: Recorders, recorders: tuple[Recorder, ...], stage: str) -> None:
        self._together = together
        self._recorders = recorders
        self._stage = stage
        self._entered: list[tuple[Recorder, AbstractContextManager[None]]] = []

    def __enter__(self) -> None:
        for recorder in self._recorders:
            try:
                timed = recorder.time(self._stage)
                timed.__enter__()
                self._entered.append((recorder, timed))
            except Exception as error:  # noqa: BLE001
                self._together.failed(recorder, error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for recorder, timed in reversed(self._entered):
            try:
                timed.__exit__(kind, error, where)
            except Exception as failure:  # noqa: BLE001
                if failure is not error:
                    self._together.failed(recorder, failure)


def close_recorder(recorder: Recorder) -> None:
    """What some recorders have and the protocol does not ask for. Fails as quietly as all they do."""
    close = getattr(recorder, "close", None)
    if close is not None:
        try:
            close()
        except Exception as error:  # noqa: BLE001
            from research.observe.log import log_failure

            log_failure("observe", f"{type(recorder).__name__} could not be closed", error)


def recorder_for(environment: Mapping[str, str], *others: Recorder) -> Recorder:
    """What a process should record with: `others`, and spans if the standard variables name an exporter of traces.
    Only then is anything of OpenTelemetry imported; a package it lacks raises CtxError with the line that installs it.
    """
    chosen = list(others)
    if exporters := span_exporters(environment):
        from research.observe.opentelemetry import OpenTelemetryRecorder

        chosen.append(OpenTelemetryRecorder.exporting(exporters, environment))
    return Recorders(*chosen) if chosen else NullRecorder()


def span_exporters(environment: Mapping[str, str]) -> list[str]:
    """The exporters of traces that OTEL_* variables name: "otlp", "console" or another. By the standard alone it would
    be "otlp" also where nothing is said; here nothing leaves the machine unless somebody says where to."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    named = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if not named:
        addresses = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
        return ["otlp"] if any(environment.get(name, "").strip() for name in addresses) else []
    exporters = dict.fromkeys(name.strip() for name in named.split(","))
    return [name for name in exporters if name and name != "none"]
