"""Events: heard by the log, a file and a real Redis; ids and numbers alone; and nobody who fails costs anything."""

from __future__ import annotations

import json
import logging
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from research.packages import events as module
from research.packages.cache import RedisLink
from research.packages.events import Event, Events, FileSubscriber, StreamSubscriber, events_for
from research.settings import Settings
from tests.research.packages.redis_server import RedisServer

ROOT = Path(__file__).parents[3]
WHO = {"principal": "ann", "tenant": "lab", "trace_id": "ab" * 16}
ALL = (
    Event("ContextBuildRequested", **WHO, request_id="r1", token_budget=6000, pinned=2),
    Event("ContextPackageBuilt", **WHO, package_id="p1", request_id="r1", decision_id="d1", tokens_used=5, denied=1),
    Event("ContextPackageExpired", **WHO, package_id="p1", request_id="r1"),
    Event("AccessDenied", **WHO, decision_id="d1", purpose="package", denied=1, decided=4),
)


@pytest.fixture
def server(loopback: None) -> Iterator[RedisServer]:
    with closing(RedisServer()) as server:
        server.start()
        yield server


def test_everybody_hears_of_everything(tmp_path: Path, server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "new" / "events.jsonl"
    events = events_for(Settings(events_file=str(file), redis_url=server.url))
    with caplog.at_level(logging.INFO, "ctx.events"):
        for event in ALL:
            events.tell(event)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines == list(ALL)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {"event", "contextPackageId", "contextBuildRequestId", "policyDecisionId", "traceId", "tokensUsed"} <= set(
        lines[1]
    )
    with server.client() as client:
        stream = client.xrange(module.STREAM)
    assert [json.loads(fields[b"data"]) for _, fields in stream] == lines
    assert [record.getMessage().split()[0] for record in caplog.records] == [f"event={line['event']}" for line in lines]
    assert "contextPackageId=p1" in caplog.text


def test_a_name_cannot_forge_a_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    forged = 'x"}\n{"event": "forged"}'
    evil = Event("AccessDenied", principal=forged, tenant="a b=c", trace_id="\ud800" * 999, package_id="p\r\n")
    with caplog.at_level(logging.INFO, "ctx.events"):
        events_for(Settings(events_file=str(tmp_path / "f"))).tell(evil)
    [line] = (tmp_path / "f").read_bytes().splitlines()
    assert json.loads(line)["principal"] == forged
    assert len(line) < 3000
    assert "\n" not in caplog.records[0].getMessage()


def test_who_fails_is_named_once_and_costs_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    class Raises:
        def hear(self, event: Event) -> None:
            raise RuntimeError("the text of a document")

    class Hears:
        def hear(self, event: Event) -> None:
            heard.append(event)

    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    broken = [FileSubscriber(tmp_path / "file" / "below"), FileSubscriber(tmp_path / "link"), Raises()]
    events = Events([*broken, Hears()])
    for event in ALL:
        events.tell(event)
    assert heard == list(ALL)
    assert (tmp_path / "file").read_bytes() == b"", "a link is not followed"
    assert len(caplog.records) == 2, "one for each kind"
    assert "the text of a document" not in caplog.text


def test_a_redis_that_is_gone(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    events = Events([StreamSubscriber(RedisLink(server.url, pause=0.0))])
    events.tell(ALL[0])
    server.kill()
    for event in ALL:
        events.tell(event)
    server.start()
    events.tell(ALL[1])
    with server.client() as client:
        assert client.xlen(module.STREAM) == 1
    assert len([record for record in caplog.records if "Redis is not used" in record.getMessage()]) == 1


def test_file_and_stream_are_bounded(tmp_path: Path, server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST_FILE", 2000)
    monkeypatch.setattr(module, "_MOST_IN_STREAM", 100)
    events = events_for(Settings(events_file=str(tmp_path / "f"), redis_url=server.url))
    for _ in range(300):
        events.tell(ALL[0])
    assert {"f.1"} <= {path.name for path in tmp_path.iterdir()} <= {"f", "f.1"}
    assert all(path.stat().st_size < 2500 for path in tmp_path.iterdir())
    with server.client() as client:
        assert 100 <= client.xlen(module.STREAM) <= 220


def test_lines_of_several_processes_are_whole(tmp_path: Path) -> None:
    program = (
        "import sys; from research.packages.events import *\n"
        "file = FileSubscriber(sys.argv[1])\n"
        "for number in range(300):\n"
        "    file.hear(Event('AccessDenied', principal='a' * 150, package_id=str(number)))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "f")], cwd=ROOT) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    lines = [json.loads(line) for line in (tmp_path / "f").read_text().splitlines()]
    assert sorted(int(line["contextPackageId"]) for line in lines) == sorted([*range(300)] * 2)
