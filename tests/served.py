"""A real `ctx serve` in a process of its own, for what is measured of one: the bench and the soaks."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
_START_SECONDS = 60.0
_END_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Client:
    """One connection that is kept. Not for several threads."""

    def __init__(self, port: int, token: str = "") -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=120)
        self._token = token

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        sent = {"Authorization": f"Bearer {self._token}", **(headers or {})}
        self._connection.request(method, path, body, {name: value for name, value in sent.items() if value})
        answered = self._connection.getresponse()
        read = answered.read()
        return Answer(answered.status, {name.lower(): value for name, value in answered.getheaders()}, read)

    def post(self, path: str, document: object) -> Answer:
        return self.ask("POST", path, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Served:
    """A server that is ready."""

    port: int
    token: str
    pid: int
    wall: float  # seconds from its start to the first answer that it is ready
    cpu: float  # and what it took until then

    def client(self) -> Client:
        return Client(self.port, self.token)

    @property
    def cpu_now(self) -> float:
        return cpu_of(self.pid)

    @property
    def resident(self) -> int:
        """kB in memory."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1])

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


@contextmanager
def served(index: Path, folder: Path, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """`ctx serve` on an index, with its token file in a folder; stopped at the end as a service manager would."""
    port, token_file = free_port(), folder / "token"
    command = [sys.executable, "-m", "cli.main", "serve", "--index", str(index), "--port", str(port)]
    command += ["--token-file", str(token_file), "--quiet", *options]
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **(env or {})}
    ) as process:
        try:
            _await_ready(process, port)
            wall, cpu = time.perf_counter() - started, cpu_of(process.pid)
            token = token_file.read_text(encoding="ascii").strip()
            yield Served(port, token, process.pid, wall, cpu)
            assert process.poll() is None, f"the server ended with {process.returncode}: {_said(process)}"
        finally:
            process.terminate()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        return int(taken.getsockname()[1])


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and of those it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(int(each) for each in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _await_ready(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, f"the server ended with {process.returncode}: {_said(process)}"
        client = Client(port)
        try:
            if client.ask("GET", "/ready").status == 200:
                return
        except OSError:
            pass  # it does not listen yet
        finally:
            client.close()
        time.sleep(0.01)
    raise AssertionError(f"the server is not ready after {_START_SECONDS:g} seconds")


def _said(process: subprocess.Popen[bytes]) -> str:
    return process.stderr.read().decode("utf-8", "replace")[-2000:] if process.stderr else ""
