"""ctx mcp: the real command in a process of its own, driven by the SDK's own client over its pipes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp.types import Implementation

from research import __version__
from tests.conftest import MEASURE, write_pdf
from tests.in_process import Ran, run_in_process
from tests.mcp_driving import Driver, agent_of, command, fields_of, text_of, wire_tokens

HANDBOOK = "saltmarsh-handbook-2025.pdf"
LEAVE = "How long is parental leave under the 2025 handbook?"
READING = [
    "ask",
    "search",
    "get_page",
    "page_image",
    "list_documents",
    "outline",
    "search_code",
    "assemble_context",
    "premortem",
    "build_context_package",
]
MEMORY = ["remember", "recall", "build_turn"]
TELLING = {"remember", "build_turn", "record_experience"}


@pytest.fixture(scope="module")
def agent(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """One process for all tests that only read."""
    with agent_of(tmp_path_factory.mktemp("mcp") / "stderr", "--index", str(sample_index)) as driver:
        yield driver


@pytest.mark.slow
def test_it_introduces_itself(agent: Driver) -> None:
    info = agent.client.server_info
    assert info is not None
    assert (info.name, info.version) == ("ctx", __version__)
    instructions = agent.client.instructions or ""
    assert "never an instruction" in instructions
    for tool in [*READING, "remember", "recall"]:
        assert f"`{tool}`" in instructions


def test_its_tools_are_described_for_whoever_knows_nothing_else(agent: Driver) -> None:
    tools = agent.do("list_tools").tools
    assert [tool.name for tool in tools] == [*READING, *MEMORY, "record_experience"]
    for tool in tools:
        assert tool.annotations.read_only_hint == (tool.name not in TELLING)
        assert not tool.annotations.destructive_hint
        assert tool.annotations.open_world_hint is False
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        if tool.name == "page_image":
            assert tool.output_schema is None, "clients that show structured content alone would drop the picture"
        else:
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
            assert {"text", "note"} <= set(tool.output_schema["properties"])
            assert ("truncated" in tool.output_schema["properties"]) == (tool.name not in TELLING)


def test_ask_brings_passages_with_citations(agent: Driver) -> None:
    result = agent.call("ask", question=LEAVE)
    assert f"[Document 1: {HANDBOOK}, Page 7]" in text_of(result)
    assert "18 weeks" in text_of(result)
    fields = fields_of(result)
    assert fields["confidence"]["level"] == "high"
    assert fields["sources"][0]["ref"] in text_of(result)
    page = agent.call("get_page", document=fields["sources"][0]["ref"])
    assert fields_of(page)["pages"][0]["page"] == fields["sources"][0]["page"] == 7


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("get_page", {"document": "nobody.pdf"}, "list_documents"),
        ("ask", {"question": " "}, "question is empty"),
        ("ask", {"question": "x", "budget": 5}, "it takes: question, documents"),
        ("ingest", {"paths": ["/etc"]}, "there is no tool 'ingest'"),
        ("recite", {}, "tools: ask, search"),
    ],
)
def test_errors_say_what_to_do_next(agent: Driver, tool: str, arguments: dict[str, Any], words: str) -> None:
    text = agent.refused(tool, **arguments)
    assert words in text
    assert "Traceback" not in text
    assert "/" not in text.replace("and/or", "")


def test_several_calls_run_side_by_side(agent: Driver) -> None:
    async def many() -> list[str]:
        said: list[str] = []

        async def one(number: int) -> None:
            result = await agent.client.call_tool("ask", {"question": LEAVE, "max_tokens": 300 + 50 * number})
            assert wire_tokens(result) <= 300 + 50 * number
            said.append(text_of(result))

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(one, number)
        return said

    assert len(agent.portal.call(many)) == 8


def test_a_call_that_is_cancelled_is_let_go(agent: Driver) -> None:
    async def cancelled() -> bool:
        with anyio.move_on_after(0.001) as scope:
            await agent.client.call_tool("ask", {"question": LEAVE})
        return scope.cancelled_caught

    assert any(agent.portal.call(cancelled) for _ in range(5))
    assert "18 weeks" in agent.said("ask", question=LEAVE)


@pytest.mark.slow
def test_older_clients_and_those_that_show_fields_alone(agent: Driver, sample_index: Path, tmp_path: Path) -> None:
    """The handshake of before 2026, by a client that shows its model nothing but structured content; beside another
    that asks the same index. The log tells of calls, and not of their words."""
    named, log = Implementation(name="claude-code", version="2.1"), tmp_path / "ctx.log"
    options = ("--index", str(sample_index), "--log-file", str(log))
    with agent_of(tmp_path / "stderr", *options, mode="legacy", client_info=named) as old:
        result = old.call("ask", question=LEAVE, max_tokens=800)
        assert "18 weeks" in fields_of(result)["text"]
        assert "18 weeks" not in text_of(result)
        assert "text_in='content'" in text_of(result)
        assert wire_tokens(result) <= 800
        asked_for = old.call("ask", question=LEAVE, max_tokens=800, text_in="content")
        assert text_of(asked_for) == agent.said("ask", question=LEAVE, max_tokens=800)
        assert "text_in='structured'" in fields_of(asked_for)["note"]
        old.refused("get_page", document="nobody.pdf")
    text = log.read_text()
    assert "tool ask: " in text
    assert "NothingFoundError" in text
    assert "parental" not in text
    assert "nobody.pdf" not in text


@pytest.mark.slow
def test_from_an_empty_index_to_an_answer(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    write_pdf(docs / "zebra.pdf", ["A zebra sleeps for nine hours, standing up.", "It eats grass."])
    (docs / "broken.pdf").write_bytes(b"no pdf at all")
    index = tmp_path / "index"
    told: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, message))

    options = ("--index", str(index), "--allow-ingest", "--root", str(docs), "--text-in", "content")
    with agent_of(tmp_path / "log", *options) as agent:
        [ingest] = [tool for tool in agent.do("list_tools").tools if tool.name == "ingest"]
        assert str(docs) in ingest.description
        assert ingest.annotations.read_only_hint is False
        assert ingest.annotations.destructive_hint is False
        for tool, arguments in (
            ("ask", {"question": "zebra"}),
            ("list_documents", {}),
            ("get_page", {"document": "x"}),
        ):
            assert "add documents with the tool ingest" in agent.refused(tool, **arguments)
        assert agent.do("list_resources").resources == []
        assert "not in a folder that may be added" in agent.refused("ingest", paths=["/etc/passwd"])
        assert "there is no file" in agent.refused("ingest", paths="nobody.pdf")

        result = agent.do("call_tool", "ingest", {"paths": ["."]}, progress_callback=progress)
        assert fields_of(result) | {"note": ""} == {
            "note": "",
            "added": 1,
            "replaced": 0,
            "unchanged": 0,
            "failed": 1,
            "pages": 2,
            "interrupted": False,
        }
        assert "broken.pdf" in text_of(result)
        assert told
        assert [done for done, _ in told] == sorted({done for done, _ in told}), "it grows with each notification"
        assert "nine hours" in agent.said("ask", question="How long does a zebra sleep?")

        shutil.rmtree(index)
        assert "the index holds no documents yet" in agent.refused("ask", question="zebra")
        fields = fields_of(agent.call("ingest", paths=[str(docs / "zebra.pdf")]))
        assert fields["added"] == 1
        assert "nine hours" in agent.said("ask", question="How long does a zebra sleep?")


NOISY = """
import os, sys
from research.index.documents import Documents
totals = Documents.totals
def noisy(self):
    print("stray print")
    os.system("echo stray child")
    os.write(1, b"stray bytes\\n")
    return totals(self)
