"""`ctx serve` as a person and a script start it: the real command in a process of its own, asked over real sockets."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from cli.schemas import load
from tests.in_process import Ran

pytestmark = pytest.mark.usefixtures("loopback")


class Served:
    """A running server, and what it said when it was ready."""

    def __init__(self, process: subprocess.Popen[str], told: dict[str, Any]) -> None:
        self.process = process
        self.told = told
        self.url = str(told["url"])
        self.token = Path(told["token_file"]).read_text().strip() if told["token_file"] else ""

    def client(self, **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, **options)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait()


@contextmanager
def started(*args: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "cli.main", "serve", "--json", *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stdout is not None
    try:
        line = ""
        while not line.rstrip().endswith("}"):
            part = process.stdout.readline()
            assert part, process.stderr.read() if process.stderr else ""
            line += part
        yield Served(process, json.loads(line))
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def shared(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the tests that only ask it."""
    folder = tmp_path_factory.mktemp("serve")
    options = ("--token-file", str(folder / "token"), "--log-file", str(folder / "ctx.log"))
    with started("--index", str(filled), "--port", "0", *options) as served:
        yield served


def test_it_tells_where_it_is_and_asks_for_a_token(shared: Served) -> None:
    told = shared.told
    Draft202012Validator(load("serve")).validate(told)
    assert told["login_url"].startswith(f"{shared.url}/#token=")
    assert told["pid"] == shared.process.pid
    assert stat.S_IMODE(Path(told["token_file"]).stat().st_mode) == 0o600
    assert httpx.get(f"{shared.url}/api/documents").status_code == 401
    with shared.client() as client:
        assert client.get("/api/documents").json()["total"] == 4
        assert client.get("/api/documents", headers={"Host": "evil.example"}).status_code == 403
        cross = client.post("/api/search", json={"query": "x"}, headers={"Origin": "http://evil.example"})
        assert cross.status_code == 403


@pytest.mark.slow
def test_it_answers_by_what_was_ingested_meanwhile_until_a_signal(
    copied: Path, make_pdf: Callable[..., Path], call: Callable[..., Ran]
) -> None:
    pdf = make_pdf("zebra.pdf", ["The quagga was a zebra of the Cape."])
    with started("--index", str(copied), "--port", "0") as served:
        with served.client() as client:
            assert client.get("/api/search", params={"q": "quagga"}).json()["confidence"]["level"] == "none"
            assert call("ingest", str(pdf), "--no-images", "--index", str(copied)).code == 0
            found = client.get("/api/search", params={"q": "quagga"}).json()
            assert found["results"][0]["filename"] == "zebra.pdf"
            assert served.stop() == 0, "though a connection is open"
        assert served.process.stderr is not None
        assert "Traceback" not in served.process.stderr.read()


@pytest.mark.slow
def test_a_socket_file_is_its_owners_and_goes_with_the_server(
    filled: Path, tmp_path: Path, call: Callable[..., Ran]
) -> None:
    """One that was left behind is replaced, one in use and another file are not."""
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with started("--index", str(filled), "--socket", str(path)) as served:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        busy = call("serve", "--index", str(filled), "--socket", str(path))
        assert (busy.code, "listens on" in busy.err) == (1, True)
        served.url = "http://localhost"
        with served.client(transport=httpx.HTTPTransport(uds=str(path))) as client:
            assert client.get("/api/documents").json()["total"] == 4
        assert served.stop() == 0
    assert not path.exists()
    path.write_text("a letter")
    refused = call("serve", "--index", str(filled), "--socket", str(path))
    assert refused.code == 2
    assert path.read_text() == "a letter"


