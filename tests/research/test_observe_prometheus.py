"""What Prometheus reads of ctx, read back by the parser of its own client."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from research import Index
from research.errors import CtxError
from research.governance import owner_principal
from research.observe import NullRecorder, PrometheusRecorder, Recorder, Recorders
from research.service.metrics import Measured, metrics_router

QUESTION = "How many weeks of parental leave does the handbook give?"
STAGES = {"ask", "retrieve", "fuse", "govern", "passages", "fit", "render", "answer"}


def _samples(recorder: PrometheusRecorder) -> dict[tuple[str, ...], float]:
    """name and values of labels → value"""
    text, content_type = recorder.render()
    assert content_type.startswith("text/plain")
    families = text_string_to_metric_families(text.decode())
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_times_and_counts_have_names_of_their_own() -> None:
    recorder = PrometheusRecorder()
    with recorder.time("retrieve"):
        pass
    with pytest.raises(KeyError), recorder.time("retrieve"):
        raise KeyError
    recorder.count("pages_read", 12, reader="pdf")
    recorder.count("pages_read", 3, reader="pdf")
    recorder.event("generation_published", number=7)
    found = _samples(recorder)
    assert found["ctx_retrieve_seconds_count",] == 2
    assert found["ctx_retrieve_seconds_bucket", "+Inf"] == 2
    assert found["ctx_pages_read_total", "pdf"] == 15
    assert found["ctx_events_total", "generation_published"] == 1
    assert found["process_resident_memory_bytes",] > 0


def test_whatever_is_said_nothing_raises() -> None:
    recorder = PrometheusRecorder()
    recorder.count("asked", kind="a")
    recorder.count("asked")
    recorder.count("asked", other="b", kind="a")
    recorder.count("asked", -5, kind="a")
    recorder.count("Größe der Seite, 1!")
    with recorder.time(""):
        pass
    with recorder.time("retrieve"), recorder.time("retrieve"):
        pass
    found = _samples(recorder)
    assert (found["ctx_asked_total", "a"], found["ctx_asked_total", ""]) == (2, 1)
    assert found["ctx_gr_e_der_seite_1_total",] == 1
    assert found["ctx_unnamed_seconds_count",] == 1


def test_many_threads_at_once_lose_nothing() -> None:
    recorder = PrometheusRecorder()

    def use(number: int) -> None:
        with recorder.time("fit"):
            recorder.count("asked", kind=str(number % 5))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(400)))
    found = _samples(recorder)
    assert found["ctx_fit_seconds_count",] == 400
    assert [found["ctx_asked_total", str(kind)] for kind in range(5)] == [80] * 5


def test_gauges_are_read_when_somebody_looks(caplog: pytest.LogCaptureFixture) -> None:
    recorder, waiting = PrometheusRecorder(), [3]
    recorder.gauge("questions_waiting", "Questions that wait.", lambda: waiting[0])
    recorder.gauge("jobs", "Ingests by state.", lambda: {"queued": 2, "running": 1}, "state")
    recorder.gauge("broken", "Cannot be read.", lambda: 1 / 0)
    assert _samples(recorder)["ctx_questions_waiting",] == 3
    waiting[0] = 4
    found = _samples(recorder)
    assert found["ctx_questions_waiting",] == 4
    assert (found["ctx_jobs", "queued"], found["ctx_jobs", "running"]) == (2, 1)
    assert not any(key[0] == "ctx_broken" for key in found)
    assert "the gauge ctx_broken cannot be read" in caplog.text


def test_openmetrics_for_those_who_accept_it() -> None:
    recorder = PrometheusRecorder()
    recorder.count("questions")
    text, content_type = recorder.render("application/openmetrics-text; version=nonsense, */*")
    assert content_type.startswith("application/openmetrics-text")
    families = parse_openmetrics(text.decode())  # type: ignore[no-untyped-call]
    assert "ctx_questions" in {family.name for family in families}


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(CtxError) as raised:
        PrometheusRecorder()
    assert raised.value.hint == "pip install 'ctx-research[serve]'"


def test_the_stages_of_a_question(sample_index: Path) -> None:
    recorder = PrometheusRecorder()
    with Index(sample_index, recorder=recorder) as index:
        assert index.ask(QUESTION).sources
        asked = _samples(recorder)
        index.search(QUESTION)
    assert {stage: asked[f"ctx_{stage}_seconds_count",] for stage in STAGES} == dict.fromkeys(STAGES, 1)
    assert asked["ctx_items_total",] > 0
    found = _samples(recorder)
    assert [found[f"ctx_{stage}_seconds_count",] for stage in ("search", "retrieve", "fuse", "ask")] == [1, 2, 2, 1]


class _Broken:
    """Fails at everything, as a recorder of somebody else may."""

    def __init__(self, *, later: bool = False) -> None:
        self._later = later

    def time(self, stage: str) -> Any:
        if not self._later:
            raise OSError(stage)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> bool:
        raise OSError("at the end")

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        raise OSError(name)

    def event(self, name: str, **fields: str | int | float) -> None:
        raise OSError(name)

    def request(self, method: str, trace: object) -> Any:
        raise OSError(method)

    def close(self) -> None:
        raise OSError("close")


class _Swallowing(NullRecorder):
    """Says that it has dealt with whatever was raised."""

    def time(self, stage: str) -> Any:
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> bool:
        return True


@pytest.mark.parametrize("broken", [_Broken(), _Broken(later=True)])
def test_a_recorder_that_fails_breaks_no_question(
    sample_index: Path, broken: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    sound = PrometheusRecorder()
    with Index(sample_index, recorder=Recorders(broken, sound)) as index:
        assert index.ask(QUESTION).sources
    assert _samples(sound)["ctx_ask_seconds_count",] == 1
    with Index(sample_index, recorder=broken) as index:
        assert index.search(QUESTION).results
    assert caplog.text.count("_Broken failed: OSError") == 2  # once for each of the two, however often it fails


def test_all_are_told_and_none_decides_for_the_others(caplog: pytest.LogCaptureFixture) -> None:
    sound = PrometheusRecorder()
    together = Recorders(_Broken(), sound, _Swallowing())
    with pytest.raises(KeyError), together.time("fit"):
        raise KeyError
    together.count("asked", 2)
    together.event("published")
    together.request("GET", {})("/", 200)
    together.close()
    found = _samples(sound)
    assert found["ctx_fit_seconds_count",] == 1
    assert found["ctx_asked_total",] == 2
    assert found["ctx_http_requests_total", "GET", "/", "200"] == 1
    assert "_Broken could not be closed" in caplog.text


def _application(recorder: PrometheusRecorder) -> Measured:
    app = FastAPI()
    app.add_api_route("/api/documents/{doc_id}", _document)
    app.add_api_route("/fails", _fails)
    app.include_router(metrics_router(recorder))

    @app.middleware("http")
    async def as_owner(request: Request, answer: Any) -> Any:
        request.state.caller = owner_principal()
        return await answer(request)

    return Measured(app, Recorders(recorder))


async def _document(doc_id: str) -> str:
    return doc_id


async def _fails() -> None:
    raise ValueError("the text of a page")


async def _get(app: Any, *requests: tuple[str, str]) -> list[httpx.Response]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://ctx") as client:
        return [await client.request(method, path) for method, path in requests]


def test_requests_are_counted_by_the_template_of_their_route() -> None:
    recorder = PrometheusRecorder()
    requests = [
        *[("GET", f"/api/documents/{number}") for number in range(30)],
        ("DELETE", "/api/documents/1"),
        ("BREW", "/api/documents/1"),
        ("GET", "/nothing/of/the/kind?q=secret"),
        ("GET", "/fails"),
        ("GET", "/metrics"),
    ]
    answers = asyncio.run(_get(_application(recorder), *requests))
    assert answers[-1].headers["content-type"].startswith("text/plain")
    assert answers[-1].headers["cache-control"] == "no-store"
    assert "secret" not in answers[-1].text
    found = _samples(recorder)
    counted = {key[1:]: value for key, value in found.items() if key[0] == "ctx_http_requests_total"}
    assert counted == {
        ("GET", "/api/documents/{doc_id}", "200"): 30,
        ("DELETE", "/api/documents/{doc_id}", "405"): 1,
        ("other", "/api/documents/{doc_id}", "405"): 1,
        ("GET", "none", "404"): 1,
        ("GET", "/fails", "500"): 1,
        ("GET", "/metrics", "200"): 1,
    }
    assert found["ctx_http_request_seconds_count", "/api/documents/{doc_id}"] == 32


def test_who_leaves_before_an_answer_is_counted_too() -> None:
    recorder = PrometheusRecorder()

    async def never_answers(*_: Any) -> None:
        pass

    asyncio.run(Measured(never_answers, recorder)({"type": "http", "method": "GET", "headers": []}, _none, _none))
    assert _samples(recorder)["ctx_http_requests_total", "GET", "none", "499"] == 1


def test_a_recorder_that_knows_no_requests_changes_nothing() -> None:
    async def answers(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"here"})

    [answer] = asyncio.run(_get(Measured(answers, NullRecorder()), ("GET", "/")))
    assert answer.text == "here"


async def _none(*_: Any) -> Any:
    return None
