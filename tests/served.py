"""A real server: in a thread of this process, or `ctx serve` in one of its own for the bench and the soaks."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest import start_job
from research.index import Index
from research.service import IndexServer, ServeOptions, assemble, listen
from research.settings import Settings

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
    token_file, told = folder / "token", folder / "served.json"
    command = [sys.executable, "-m", "cli.main", "serve", "--index", str(index), "--port", "0", "--json", "--quiet"]
    command += ["--token-file", str(token_file), *options]
    started = time.perf_counter()
    with (
        told.open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, env={**os.environ, **(env or {})}) as process,
    ):
        try:
            port = _await_ready(process, told)
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


@contextmanager
def served_here(
    index: Path, folder: Path, settings: Settings | None = None, *, start: Any = start_job, **options: Any
) -> Iterator[Served]:
    """The same in a thread of this process, which is ready at once."""
    chosen = ServeOptions(port=0, token_file=folder / "token", **options)
    made = assemble(Index(index, settings), chosen, start_job=start)
    started = threading.Event()
    with listen(chosen) as listening:
        server = IndexServer(made.service, made.app, on_started=started.set)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            assert started.wait(_START_SECONDS)
            token = (folder / "token").read_text(encoding="ascii").strip()
            yield Served(listening.getsockname()[1], token, os.getpid(), 0.0, 0.0)
        finally:
            server.stop()
            thread.join()


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and of those it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(int(each) for each in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _await_ready(process: subprocess.Popen[bytes], told: Path) -> int:
    """Its port, once it answers there."""
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, f"the server ended with {process.returncode}: {_said(process)}"
        if (facts := told.read_bytes()).endswith(b"\n"):
            port = int(json.loads(facts)["url"].rpartition(":")[2])
            client = Client(port)
            try:
                if client.ask("GET", "/ready").status == 200:
                    return port
            finally:
                client.close()
        time.sleep(0.01)
    raise AssertionError(f"the server is not ready after {_START_SECONDS:g} seconds")


def _said(process: subprocess.Popen[bytes]) -> str:
    return process.stderr.read().decode("utf-8", "replace")[-2000:] if process.stderr else ""
