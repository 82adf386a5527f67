"""Bodies that are too large, too slow, or not what they say, sent to a real server over real sockets."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select

import httpx
import pytest
import uvicorn

from research.service.service import Limits
from tests.research.service.guarded import Guarded
from tests.serving import allow_loopback

KIB = 1024
LENGTH_AND_BODY = re.compile(rb"content-length: (\d+)\r\n.*?\r\n\r\n(.*)", re.DOTALL)
PATIENT = Limits(body_bytes=64 * KIB, upload_bytes=256 * KIB)  # its times are the usual ones: nothing is late


class Serving:
    def __init__(self, guarded: Guarded, port: int) -> None:
        self.guarded, self.port = guarded, port

    @contextmanager
    def connected(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            yield connection

    def head(self, path: str, *headers: str, method: str = "POST", token: bool = True) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *headers]
        lines += [f"Authorization: Bearer {self.guarded.token}"] if token else []
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def answer(self, *pieces: bytes) -> bytes:
        """Everything that comes back until the server closes the connection."""
        with self.connected() as connection:
            with suppress(OSError):  # it may be cut while we send
                for piece in pieces:
                    connection.sendall(piece)
            return read_all(connection)

    def refusal(self, *pieces: bytes) -> bytes:
        """What comes back to a client that has more to send and waits: as much as the answer says it is long."""
        with self.connected() as connection:
            for piece in pieces:
                connection.sendall(piece)
            found = b""
            while not (told := LENGTH_AND_BODY.search(found)) or len(told[2]) < int(told[1]):
                piece = connection.recv(65536)
                assert piece, found
                found += piece
            return found

    def dripped(self, head: bytes) -> bytes:
        """The same for a body of which a byte comes now and then, until something comes back."""
        with self.connected() as connection:
            connection.sendall(head)
            with suppress(OSError):
                while not select([connection], [], [], 0.02)[0]:
                    connection.sendall(b"x")
            return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            found += piece
    return found


def status(answer: bytes) -> int:
    match = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(match[1]) if match else 0


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@contextmanager
def serving_with(folder: Path, limits: Limits) -> Iterator[Serving]:
    guarded = Guarded(folder, limits=limits)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(guarded.app, http="httptools", ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Serving(guarded, listening.getsockname()[1])
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture(scope="module")
def _serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving_with(tmp_path_factory.mktemp("guarded"), PATIENT) as server:
        yield server


@pytest.fixture
def serving(_serving: Serving, _no_network: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """The server, which is as well after a test as before. However busy the machine is, it reads what it refuses."""
    allow_loopback(monkeypatch)
    monkeypatch.setattr("research.service.guard._DRAIN_SECONDS", 30.0)
    _serving.guarded.reached.clear()
    yield _serving
    last = _serving.answer(_serving.head("/api/whoami", "Connection: close", method="GET"))
    assert status(last) == 200


def test_bodies_within_the_limit(serving: Serving) -> None:
    close = "Connection: close"
    whole = serving.answer(serving.head("/api/size", "Content-Length: 65536", close), b"x" * 64 * KIB)
    assert (status(whole), whole.endswith(b'{"size":65536}')) == (200, True)
    pieces = [chunk(b"x" * KIB)] * 64 + [b"0\r\n\r\n"]
    streamed = serving.answer(serving.head("/api/size", "Transfer-Encoding: chunked", close), *pieces)
    assert (status(streamed), b'{"size":65536}' in streamed) == (200, True)
    assert status(serving.answer(serving.head("/api/size", close))) == 200, "none at all"


def test_one_that_says_it_is_too_large_is_not_read(serving: Serving) -> None:
    for length in (64 * KIB + 1, 10**12):
        answer = serving.refusal(serving.head("/api/size", f"Content-Length: {length}"), b"x")
        assert status(answer) == 413
        assert b"connection: close" in answer
        assert b"application/problem+json" in answer
        assert b"at most 65536 bytes" in answer
    waiting = serving.refusal(serving.head("/api/size", "Content-Length: 99999", "Expect: 100-continue"))
    assert status(waiting) == 413
    assert b"100 Continue" not in waiting, "it is not even asked for"
    assert serving.guarded.reached == []


def test_a_body_bomb_ends_at_the_limit(serving: Serving) -> None:
    """Chunks without end: it is cut off, and whoever sent it is told."""
    sent = 0
    with serving.connected() as connection:
        connection.sendall(serving.head("/api/size", "Transfer-Encoding: chunked"))
        with suppress(OSError):
            while sent < 1024 * KIB * KIB:
                connection.sendall(chunk(b"x" * 16 * KIB))
                sent += 16 * KIB
        assert sent < 1024 * KIB * KIB, "the connection was closed"
    polite = [chunk(b"x" * 16 * KIB)] * 20 + [b"0\r\n\r\n"]
    for path in ("/api/size", "/api/json", "/api/late"):  # also where a framework reads it
        answer = serving.answer(serving.head(path, "Transfer-Encoding: chunked"), *polite)
        assert status(answer) == 413
        assert answer.count(b"HTTP/1.1") == 1
        assert b"connection: close" in answer


def test_a_client_that_sends_everything_before_it_reads_is_told(serving: Serving) -> None:
    headers = {"Authorization": f"Bearer {serving.guarded.token}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{serving.port}", headers=headers, trust_env=False) as client:
        answer = client.post("/api/json", content=b'{"query": "' + b"x" * 10_000_000 + b'"}')
        assert answer.status_code == 413
        assert answer.json()["title"] == "The body is too large"
        assert client.get("/api/whoami").status_code == 200


@pytest.mark.slow
@pytest.mark.usefixtures("loopback")
def test_a_slow_body_ends_in_time(tmp_path: Path) -> None:
    with serving_with(tmp_path / "idle", Limits(idle_body_seconds=0.1)) as server:
        for head, body in (
            (server.head("/api/size", "Content-Length: 100"), b"x"),
            (server.head("/api/json", "Transfer-Encoding: chunked"), chunk(b"x")),
            # Where no token is needed, too.
            (server.head("/api/login", "Content-Length: 9", "Content-Type: application/json", token=False), b""),
        ):
            stuck = server.answer(head, body)
            assert status(stuck) == 408, head
            assert b"connection: close" in stuck
            assert b"application/problem+json" in stuck
    with serving_with(tmp_path / "whole", Limits(body_seconds=0.2)) as server:
        dripping = server.dripped(server.head("/api/size", "Content-Length: 100000"))
        assert status(dripping) == 408, "each piece came soon enough, but not all of it"
        late = server.answer(server.head("/api/late", "Content-Length: 3", "Connection: close") + b"abc")
        assert status(late) == 200, "an answer may take longer than a body"
        assert b"\r\n3\r\n" in late


def test_uploads_have_a_limit_of_their_own(serving: Serving) -> None:
    upload = "Content-Type: multipart/form-data; boundary=x"
    body = b"x" * 200 * KIB
    length = f"Content-Length: {len(body)}"
    assert status(serving.answer(serving.head("/api/ingest", upload, length, "Connection: close"), body)) == 200
    assert status(serving.answer(serving.head("/api/ingest", "Content-Type: application/json", length), body)) == 413
    assert status(serving.answer(serving.head("/api/size", upload, length), body)) == 413
    assert status(serving.refusal(serving.head("/api/ingest", upload, "Content-Length: 300000"))) == 413
    pieces = [chunk(b"x" * 32 * KIB)] * 12 + [b"0\r\n\r\n"]
    assert status(serving.answer(serving.head("/api/ingest", upload, "Transfer-Encoding: chunked"), *pieces)) == 413


def test_a_stranger_sends_nothing_to_the_application(serving: Serving) -> None:
    body = b"x" * 32 * KIB
    length = f"Content-Length: {len(body)}"
    for head in (
        serving.head("/api/size", length, token=False),
        serving.head("/api/size", length, "Origin: https://evil.example"),
        serving.head("/api/size", "Transfer-Encoding: chunked", token=False),
    ):
        answer = serving.answer(head, chunk(body) + b"0\r\n\r\n" if b"chunked" in head else body)
        assert status(answer) in (400, 401, 403)
        assert b"connection: close" in answer
    assert serving.guarded.reached == []


def test_a_body_that_breaks_its_limit_after_the_answer_has_begun(serving: Serving) -> None:
    """Nothing else can be said any more, but that it is not whole."""
    with serving.connected() as connection:
        connection.sendall(serving.head("/api/echo", "Transfer-Encoding: chunked") + chunk(b"x"))
        begun = connection.recv(1)
        with suppress(OSError):
            for _ in range(20):
                connection.sendall(chunk(b"x" * 16 * KIB))
        answer = begun + read_all(connection)
    assert status(answer) == 200
    assert answer.count(b"HTTP/1.1") == 1
    assert not answer.endswith(b"0\r\n\r\n")
    assert answer.count(b"x") < 100 * KIB