@pytest.mark.slow
def test_without_a_token_it_says_what_that_means(filled: Path) -> None:
    command = [sys.executable, "-m", "cli.main", "serve", "--no-token", "--port", "0", "--index", str(filled)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().rstrip("\n")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
        assert httpx.get(f"{url}/api/documents").status_code == 200
        assert httpx.get(f"{url}/api/documents", headers={"Host": "a.example"}).status_code == 403
        process.send_signal(signal.SIGINT)
        assert "every user and program of this machine" in process.communicate()[1]
        assert process.returncode == 0


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--port", "70000"], 2, "70000 is too large; the most is 65535"),
        (["--port", "8080", "--socket", "x"], 2, "exclude each other"),
        (["--no-token", "--token-file", "x"], 2, "exclude each other"),
        (["--root", "."], 2, "--allow-ingest"),
        (["--allow-ingest", "--root", "nowhere-at-all"], 2, "is no folder"),
        (["--allow-host", "http://x/"], 2, "is no host name"),
        (["--cors-origin", "*"], 2, "is no origin"),
    ],
)
def test_wrong_usage(filled: Path, call: Callable[..., Ran], args: list[str], code: int, words: str) -> None:
    ran = call("serve", "--index", str(filled), *args)
    assert ran.code == code, ran.err
    assert words in ran.err
    assert "hint:" in ran.err


def test_a_port_that_is_taken(filled: Path, call: Callable[..., Ran]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = call("serve", "--index", str(filled), "--port", str(taken.getsockname()[1]))
    assert ran.code == 1
    assert "--port 0" in ran.err


def test_no_index_yet(tmp_path: Path, call: Callable[..., Ran]) -> None:
    nothing = call("serve", "--index", str(tmp_path / "none"), "--port", "0")
    assert nothing.code == 3
    assert "--allow-ingest" in nothing.err


@pytest.mark.slow
def test_an_index_that_is_yet_to_be_made(tmp_path: Path) -> None:
    with (
        started("--index", str(tmp_path / "none"), "--port", "0", "--allow-ingest") as served,
        served.client() as client,
    ):
        assert client.get("/ready").json() == {"status": "ready", "empty": True}
        assert client.get("/api/search", params={"q": "x"}).status_code == 404


def test_a_thousand_connections_that_send_nothing(shared: Served) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        with ExitStack() as held, shared.client() as client:
            for _ in range(1000):
                held.enter_context(socket.create_connection((host, int(port)), timeout=30))
            for _ in range(5):
                assert client.get("/api/search", params={"q": "housing"}).status_code == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def sent(served: Served, data: bytes) -> bytes:
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while part := connection.recv(65536):
            received += part
        return received


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"Host: 127.0.0.1\r\nX-Long: " + b"a" * 100_000 + b"\r\n\r\n", b"4"),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(20_000)) + b"\r\n", b"4"),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"4"),
        (b"GET /health HTTP/1.1\r\n\r\n", b"403"),  # no Host
        (b"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n", b"40"),
    ],
)
def test_requests_that_are_none(shared: Served, data: bytes, status: bytes) -> None:
    try:
        received = sent(shared, data)
    except OSError:  # cut off in the middle of what it sent
        received = b""
    assert received == b"" or received.startswith(b"HTTP/1.1 " + status), received[:200]
    with shared.client() as client:
        assert client.get("/health").status_code == 200


def test_a_client_that_goes_away_in_the_middle(shared: Served) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    body = json.dumps({"query": "housing", "stream": True}).encode()
    head = (
        f"POST /api/research/ask HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {shared.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    for data in (head, head + body[:5], head + body):
        for _ in range(5):
            with socket.create_connection((host, int(port)), timeout=30) as connection:
                connection.sendall(data)
    with shared.client() as client:
        assert client.post("/api/research/ask", json={"query": "housing"}).status_code == 200
        while "ctx_questions_in_work 0.0" not in client.get("/metrics").text:
            time.sleep(0.05)


def test_a_log_has_a_line_a_request_and_nothing_that_was_asked(shared: Served) -> None:
    log = Path(shared.told["token_file"]).with_name("ctx.log")
    with shared.client() as client:
        found = client.get("/api/search", params={"q": "subprime mortgages"}, headers={"X-Request-Id": "abc-1"}).json()
        client.get(found["results"][0]["page_url"])
    while "GET /api/documents/{doc_id}/pages/{page} 200" not in (text := log.read_text()):
        time.sleep(0.01)
    assert re.search(r"GET /api/search 200 [\d.]+ ms abc-1 \w+", text)
    assert "subprime" not in text
    assert shared.token not in text
    assert found["results"][0]["doc_id"] not in text