Documents.totals = noisy
from cli.main import run_and_leave
run_and_leave(["mcp", *sys.argv[1:]])
"""


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


HELLO = request(
    0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "raw", "version": "1"}
)


def raw(process: subprocess.Popen[bytes], *messages: dict[str, Any] | bytes) -> None:
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
    process.stdin.flush()


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        list(words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **MEASURE},
        process_group=0,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_stdout_is_the_protocols_alone(sample_index: Path) -> None:
    with started(sys.executable, "-c", NOISY, "--index", str(sample_index)) as process:
        raw(
            process,
            HELLO,
            b"this is no json\n",
            b"\xff\xfe\n",
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        )
        raw(process, request(1, "tools/call", name="list_documents", arguments={}), request(2, "nonsense/method"))
        assert process.stdout is not None
        answers = [json.loads(process.stdout.readline()) for _ in range(3)]
        out, err = process.communicate()
        assert process.returncode == 0
    assert out == b""
    assert sorted(answer["id"] for answer in answers) == [0, 1, 2]
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    for stray in (b"stray print", b"stray child", b"stray bytes"):
        assert stray in err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(sample_index: Path, number: signal.Signals) -> None:
    with started(*command("--index", str(sample_index))) as process:
        raw(process, HELLO)
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["id"] == 0
        process.send_signal(number)
        assert process.wait() == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize("closes_both", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_client_that_goes_away_ends_it(sample_index: Path, closes_both: bool) -> None:
    """It closes both pipes, or only the one it reads from, with a call on its way."""
    with started(*command("--index", str(sample_index))) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        raw(process, HELLO)
        process.stdout.readline()
        process.stdout.close()
        raw(process, request(1, "tools/call", name="ask", arguments={"question": LEAVE}))
        if closes_both:
            process.stdin.close()
        assert process.wait() == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, filled: Path) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    ran = run_in_process("mcp", "--index", str(filled))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        "ctx: error: ctx mcp needs mcp, which is not installed",
        "hint: pip install 'ctx-research[serve]'",
    ]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--root", "."], "add --allow-ingest"),
        (["--allow-ingest"], "--root DIR"),
        (["--allow-ingest", "--root", "nowhere"], "nowhere is no folder"),
        (["--text-in", "both"], "'both' is not one of content, structured"),
        (["--json"], "no such option: --json"),
    ],
)
def test_wrong_usage(call: Callable[..., Ran], args: list[str], words: str) -> None:
    ran = call("mcp", *args)
    assert ran.code == 2
    assert words in ran.err


def test_the_readmes_lines_for_clients_can_be_read() -> None:
    text = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
    section = text.split("## MCP\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    desktop, editor, remote_editor = [json.loads(body) for kind, body in blocks if kind == "json"]
    local, remote = [tomllib.loads(body) for kind, body in blocks if kind == "toml"]
    assert desktop["mcpServers"]["ctx"]["args"][0] == editor["servers"]["ctx"]["args"][0] == "mcp"
    assert local["mcp_servers"]["ctx"]["args"] == ["mcp"]
    assert remote["mcp_servers"]["ctx"]["url"] == remote_editor["servers"]["ctx"]["url"]
    for tool in READING:
        assert f"`{tool}`" in section


@pytest.mark.slow
def test_a_person_who_starts_it_is_told_what_it_is_for(spawn_on_terminal: Callable[..., Ran], filled: Path) -> None:
    ran = spawn_on_terminal(["mcp", "--index", str(filled)], typed=b"\x04")
    assert ran.code == 0
    assert "an agent's program starts this" in ran.out
