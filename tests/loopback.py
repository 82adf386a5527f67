"""Small servers on this machine that say what a test makes them say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from research.answer.answering import LocalModel


class Call:
    """A request as a small server sees it, and the ways to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        self.handler = handler
        self.method, self.path, self.headers = handler.command, handler.path, dict(handler.headers)
        self.body: Any = json.loads(body) if body else None

    def answer(self, body: str | bytes, status: int = 200, kind: str = "application/json", **headers: str) -> None:
        data = body if isinstance(body, bytes) else body.encode()
        self.handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def begin(self, kind: str = "text/event-stream", **headers: str) -> None:
        """A body that ends with the connection."""
        self.handler.send_response(200)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()

    def send(self, data: str | bytes) -> None:
        self.handler.wfile.write(data if isinstance(data, bytes) else data.encode())
        self.handler.wfile.flush()

    def event(self, **fields: Any) -> None:
        self.send(f"data: {json.dumps(fields)}\n\n")

    def say(self, *pieces: str) -> None:
        for piece in pieces:
            self.event(choices=[{"index": 0, "delta": {"content": piece}, "finish_reason": None}])

    def reply(self, *pieces: str, reason: str = "stop", usage: Mapping[str, int] | None = None) -> None:
        """As a server should."""
        self.begin()
        self.say(*pieces)
        self.finish(reason, usage)

    def finish(self, reason: str = "stop", usage: Mapping[str, int] | None = None) -> None:
        self.event(choices=[{"index": 0, "delta": {}, "finish_reason": reason}])
        if usage:
            self.event(choices=[], usage=dict(usage))
        self.send("data: [DONE]\n\n")


class SmallServer:
    """What was asked, and how often; `over` is set when the test is, for whoever waits."""

    def __init__(self, respond: Callable[[Call], None]) -> None:
        self.calls: list[Call] = []
        self.over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _respond(self) -> None:
                call = Call(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                outer.calls.append(call)
                with suppress(OSError):  # whoever asked went away
                    respond(call)

            do_GET = do_POST = _respond  # noqa: N815  their names in http.server

            def log_message(self, *args: object) -> None:
                """Not on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.host = f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


Serving = Callable[[Callable[[Call], None]], SmallServer]


@pytest.fixture
def serving(loopback: None) -> Iterator[Serving]:
    """Starts small servers that answer each request by a function of the test."""
    servers: list[SmallServer] = []

    def start(respond: Callable[[Call], None]) -> SmallServer:
        servers.append(SmallServer(respond))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(scope="session")
def local_model_process() -> Iterator[LocalModel]:
    with LocalModel(max_answer_tokens=12) as model:
        yield model


@pytest.fixture
def local_model(local_model_process: LocalModel, loopback: None) -> LocalModel:
    """A real language model, served over HTTP by a process of its own that all tests share."""
    return local_model_process
