"""Recorders for others' tools: metrics for Prometheus, spans for OpenTelemetry.

Times and counts for Prometheus, as a page of text that it comes and reads.

A stage becomes the histogram `ctx_<stage>_seconds`, a count the counter `ctx_<name>_total` with its labels, and what is
the state of things the gauge `ctx_<name>`.

Spans for OpenTelemetry: one for each stage of a question, inside one for the request that asked it.

The standard OTEL_* variables say where they go, how many of them, and under which name; the exporters read most of them
by themselves. The provider is this recorder's own: set for the whole process it would also switch on what our
dependencies tell about themselves, of which some is text of a question.

Spans hold names, numbers and types of exceptions, never an exception's message.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from research.errors import CtxError, UsageError
from research.observe.recorder import TRACE, Ended, log_failure

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from prometheus_client.metrics_core import Metric

try:
    from opentelemetry import context as contexts
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
    from opentelemetry.trace import SpanKind, StatusCode, get_current_span, set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    raise CtxError(
        "an exporter of traces is configured (OTEL_TRACES_EXPORTER or OTEL_EXPORTER_OTLP_ENDPOINT), and"
        " opentelemetry-sdk is not installed",
        hint="pip install 'ctx-research[serve]', or switch it off: OTEL_SDK_DISABLED=true",
    ) from None


NAME = "ctx"
FLUSH_SECONDS = 2.0  # for the last spans, when a server has little time to stop

_GRPC, _HTTP = "grpc", "http/protobuf"
_PACKAGES = {_GRPC: "opentelemetry-exporter-otlp-proto-grpc", _HTTP: "opentelemetry-exporter-otlp-proto-http"}
_PROPAGATOR = TraceContextTextMapPropagator()


class OpenTelemetryRecorder:
    """Every stage as a span. The parent is what is current where it begins, and threads must be given it (a copy of the
    context); the first span of a request belongs to the trace that the request names."""

    def __init__(self, provider: TracerProvider) -> None:
        """The provider is the recorder's to close."""
        self._provider = provider
        self._tracer = provider.get_tracer(NAME)

    @classmethod
    def exporting(cls, exporters: Sequence[str], environment: Mapping[str, str]) -> Self:
        """Make one for exporters by their names in OTEL_TRACES_EXPORTER. Raises CtxError if one's package is
        missing."""
        made = [_exporter(name, environment) for name in exporters]
        named = "OTEL_SERVICE_NAME" in environment or "service.name=" in environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
        provider = TracerProvider(resource=Resource.create({} if named else {"service.name": NAME}))
        for exporter in made:
            provider.add_span_processor(BatchSpanProcessor(exporter))
        return cls(provider)

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        begin = self._tracer.start_as_current_span
        with begin(stage, context=_parent(), record_exception=False, set_status_on_exception=False) as span:
            try:
                yield
            except BaseException as error:
                span.set_attribute("error.type", type(error).__qualname__)
                span.set_status(StatusCode.ERROR)
                raise

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        """Do nothing: how many there are of something is for metrics."""

    def event(self, name: str, **fields: str | int | float) -> None:
        get_current_span().add_event(name, dict(fields))

    def request(self, method: str, trace: Mapping[str, str]) -> Ended:
        """Begin the span of a request; what is asked because of it is told this span's name (`TRACE`)."""
        parent = _PROPAGATOR.extract(trace) if trace else None
        span = self._tracer.start_span(method, context=parent, kind=SpanKind.SERVER)
        current = set_span_in_context(span)
        token = contexts.attach(current)
        carried: dict[str, str] = {}
        _PROPAGATOR.inject(carried, current)
        TRACE.set(carried)

        def ended(route: str, status: int) -> None:
            span.update_name(f"{method} {route}")
            span.set_attributes(
                {"http.request.method": method, "http.route": route, "http.response.status_code": status}
            )
            if status >= 500:
                span.set_status(StatusCode.ERROR)
            span.end()
            contexts.detach(token)

        return ended

    def close(self) -> None:
        """Send the rest, for as long as that may take; a collector that is away keeps nobody waiting for longer."""
        from threading import Thread

        closing = Thread(target=self._provider.shutdown, name="ctx-last-spans", daemon=True)
        closing.start()
        closing.join(FLUSH_SECONDS)


def _parent() -> Context | None:
    """Return what is current; where nothing is, as in a program without our service, the trace that was taken up."""
    trace = TRACE.get()
    if trace and not get_current_span().get_span_context().is_valid:
        return _PROPAGATOR.extract(trace)
    return None


def _exporter(name: str, environment: Mapping[str, str]) -> SpanExporter:
    if name == "console":
        import sys

        return ConsoleSpanExporter(out=sys.stderr)  # stdout is for data, and over stdio for MCP's messages
    if name == "otlp":
        return _otlp(environment)
    raise UsageError(f"OTEL_TRACES_EXPORTER names {name!r}", hint="choose otlp, console or none")


