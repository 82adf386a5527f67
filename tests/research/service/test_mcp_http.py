"""`/mcp`: the tools over HTTP, behind a guard that says who asks, driven by the SDK's own client and by hand."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ImageContent

from research.governance import Principal
from research.index import Index
from research.service.jobs import JobRunner
from research.service.mcp.mount import McpMount
from research.service.mcp.server import build_server
from research.service.service import ServeOptions, Service
from tests.mcp_driving import Driver, driven, fields_of, text_of, wire_tokens

pytestmark = pytest.mark.usefixtures("loopback")

HANDBOOK = "saltmarsh-handbook-2025.pdf"
LEAVE = "How long is parental leave under the 2025 handbook?"
MODERN = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}

# An ingest that says it has begun, and then nothing for a minute.
ENDLESS = """
import signal, time, sys
print('{"event": "progress", "stage": "read", "done": 1, "total": 2}', flush=True)
time.sleep(60)
"""


def endless(paths: Sequence[Path]) -> Popen[bytes]:
    import sys

    return Popen([sys.executable, "-c", ENDLESS], stdout=PIPE)


@dataclass
class Served:
    """A real server with nothing but the mount and a stand-in for the guard: `x-caller` says who asks."""

    index: Path
    roots: tuple[Path, ...] = ()
    made: list[Any] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def make(self) -> Any:
        time.sleep(0.05)  # so that many come before it is made
        self.made.append(build_server(self._service, jobs=self.jobs if self.roots else None, roots=self.roots))
        return self.made[-1]

    def states(self) -> set[str]:
        return {each["state"] for each in self.jobs.documents()}

    @contextmanager
    def running(self) -> Iterator[Served]:
        ready, loops = threading.Event(), []

        async def main() -> None:
            self._service = Service(Index(self.index), ServeOptions())
            self.jobs = JobRunner(endless)
            mount = McpMount(self.make)

            async def app(scope: Any, receive: Any, send: Any) -> None:
                if scope["type"] == "http":
                    who = dict(scope["headers"]).get(b"x-caller", b"owner").decode()
                    scope.setdefault("state", {})["caller"] = Principal(who, "", owner=who == "owner")
                    await mount(scope, receive, send)

            server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))

            async def stop() -> None:
                self.jobs.begin_stop()  # before connections are waited for: what runs in them ends by it
                server.should_exit = True

            loops.append((asyncio.get_running_loop(), stop))
            serving = asyncio.create_task(server.serve())
            while not server.started:
                await asyncio.sleep(0.005)
            self.port = server.servers[0].sockets[0].getsockname()[1]
            ready.set()
            await serving
            self.jobs.stop(5)
            await mount.close()
            self.after_close = await self._ask_closed(mount)
            closing = self._service.close()
            if closing is not None:
                await closing

        thread = threading.Thread(target=lambda: asyncio.run(main()))
        thread.start()
        assert ready.wait(30)
        try:
            yield self
        finally:
            loop, stop = loops[0]
            asyncio.run_coroutine_threadsafe(stop(), loop)
            thread.join(60)
            assert not thread.is_alive()

    async def _ask_closed(self, mount: McpMount) -> int:
        """What is answered once it has ended."""
        sent: list[dict[str, Any]] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        await mount({"type": "http", "method": "POST", "headers": []}, receive, send)
        return int(sent[0]["status"])


@pytest.fixture(scope="module")
def served(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("root")
    with Served(sample_index, (root,)).running() as server:
        yield server
    assert server.after_close == 503


@contextmanager
def agent_of(served: Served, caller: str = "owner", **options: Any) -> Iterator[Driver]:
    async def close() -> None:
        await http.aclose()

    http = httpx2.AsyncClient(headers={"x-caller": caller, **options.pop("headers", {})}, timeout=60)
    with driven(streamable_http_client(served.url, http_client=http), **options) as driver:
        yield driver
        driver.portal.call(close)


def body(method: str, **params: Any) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def asking(question: str = LEAVE, **more: Any) -> dict[str, Any]:
    return body("tools/call", name="ask", arguments={"question": question, **more})


def headers_for(tool: str = "ask") -> dict[str, str]:
    return {**MODERN, "mcp-method": "tools/call", "mcp-name": tool}


def test_nothing_is_made_before_the_first_request_and_then_once(served: Served) -> None:
    assert served.made == []

    async def many() -> list[int]:
        async with httpx2.AsyncClient(timeout=60) as client:
            asked = [client.post(served.url, json=asking(), headers=headers_for()) for _ in range(12)]
            return [response.status_code for response in await asyncio.gather(*asked)]

    assert asyncio.run(many()) == [200] * 12
    assert len(served.made) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_over_http(served: Served, mode: str) -> None:
    with agent_of(served, mode=mode) as agent:
        assert agent.client.instructions
        result = agent.call("ask", question=LEAVE, max_tokens=800)
        assert "18 weeks" in text_of(result)
        assert wire_tokens(result) <= 800
        assert fields_of(agent.call("search", question="parental leave"))["results"]
        assert "18 weeks" in agent.said("get_page", document=HANDBOOK, page=7)
        assert "5.3 Sick leave" in agent.said("outline", document=HANDBOOK)
        assert HANDBOOK in agent.said("list_documents")
        assert isinstance(agent.call("page_image", document=HANDBOOK, page=7).content[1], ImageContent)
        [uri] = [each.uri for each in agent.do("list_resources").resources if each.name == HANDBOOK]
        assert "18 weeks" in agent.do("read_resource", f"{uri}/page/7").contents[0].text
        with pytest.raises(MCPError, match="1 to 13"):
            agent.do("read_resource", f"{uri}/page/99")
        assert "list_documents" in agent.refused("get_page", document="nobody.pdf")


def test_only_the_owner_may_add_documents(served: Served) -> None:
    with agent_of(served, "guest") as guest:
        assert "ingest" not in [tool.name for tool in guest.do("list_tools").tools]
        assert "there is no tool 'ingest'" in guest.refused("ingest", paths=["."])
    with agent_of(served) as owner:
        assert "ingest" in [tool.name for tool in owner.do("list_tools").tools]
        assert "not in a folder" in owner.refused("ingest", paths=["/etc"])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_ingest_ends_with_the_client_that_waits_for_it(served: Served, mode: str) -> None:
    told: list[str | None] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message)

    with agent_of(served, mode=mode) as agent:

        async def given_up() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(
                    partial(agent.client.call_tool, "ingest", {"paths": ["."]}, progress_callback=progress)
                )
                with anyio.fail_after(30):
                    while not told:
                        await anyio.sleep(0.01)
                group.cancel_scope.cancel()

        agent.portal.call(given_up)
    assert told[0] == "reading, 1 of 2"
    over = time.monotonic() + 30
    while served.states() != {"cancelled"} and time.monotonic() < over:
        time.sleep(0.01)
    assert served.states() == {"cancelled"}


def test_a_client_that_goes_away_in_the_middle_costs_nothing(served: Served) -> None:
    for _ in range(5):
        with pytest.raises(httpx2.TimeoutException), httpx2.Client(timeout=0.001) as client:
            client.post(served.url, json=asking(), headers=headers_for())
    with httpx2.Client(timeout=60) as client:
        assert client.post(served.url, json=asking(), headers=headers_for()).status_code == 200


def test_a_client_is_known_by_its_header_where_it_says_nothing_else(served: Served) -> None:
    """Without a session, older clients name themselves once, in a request that is forgotten."""
    with agent_of(served, mode="legacy", headers={"user-agent": "claude-code/2.1.280 (cli)"}) as agent:
        result = agent.call("ask", question=LEAVE, max_tokens=800)
        assert "18 weeks" in fields_of(result)["text"]
        assert wire_tokens(result) <= 800


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"])
def test_only_post_is_served(served: Served, method: str) -> None:
    with httpx2.Client(timeout=60) as client:
        answer = client.request(method, served.url, headers={"accept": "text/event-stream"})
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"no json", MODERN, 400),
        (b"[]", MODERN, 400),
        (b"[" * 100_000, MODERN, 400),
        (json.dumps(body("nonsense/method")).encode(), {**MODERN, "mcp-method": "nonsense/method"}, 404),
        (json.dumps(asking()).encode(), {**headers_for(), "host": "evil.example"}, 200),  # the guard's business
        (b"{}" * 3_000_000, MODERN, 413),
        (b"no json", {"accept": "application/json, text/event-stream"}, 400),
    ],
)
def test_what_is_no_request_is_refused(served: Served, content: bytes, headers: dict[str, str], status: int) -> None:
    with httpx2.Client(timeout=60) as client:
        answer = client.post(served.url, content=content, headers={"content-type": "application/json", **headers})
    assert answer.status_code == status
    assert "Traceback" not in answer.text


def test_halves_of_characters_are_no_trouble(served: Served) -> None:
    text = json.dumps(asking("parental \ud83d leave"))
    with httpx2.Client(timeout=60) as client:
        sent = {"content-type": "application/json", **headers_for()}
        answer = client.post(served.url, content=text.encode(), headers=sent)
    assert answer.json()["result"]["structuredContent"]["sources"]


def test_one_that_was_never_asked_ends_at_once(sample_index: Path) -> None:
    with Served(sample_index).running() as server:
        pass
    assert server.made == []
    assert server.after_close == 503


def test_what_runs_at_the_end_is_ended(sample_index: Path, tmp_path: Path) -> None:
    """An ingest that would take a minute: it ends in good order, and its client hears of it."""
    server = Served(sample_index, (tmp_path,))
    answers: list[dict[str, Any]] = []

    def wait() -> None:
        request = body("tools/call", name="ingest", arguments={"paths": ["."]})
        with httpx2.Client(timeout=60) as client:
            answers.append(client.post(server.url, json=request, headers=headers_for("ingest")).json())

    client = threading.Thread(target=wait)
    with server.running():
        client.start()
        while server.states() != {"running"}:
            time.sleep(0.01)
    client.join(60)
    assert not server.states() & {"queued", "running"}
    assert answers[0]["result"]["structuredContent"]["interrupted"] is True
