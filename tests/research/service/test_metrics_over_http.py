"""What a whole server tells of itself at /metrics, and the trace that a request belongs to."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from research.index import Index
from tests.research.service.serving_app import Whole

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


class Running(Whole):
    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.send("GET", path, headers=headers)

    async def samples(self) -> dict[tuple[str, ...], float]:
        """name and values of labels → value"""
        answer = await self.get("/metrics")
        assert answer.status_code == 200
        families = text_string_to_metric_families(answer.text)
        return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


@pytest.fixture
def running(sample_index: Path, tmp_path: Path) -> Iterator[Running]:
    shutil.copytree(sample_index, tmp_path / "index")
    made = Running.of(tmp_path / "index", tmp_path)
    yield made
    made.close()


def _run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_requests_questions_and_jobs(running: Running) -> None:
    async def work() -> None:
        assert (await running.get("/api/search?q=parental+leave")).status_code == 200
        assert (await running.get("/api/documents/0123456789abcdef")).status_code == 404
        assert (await running.get("/api/documents/0123456789abcdef", Authorization="Bearer guessed")).status_code == 401
        found = await running.samples()
        assert found["ctx_http_requests_total", "GET", "/api/search", "200"] == 1
        assert found["ctx_http_requests_total", "GET", "/api/documents/{doc_id}", "404"] == 1
        assert found["ctx_http_requests_total", "GET", "none", "401"] == 1
        assert found["ctx_http_request_seconds_count", "/api/search"] == 1
        assert [found[f"ctx_{stage}_seconds_count",] for stage in ("search", "retrieve", "fuse")] == [1, 1, 1]
        assert (found["ctx_questions_in_work",], found["ctx_questions_waiting",]) == (0, 0)
        states = ("queued", "running", "done", "failed", "interrupted", "cancelled")
        assert {state: found["ctx_jobs", state] for state in states} == dict.fromkeys(states, 0)
        assert not any("parental" in part or "0123456789abcdef" in part for key in found for part in key)

    _run(work())


def test_questions_in_work_are_seen_while_they_are(running: Running) -> None:
    async def work() -> None:
        release = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait(_: Index) -> None:
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result()

        most = running.made.service.options.limits.questions
        asked = [asyncio.create_task(running.made.service.asked(wait)) for _ in range(most + 3)]
        await asyncio.sleep(0)
        found = await running.samples()
        assert (found["ctx_questions_in_work",], found["ctx_questions_waiting",]) == (most, 3)
        release.set()
        await asyncio.gather(*asked)
        found = await running.samples()
        assert (found["ctx_questions_in_work",], found["ctx_questions_waiting",]) == (0, 0)

    _run(work())


def test_strangers_do_not_read_it(running: Running) -> None:
    async def work() -> None:
        answer = await running.get("/metrics", Authorization="")
        assert answer.status_code == 401
        assert "ctx_" not in answer.text

    _run(work())


def test_spans_are_exported_where_the_environment_says_so(
    sample_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    running = Running.of(sample_index, tmp_path)

    async def work() -> None:
        traceparent = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
        answer = await running.get("/api/search?q=parental+leave", traceparent=traceparent)
        assert answer.status_code == 200
        await running.made.service.close()  # sends what is left

    _run(work())
    told = capsys.readouterr().err
    names = ("GET /api/search", "search", "retrieve", "fuse", "passages")
    assert [name for name in names if f'"name": "{name}"' not in told] == []
    assert told.count(f'"trace_id": "0x{TRACE_ID}"') >= len(names)
    assert "parental" not in told
