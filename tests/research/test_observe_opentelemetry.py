"""Spans of a question, as the real SDK of OpenTelemetry makes and exports them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import httpx
import pytest
from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from research import Index
from research.context import Sieve, find
from research.errors import CtxError, UsageError
from research.models import Question, Retrieved, SourceCoverage
from research.observe import TRACE, NullRecorder, Recorders, close_recorder, recorder_for, taken_up
from research.observe.exporters import OpenTelemetryRecorder
from research.observe.recorder import span_exporters
from research.service.metrics import Measured
from research.service.service import Limits, Turnstile
from research.store import Reader

QUESTION = "How many weeks of parental leave does the Saltmarsh handbook give?"
TRACE_ID, PARENT_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"


class Spans:
    """What a recorder has exported so far."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.recorder = OpenTelemetryRecorder(provider)

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def tree(self) -> set[tuple[str, str]]:
        """name of the parent, or its id if it is elsewhere → name"""
        names = {_own(span).span_id: span.name for span in self.all}
        return {(_parent(span, names), span.name) for span in self.all}


def _own(span: ReadableSpan) -> trace.SpanContext:
    own = span.get_span_context()
    assert own is not None
    return own


def _parent(span: ReadableSpan, names: dict[int, str]) -> str:
    if span.parent is None:
        return ""
    return names.get(span.parent.span_id, f"{span.parent.span_id:016x}")


@pytest.fixture
def spans() -> Spans:
    return Spans()


INSIDE_ASK = {
    ("ask", "retrieve"),
    ("retrieve", "fuse"),
    ("ask", "govern"),
    ("ask", "passages"),
    ("ask", "fit"),
    ("ask", "render"),
    ("ask", "answer"),
}


def test_the_stages_of_a_question_are_spans_in_each_other(sample_index: Path, spans: Spans) -> None:
    with Index(sample_index, recorder=spans.recorder) as index:
        context = index.ask(QUESTION)
        assert spans.tree() == {("", "ask"), *INSIDE_ASK}
        assert len({_own(span).trace_id for span in spans.all}) == 1
        index.search(QUESTION)
    assert {("", "search"), ("search", "retrieve"), ("search", "passages")} <= spans.tree()
    told = "".join(span.to_json() for span in spans.all).lower()
    words = {word for word in f"{QUESTION} {context.quotes[0].text}".lower().split() if len(word) > 6}
    assert not [word for word in words if word in told]


def test_what_fails_is_told_by_its_type_alone(spans: Spans) -> None:
    with pytest.raises(ValueError, match="page"), spans.recorder.time("fit"):
        raise ValueError("the text of a page")
    spans.recorder.event("nobody asked")
    with spans.recorder.time("publish"):
        spans.recorder.event("generation_published", number=7)
        spans.recorder.count("pages", 3)
    failed, published = spans.all
    assert (failed.name, dict(failed.attributes or {})) == ("fit", {"error.type": "ValueError"})
    assert not failed.status.is_ok
    assert "the text" not in failed.to_json()
    assert [(event.name, dict(event.attributes or {})) for event in published.events] == [
        ("generation_published", {"number": 7})
    ]


def _application(index: Index, spans: Spans) -> Measured:
    app, turns, carried = FastAPI(), Turnstile(Limits()), []

    @app.get("/ask/{name}")
    async def ask(name: str, q: str) -> list[str]:
        def work() -> None:
            carried.append(TRACE.get().get("traceparent", ""))
            index.ask(q)

        await turns.run(work)
        return carried[-1:]

    @app.get("/fails")
    async def fails() -> None:
        raise ValueError(QUESTION)

    return Measured(app, Recorders(spans.recorder))


async def _get(app: Any, path: str, headers: dict[str, str]) -> httpx.Response:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://ctx") as client:
        return await client.get(path, headers=headers)


