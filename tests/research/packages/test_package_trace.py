"""One trace from the request to the package, as the real SDK of OpenTelemetry exports it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from research.errors import CtxError
from research.governance import Audit
from research.index import Index
from research.observe.exporters import OpenTelemetryRecorder

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
ASKED = "why do uploads stop and are parts sent again"

Traced = tuple[Index, InMemorySpanExporter]


@pytest.fixture
def traced(root: Path) -> Iterator[Traced]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with Index.open(root, recorder=OpenTelemetryRecorder(provider)) as index:
        yield index, exporter


def test_one_trace_from_request_to_package(traced: Traced) -> None:
    index, exporter = traced
    package = index.packages.build({"intent": ASKED, "traceId": TRACE_ID, "tokenBudget": 200})
    spans = exporter.get_finished_spans()
    assert {f"{span.context.trace_id:032x}" for span in spans if span.context} == {TRACE_ID} == {package.trace_id}
    names = {span.name for span in spans}
    stages = ("retrieve", "rank", "govern", "passages", "fit", "store")
    assert names >= {"package", *(f"package_{stage}" for stage in stages)}
    assert [entry.trace_id for entry in index.policy.audit().entries(limit=1)] == [TRACE_ID]
    told = repr([(span.name, dict(span.attributes or {}), [e.attributes for e in span.events]) for span in spans])
    assert "upload" not in told, "spans hold names and numbers, no text"


def test_without_a_name_the_package_has_that_of_the_trace(traced: Traced) -> None:
    index, exporter = traced
    package = index.packages.build({"intent": ASKED})
    assert {f"{span.context.trace_id:032x}" for span in exporter.get_finished_spans() if span.context} == {
        package.trace_id
    }
    exporter.clear()
    named = index.packages.build({"intent": ASKED, "traceId": "ticket-7"})
    [span] = [span for span in exporter.get_finished_spans() if span.name == "package"]
    assert named.trace_id == "ticket-7"
    assert [dict(event.attributes or {}) for event in span.events] == [{"trace_id": "ticket-7"}]


def test_errors_carry_the_trace(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    index, exporter = traced

    def fail(*_: object, **__: object) -> None:
        raise CtxError("the disk is full")

    monkeypatch.setattr(Audit, "record", fail)
    with pytest.raises(CtxError) as error:
        index.packages.build({"intent": ASKED, "traceId": TRACE_ID})
    assert error.value.trace_id == TRACE_ID
    [span] = [span for span in exporter.get_finished_spans() if span.name == "package"]
    assert dict(span.attributes or {}) == {"error.type": "CtxError"}
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == TRACE_ID
