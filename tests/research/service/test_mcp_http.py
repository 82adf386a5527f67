"""`/mcp`: the tools over HTTP, by tokens, driven by the SDK's own client and by hand."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import anyio
import httpx2
import pytest
from mcp import MCPError
from mcp.types import ImageContent

from research.service.tokens import make_token
from research.settings import Settings
from research.store import IndexPaths
from tests.mcp_driving import Driver, agent_over_http, fields_of, text_of, wire_tokens
from tests.served import Served, served_here
from tests.serving import allow_loopback

HANDBOOK = "saltmarsh-handbook-2025.pdf"
LEAVE = "How long is parental leave under the 2025 handbook?"
MODERN = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}

# An ingest that says it has begun, and then nothing for a minute.
ENDLESS = """
import time
print('{"event": "progress", "stage": "read", "done": 1, "total": 2}', flush=True)
time.sleep(60)
"""


def endless(index: Path, settings: Settings, paths: Sequence[Path]) -> Popen[bytes]:
    return Popen([sys.executable, "-c", ENDLESS], stdout=PIPE)


def url(served: Served) -> str:
    return f"http://127.0.0.1:{served.port}/mcp"


def client(served: Served, **options: Any) -> httpx2.Client:
    return httpx2.Client(headers={"authorization": f"Bearer {served.token}"}, **{"timeout": 60, **options})


def states(served: Served) -> set[str]:
    """Of the ingests that the server knows of."""
    with client(served) as asking:
        return {job["state"] for job in asking.get(url(served).replace("/mcp", "/api/ingest")).json()["jobs"]}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def guest_token(sample_index: Path, state: Path) -> str:
    store = state / "ctx" / "serve" / "tokens.json"
    return make_token(IndexPaths(sample_index), "guest", "guest", store=store)[0].reveal()


@pytest.fixture(scope="module")
def served(sample_index: Path, state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder, root = tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("root")
    with pytest.MonkeyPatch.context() as patch:
        allow_loopback(patch)
        patch.setenv("XDG_STATE_HOME", str(state))
        with served_here(sample_index, folder, start=endless, allow_ingest=True, roots=(root,)) as server:
            yield server


@pytest.fixture(autouse=True)
def _loopback(loopback: None, served: Served) -> None:
    """This process may reach the server."""


def agent_of(served: Served, token: str = "", **options: Any) -> AbstractContextManager[Driver]:
    return agent_over_http(served.port, token or served.token, **options)


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


def test_many_first_requests_are_answered(served: Served) -> None:
    async def many() -> list[int]:
        async with httpx2.AsyncClient(timeout=60, headers={"authorization": f"Bearer {served.token}"}) as client:
            asked = [client.post(url(served), json=asking(), headers=headers_for()) for _ in range(12)]
            return [response.status_code for response in await asyncio.gather(*asked)]

    assert asyncio.run(many()) == [200] * 12


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


def test_only_the_owner_may_add_documents(served: Served, guest_token: str) -> None:
    with agent_of(served, guest_token) as guest:
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
    while states(served) != {"cancelled"} and time.monotonic() < over:
        time.sleep(0.01)
    assert states(served) == {"cancelled"}


def test_a_client_that_goes_away_in_the_middle_costs_nothing(served: Served) -> None:
    for _ in range(5):
        with pytest.raises(httpx2.TimeoutException), client(served, timeout=0.001) as hasty:
            hasty.post(url(served), json=asking(), headers=headers_for())
    with client(served) as asks:
        assert asks.post(url(served), json=asking(), headers=headers_for()).status_code == 200


def test_a_client_is_known_by_its_header_where_it_says_nothing_else(served: Served) -> None:
    """Without a session, older clients name themselves once, in a request that is forgotten."""
    with agent_of(served, mode="legacy", headers={"user-agent": "claude-code/2.1.280 (cli)"}) as agent:
        result = agent.call("ask", question=LEAVE, max_tokens=800)
        assert "18 weeks" in fields_of(result)["text"]
        assert wire_tokens(result) <= 800


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"])
def test_only_post_is_served(served: Served, method: str) -> None:
    with client(served) as asks:
        answer = asks.request(method, url(served), headers={"accept": "text/event-stream"})
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"no json", MODERN, 400),
        (b"[]", MODERN, 400),
        (b"[" * 100_000, MODERN, 400),
        (json.dumps(body("nonsense/method")).encode(), {**MODERN, "mcp-method": "nonsense/method"}, 404),
        (json.dumps(asking()).encode(), {**headers_for(), "host": "evil.example"}, 403),
        (json.dumps(asking()).encode(), {**headers_for(), "authorization": "Bearer guessed"}, 401),
        (b"{}" * 3_000_000, MODERN, 413),
        (b"no json", {"accept": "application/json, text/event-stream"}, 400),
    ],
)
def test_what_is_no_request_is_refused(served: Served, content: bytes, headers: dict[str, str], status: int) -> None:
    with client(served) as asks:
        answer = asks.post(url(served), content=content, headers={"content-type": "application/json", **headers})
    assert answer.status_code == status
    assert "Traceback" not in answer.text


def test_halves_of_characters_are_no_trouble(served: Served) -> None:
    text = json.dumps(asking("parental \ud83d leave"))
    with client(served) as asks:
        sent = {"content-type": "application/json", **headers_for()}
        answer = asks.post(url(served), content=text.encode(), headers=sent)
    assert answer.json()["result"]["structuredContent"]["sources"]


def test_what_runs_at_the_end_is_ended(sample_index: Path, tmp_path: Path) -> None:
    """An ingest that would take a minute: it ends in good order, and its client hears of it."""
    answers: list[dict[str, Any]] = []

    def wait() -> None:
        request = body("tools/call", name="ingest", arguments={"paths": ["."]})
        with client(server) as asks:
            answers.append(asks.post(url(server), json=request, headers=headers_for("ingest")).json())

    with served_here(sample_index, tmp_path, start=endless, allow_ingest=True, roots=(tmp_path,)) as server:
        waiting = threading.Thread(target=wait)
        waiting.start()
        while states(server) != {"running"}:
            time.sleep(0.01)
    waiting.join(60)
    assert answers[0]["result"]["structuredContent"]["interrupted"] is True