def test_the_trace_of_a_request_reaches_the_threads_of_its_question(sample_index: Path, spans: Spans) -> None:
    with Index(sample_index, recorder=spans.recorder) as index:
        headers = {"traceparent": TRACEPARENT, "tracestate": "vendor=1"}
        answer = asyncio.run(_get(_application(index, spans), f"/ask/secret?q={QUESTION}", headers))
    assert spans.tree() == {(PARENT_ID, "GET /ask/{name}"), ("GET /ask/{name}", "ask"), *INSIDE_ASK}
    assert {f"{_own(span).trace_id:032x}" for span in spans.all} == {TRACE_ID}
    [request] = [span for span in spans.all if span.kind is trace.SpanKind.SERVER]
    assert dict(request.attributes or {}) == {
        "http.request.method": "GET",
        "http.route": "/ask/{name}",
        "http.response.status_code": 200,
    }
    # Whoever is asked because of this request hears of its span, not of the one before it.
    assert answer.json() == [f"00-{TRACE_ID}-{_own(request).span_id:016x}-01"]
    assert _own(request).trace_state == {"vendor": "1"}
    assert not any(word in span.to_json() for span in spans.all for word in ("secret", "parental"))


def test_a_request_of_no_trace_begins_one(sample_index: Path, spans: Spans) -> None:
    with Index(sample_index, recorder=spans.recorder) as index:
        app = _application(index, spans)
        asyncio.run(_get(app, "/ask/1?q=leave", {"traceparent": "00-nonsense"}))
        asyncio.run(_get(app, "/fails", {}))
    roots = {span.name: span for span in spans.all if span.parent is None}
    assert set(roots) == {"GET /ask/{name}", "GET /fails"}
    assert not roots["GET /fails"].status.is_ok
    assert QUESTION not in roots["GET /fails"].to_json()
    assert trace.get_current_span() is trace.INVALID_SPAN  # nothing of a request is left behind


def test_sources_in_threads_of_their_own_belong_to_their_question(sample_index: Path, spans: Spans) -> None:
    class Other:
        def __init__(self, name: str) -> None:
            self.name = name

        def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
            with spans.recorder.time(self.name):
                return Retrieved([], SourceCoverage(self.name, "ok"))

    with Index(sample_index) as index, index.catalog.snapshot() as reader:
        find(
            reader,
            Question("leave"),
            [Other("memories"), Other("code")],
            limit=1,
            sieve=Sieve(),
            recorder=spans.recorder,
        )
    assert {("", "retrieve"), ("retrieve", "memories"), ("retrieve", "code")} <= spans.tree()


def test_a_program_without_our_service_may_name_the_trace(spans: Spans) -> None:
    token = TRACE.set({"traceparent": TRACEPARENT})
    with spans.recorder.time("ask"), spans.recorder.time("fit"):
        pass
    TRACE.reset(token)
    assert spans.tree() == {(PARENT_ID, "ask"), ("ask", "fit")}


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ([("traceparent", TRACEPARENT)], {"traceparent": TRACEPARENT}),
        (
            [("host", "x"), ("traceparent", TRACEPARENT), ("tracestate", "a=1"), ("tracestate", "b=2")],
            {"traceparent": TRACEPARENT, "tracestate": "a=1,b=2"},
        ),
        ([("traceparent", TRACEPARENT), ("tracestate", "x" * 600)], {"traceparent": TRACEPARENT}),
        (
            [("traceparent", f"01-{TRACE_ID}-{PARENT_ID}-01-more")],
            {"traceparent": f"01-{TRACE_ID}-{PARENT_ID}-01-more"},
        ),
        ([("tracestate", "a=1")], {}),
        ([("traceparent", TRACEPARENT), ("traceparent", TRACEPARENT)], {}),
        ([("traceparent", f"00-{TRACE_ID}-{PARENT_ID}-01-more")], {}),
        ([("traceparent", f"ff-{TRACE_ID}-{PARENT_ID}-01")], {}),
        ([("traceparent", f"00-{'0' * 32}-{PARENT_ID}-01")], {}),
        ([("traceparent", f"00-{TRACE_ID}-{'0' * 16}-01")], {}),
        ([("traceparent", TRACEPARENT.upper())], {}),
        ([("traceparent", f"{TRACEPARENT}\r\nX: y")], {}),
        ([("traceparent", "")], {}),
    ],
)
def test_only_what_the_standard_allows_is_taken_up(headers: list[tuple[str, str]], taken: dict[str, str]) -> None:
    assert taken_up([(name.encode(), value.encode()) for name, value in headers]) == taken


