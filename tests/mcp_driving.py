"""The SDK's own client, driven from plain tests: its loop runs in a thread, and one connection serves many tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from research.context import TokenCounter
from research.index import Index
from research.service import Service
from research.service.mcp.server import build_server
from tests.conftest import MEASURE
from tests.network_guard import guarded

_counter = TokenCounter()


@dataclass(frozen=True)
class Driver:
    """A connected client."""

    portal: BlockingPortal
    client: Client

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        return self.portal.call(self.client.call_tool, tool, arguments)

    def said(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must succeed."""
        result = self.call(tool, **arguments)
        assert not result.is_error, text_of(result)
        return text_of(result)

    def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must fail."""
        result = self.call(tool, **arguments)
        assert result.is_error
        assert result.structured_content is None
        return text_of(result)

    def do(self, method: str, *args: Any, **options: Any) -> Any:
        """Anything else that the client can do."""
        return self.portal.call(partial(getattr(self.client, method), *args, **options))


@contextmanager
def driven(server: Any, **options: Any) -> Iterator[Driver]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server, **options)) as client,
    ):
        yield Driver(portal, client)


@contextmanager
def agent_here(root: Path) -> Iterator[Driver]:
    """A client of the server of tools in this process."""
    with Index(root) as index:
        service = Service(index)
        service.warm_up()
        with driven(build_server(service)) as driver:
            yield driver


def text_of(result: CallToolResult) -> str:
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text


def fields_of(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def wire_tokens(result: CallToolResult) -> int:
    """All of a result as a client gets it, however it is handed on to a model."""
    apart = _counter.count(text_of(result)) + _counter.count(json.dumps(result.structured_content, ensure_ascii=False))
    whole = max(
        _counter.count(result.model_dump_json(by_alias=True)),
        _counter.count(result.model_dump_json(by_alias=True, exclude_none=True)),
        _counter.count(result.model_dump_json()),
    )
    return max(apart, whole)


def command(*args: str) -> list[str]:
    return [str(word) for word in guarded("-m", "cli.main", "mcp", *args)]


@contextmanager
def agent_of(log: Path, *args: str, **options: Any) -> Iterator[Driver]:
    """A client connected to `ctx mcp ARGS`; what it says on stderr must be nothing."""
    first, *rest = command(*args)
    parameters = StdioServerParameters(command=first, args=rest, env={**os.environ, **MEASURE})
    with log.open("w") as errors, driven(stdio_client(parameters, errlog=errors), **options) as driver:
        yield driver
    assert log.read_text() == ""


@contextmanager
def agent_over_http(port: int, token: str, **options: Any) -> Iterator[Driver]:
    """The tools of a server on this machine, for whoever has the token."""
    headers = {"authorization": f"Bearer {token}", **options.pop("headers", {})}
    http = httpx2.AsyncClient(headers=headers, timeout=60)
    with driven(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http), **options) as driver:
        yield driver
        driver.portal.call(http.aclose)