def _otlp(environment: Mapping[str, str]) -> SpanExporter:
    """Open the exporter of the protocol that is named; where none is, by gRPC as OpenTelemetry's own SDK for Python
    does, or by HTTP if only that is installed."""
    variables = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    named = next((environment[name].strip() for name in variables if environment.get(name, "").strip()), "")
    if named and named not in _PACKAGES:
        raise UsageError(f"OTEL_EXPORTER_OTLP_PROTOCOL names {named!r}", hint=f"choose one of: {', '.join(_PACKAGES)}")
    for protocol in [named] if named else [_GRPC, _HTTP]:
        try:
            module = import_module(f"opentelemetry.exporter.otlp.proto.{protocol.split('/')[0]}.trace_exporter")
        except ImportError:
            continue
        exporter: SpanExporter = module.OTLPSpanExporter()
        return exporter
    package = _PACKAGES[named or _HTTP]
    raise CtxError(
        f"traces are to be exported over {named or 'OTLP'}, and {package} is not installed",
        hint=f"pip install {package}, or switch it off: OTEL_SDK_DISABLED=true",
    )


INSTALL = "pip install 'ctx-research[serve]'"
OTHER = "other"

# Seconds. A stage of a question takes a millisecond, a question tens of them, a model's answer a minute.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_NO_NAME = re.compile(r"[^a-z0-9_]+")

State = float | Mapping[str, float]
"""How many there are now; or how many of each kind."""


class PrometheusRecorder:
    """Keeps what it hears until `render` is asked for it."""

    def __init__(self) -> None:
        try:
            from prometheus_client import CollectorRegistry, ProcessCollector
        except ImportError:
            raise CtxError("prometheus-client is not installed, which counts for Prometheus", hint=INSTALL) from None
        self.registry = CollectorRegistry()  # for what counts beside it: all of it is rendered together
        ProcessCollector(registry=self.registry)
        self._making = threading.Lock()
        self._metrics: dict[tuple[str, str], tuple[Any, tuple[str, ...]]] = {}
        self._gauges = _Gauges()
        self.registry.register(self._gauges)

    def time(self, stage: str) -> AbstractContextManager[Any]:
        timed: AbstractContextManager[Any] = self._metric("seconds", stage, {}).time()
        return timed

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        if value >= 0:
            self._metric("total", name, labels).inc(value)

    def event(self, name: str, **fields: str | int | float) -> None:
        """Count events of this name: what else there is to tell of one, Prometheus has no place for."""
        self.count("events", event=name)

    def request(self, method: str, trace: Mapping[str, str]) -> Ended:
        begun, method = perf_counter(), method if method in _METHODS else OTHER

        def ended(route: str, status: int) -> None:
            self._metric("seconds", "http_request", {"route": route}).observe(perf_counter() - begun)
            self.count("http_requests", route=route, method=method, status=str(status))

        return ended

    def gauge(self, name: str, help_text: str, read: Callable[[], State], label: str = "") -> None:
        """Register the state of something, read when somebody comes for it; with a label, the state of each kind of
        it."""
        self._gauges.reading[f"ctx_{_named(name)}"] = (help_text, label, read)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return all of it as text, and that text's content type: OpenMetrics for those who accept it."""
        if "application/openmetrics-text" in accept:
            from prometheus_client.openmetrics import exposition as openmetrics

            newer: bytes = openmetrics.generate_latest(self.registry)  # type: ignore[no-untyped-call]
            return newer, openmetrics.CONTENT_TYPE_LATEST
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def _metric(self, unit: str, stage: str, labels: Mapping[str, str]) -> Any:
        """Return a histogram of seconds or a counter, for these labels; its labels are those of its first use."""
        if (unit, stage) not in self._metrics:
            from prometheus_client import Counter, Histogram

            with self._making:
                if (unit, stage) not in self._metrics:
                    name, names = _named(stage), tuple(sorted(labels))
                    words, metric = name.replace("_", " "), Counter if unit == "total" else Histogram
                    told = f"Seconds of {words}." if unit == "seconds" else f"How many {words}."
                    full = f"ctx_{name}_seconds" if unit == "seconds" else f"ctx_{name}"
                    more: dict[str, Any] = {"buckets": BUCKETS} if unit == "seconds" else {}
                    self._metrics[unit, stage] = metric(full, told, names, registry=self.registry, **more), names
        found, names = self._metrics[unit, stage]
        return found.labels(*(labels.get(name, "") for name in names)) if names else found


class _Gauges:
    """What is read at the moment when somebody asks. One that cannot be read is left out, and the log tells."""

    def __init__(self) -> None:
        self.reading: dict[str, tuple[str, str, Callable[[], State]]] = {}

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        for name, (help_text, label, read) in list(self.reading.items()):
            try:
                state = read()
                family = GaugeMetricFamily(name, help_text, labels=[label] if label else None)
                for kind, value in state.items() if isinstance(state, Mapping) else [("", state)]:
                    family.add_metric([kind] if label else [], float(value))
            except Exception as error:  # noqa: BLE001  whoever asks must hear of the rest
                log_failure("observe", f"the gauge {name} cannot be read", error)
            else:
                yield family

    def describe(self) -> Iterator[Metric]:
        """Yield nothing yet: a registry would otherwise read them all when this is registered."""
        return iter(())


def _named(name: str) -> str:
    return _NO_NAME.sub("_", name.lower()).strip("_") or "unnamed"