@pytest.mark.parametrize(
    ("environment", "exporters"),
    [
        ({}, []),
        ({"OTEL_SERVICE_NAME": "mine"}, []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317"}, ["otlp"]),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4317"}, ["otlp"]),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:4317"}, []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", "OTEL_TRACES_EXPORTER": "none"}, []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", "OTEL_SDK_DISABLED": "True"}, []),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ["otlp"]),
        ({"OTEL_TRACES_EXPORTER": " console, otlp,console"}, ["console", "otlp"]),
        ({"OTEL_TRACES_EXPORTER": "", "OTEL_EXPORTER_OTLP_ENDPOINT": " "}, []),
    ],
)
def test_the_standard_variables_say_where_spans_go(environment: dict[str, str], exporters: list[str]) -> None:
    assert span_exporters(environment) == exporters


def test_without_an_exporter_there_is_nothing() -> None:
    assert isinstance(recorder_for({}), NullRecorder)
    code = (
        "import sys\n"
        "from research.observe.recorder import recorder_for, NullRecorder\n"
        "recorder_for({'OTEL_SERVICE_NAME': 'mine'}, NullRecorder())\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'research.observe.open'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_the_console_is_stderr_and_the_rest_is_sent_at_the_end(sample_index: Path) -> None:
    code = (
        "import os, sys\n"
        "from research import Index\n"
        "from research.observe.recorder import close_recorder, recorder_for\n"
        "recorder = recorder_for(os.environ)\n"
        f"Index(sys.argv[1], recorder=recorder).search({QUESTION!r})\n"
        "close_recorder(recorder)\n"
        "os._exit(0)"
    )
    environment = {"OTEL_TRACES_EXPORTER": "console", "OTEL_SERVICE_NAME": "the library"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(sample_index)], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout == ""
    found = list(_documents(done.stderr))
    assert {span["name"] for span in found} == {"search", "retrieve", "fuse", "passages"}
    assert {span["resource"]["attributes"]["service.name"] for span in found} == {"the library"}
    assert "parental" not in done.stderr


def _documents(text: str) -> Iterator[dict[str, Any]]:
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        document, end = decoder.raw_decode(text[at:].lstrip())
        at = len(text) - len(text[at:].lstrip()) + end
        yield document


class _Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """A real receiver of OTLP, of one call."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.services: set[str] = set()

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802
        for resource in request.resource_spans:
            known = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.services.add(known["service.name"])
            self.names |= {span.name for scope in resource.scope_spans for span in scope.spans}
        return ExportTraceServiceResponse()


def test_spans_arrive_over_otlp(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = _Collector()
    server = grpc.server(futures.ThreadPoolExecutor(1))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    recorder = recorder_for(os.environ)
    with recorder.time("retrieve"):
        pass
    close_recorder(recorder)
    server.stop(None).wait()
    assert (collector.services, collector.names) == ({"ctx"}, {"retrieve"})
    # Ours alone: for the whole process it would switch on what our dependencies tell.
    assert not isinstance(trace.get_tracer_provider(), TracerProvider)


@pytest.mark.parametrize(
    ("protocol", "missing", "package"),
    [
        ("grpc", ["grpc"], "opentelemetry-exporter-otlp-proto-grpc"),
        ("http/protobuf", ["http"], "opentelemetry-exporter-otlp-proto-http"),
        ("", ["grpc", "http"], "opentelemetry-exporter-otlp-proto-http"),
    ],
)
def test_without_an_exporters_package_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, protocol: str, missing: list[str], package: str
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, f"opentelemetry.exporter.otlp.proto.{name}.trace_exporter", None)
    with pytest.raises(CtxError) as raised:
        recorder_for({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
    assert raised.value.hint == f"pip install {package}, or switch it off: OTEL_SDK_DISABLED=true"


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "research.observe.exporters")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(CtxError, match="opentelemetry-sdk is not installed") as raised:
        recorder_for({"OTEL_TRACES_EXPORTER": "console"})
    assert raised.value.hint.startswith("pip install 'ctx-research[serve]'")


def test_what_nobody_can_export_with_is_said() -> None:
    with pytest.raises(UsageError, match="zipkin"):
        recorder_for({"OTEL_TRACES_EXPORTER": "zipkin"})
    with pytest.raises(UsageError, match="http/json"):
        recorder_for({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"})
