"""Servers on this machine's loopback for tests that need one: a real one, and one that answers as a test says.

A server that is broken is not a mock of our code: it is what the code has to live with.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

LOOPBACK = {"127.0.0.1", "::1", "localhost"}
KEY = "sk-test-7f3a9c51d2"
"""The key that the real server asks for."""

_connect, _getaddrinfo = socket.socket.connect, socket.getaddrinfo


def allow_loopback(patch: pytest.MonkeyPatch) -> None:
    """Lift the tests' guard for addresses of this machine, and for no others."""

    def connect(self: socket.socket, address: Any) -> None:
        if not isinstance(address, str) and address[0] not in LOOPBACK:  # a text is a socket file's path
            raise AssertionError(f"a test tried to reach the network: {address}")
        _connect(self, address)

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        if host not in LOOPBACK:
            raise AssertionError(f"a test tried to reach the network: {host}")
        return _getaddrinfo(host, *args, **options)

    patch.setattr(socket.socket, "connect", connect)
    patch.setattr(socket, "getaddrinfo", getaddrinfo)


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    path: str
    headers: Mapping[str, str]
    document: Any


@dataclass(frozen=True)
class Reply:
    """What is sent back. `drip`: so many bytes at a time, a twentieth of a second apart. `never`: nothing at all."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drip: int = 0
    never: bool = False


Answer = Callable[[Asked], Reply]


class Served:
    """An HTTP server that answers by a function, which may be exchanged, and keeps what it was asked."""

    def __init__(self, answer: Answer, port: int = 0) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self._over = threading.Event()
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked = Asked(self.path, dict(self.headers), json.loads(body))
                served.asked.append(asked)
                served.send(self, served.answer(asked))

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  a client that left
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if reply.never:
            self._over.wait()
            return
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for at in range(0, len(body), reply.drip or len(body) or 1):
            handler.wfile.write(body[at : at + (reply.drip or len(body))])
            if reply.drip and self._over.wait(0.05):
                return

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(answer: Answer) -> Iterator[Served]:
    served = Served(answer)
    try:
        yield served
    finally:
        served.close()


def free_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def start_llama() -> tuple[Any, str]:
    """llama.cpp in this process, serving SmolLM2's vectors: 576 numbers, windows of 128 tokens, for it reads some fifty
    a second. The server, which ends when nobody holds it, and its address."""
    import xllamacpp

    from research.llm.local import find_weights

    params = xllamacpp.CommonParams()
    params.model.path = str(find_weights())
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.n_ctx = params.n_batch = params.n_ubatch = 128
    params.n_parallel = 1
    params.cpuparams.n_threads = len(os.sched_getaffinity(0))
    params.warmup = False
    params.verbosity = -1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [KEY]
    server = xllamacpp.Server(params)
    return server, str(server.listening_address)
