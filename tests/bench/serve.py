"""`ctx serve` and `ctx mcp` beside the library: what a door costs, and how long it takes to open.

The library answers in a process of its own, as the server does, by the same call. CPU is that of the whole process, so
that neither the clients nor other work on the machine count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from tests.bench.speed import QUESTION, SAMPLES
from tests.bench.table import line, median, title
from tests.bench.taken import cost
from tests.served import Client, Served, cpu_of, served

ROUNDS = 5
CLIENTS = 16
EACH = 40  # questions of a client
ALONE = 60  # questions, one after the other
ASK = "/api/research/ask"
DATA = Path(__file__).parents[2] / "data"

_LIBRARY = """
import json, sys, time
from research import Index
questions = json.loads(sys.stdin.readline())
with Index.open(sys.argv[1]) as index:
    for question in questions[:5]:
        index.ask(question, highlights=True)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        before, began = time.process_time(), time.perf_counter()
        index.ask(json.loads(line), highlights=True)
        print(json.dumps([time.process_time() - before, time.perf_counter() - began]), flush=True)
"""


def run() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        index = folder / "index"
        ingest = [sys.executable, "-m", "cli.main", "ingest", str(SAMPLES), "--quiet", "--index", str(index)]
        subprocess.run(ingest, check=True, capture_output=True)
        _starts(index, folder)
        with served(index, folder) as server, _Library(index) as library:
            _alone(server, library)
            _together(server, library)


def _starts(index: Path, folder: Path) -> None:
    title(f"From the start of a process (median of {ROUNDS}, taken in turns)")
    serving: list[Served] = []
    imports: list[tuple[float, float]] = []
    agents: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        imports.append(cost([sys.executable, "-c", "import fastapi"]))
        with served(index, folder) as server:
            serving.append(server)
        agents.append(_first_answer_of_mcp(index))
    base = median([cpu for cpu, _ in imports])
    line("import fastapi", f"{base:.2f} s CPU", f"{median([wall for _, wall in imports]):.2f} s wall")
    _started("ctx serve, until /ready", [(each.cpu, each.wall) for each in serving], base, "≤ 1.5 s wall")
    _started("ctx mcp, until the first answer", agents, base, "≤ 2.5 s wall")


def _started(what: str, taken: Sequence[tuple[float, float]], base: float, goal: str) -> None:
    cpu, wall = median([cpu for cpu, _ in taken]), median([wall for _, wall in taken])
    line(what, f"{wall:.2f} s wall", f"{goal}; {cpu:.2f} s CPU, {cpu / base:.1f} of import fastapi")


def _alone(server: Served, library: _Library) -> None:
    """The same question here and there in turns, so that a slow moment of the machine hits both."""
    title(f"A warm question, one at a time (median of {ALONE}, in turns)")
    client = server.client()
    there: list[float] = []
    here: list[tuple[float, float]] = []
    before = server.cpu_now
    for question in _questions(ALONE):
        here.append(library.ask(question))
        began = time.perf_counter()
        _asked(client, question)
        there.append(time.perf_counter() - began)
    cpu = (server.cpu_now - before - sum(cpu for cpu, _ in here)) / ALONE
    client.close()
    more = median([over - plain for over, (_, plain) in zip(there, here, strict=True)])
    line("ask in the library", f"{1e3 * median([wall for _, wall in here]):.1f} ms")
    line("ask over HTTP", f"{1e3 * median(there):.1f} ms")
    line(
        "HTTP costs more", f"{1e3 * more:.1f} ms", f"≤ 5 ms; {1e3 * cpu:.1f} ms of CPU, whatever else the machine does"
    )


def _together(server: Served, library: _Library) -> None:
    title(f"{CLIENTS} clients with {EACH} questions each")
    before = [library.ask(question)[0] for question in _questions(ALONE)]
    cpu = server.cpu_now
    times = _by_clients(server)
    each = (server.cpu_now - cpu) / len(times)
    after = [library.ask(question)[0] for question in _questions(ALONE)]
    alone = sum(before + after) / len(before + after)
    p50, p99 = _share(times, 0.50), _share(times, 0.99)
    line("CPU a question, the library by itself", f"{1e3 * alone:.1f} ms")
    line("CPU a question, the server", f"{1e3 * each:.1f} ms", f"{each / alone:.2f} of the library's, goal ≤ 1.25")
    line("p50", f"{1e3 * p50:.0f} ms")
    line("p99", f"{1e3 * p99:.0f} ms", f"{p99 / p50:.1f} of p50, goal ≤ 10")


def _by_clients(server: Served) -> list[float]:
    times: list[float] = []
    problems: list[BaseException] = []

    def work(number: int) -> None:
        client = server.client()
        try:
            for question in _questions(EACH, number * 7):
                began = time.perf_counter()
                _asked(client, question)
                times.append(time.perf_counter() - began)
        except BaseException as error:  # noqa: BLE001  a thread's failure must be seen
            problems.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return times


def _asked(client: Client, question: str) -> None:
    answer = client.post(ASK, {"query": question})
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {answer.body[:300]!r}")


def _share(times: Sequence[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def _questions(number: int, start: int = 0) -> list[str]:
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [json.loads(each)["query"] for each in lines]
    return [asked[(start + turn) % len(asked)] for turn in range(number)]


class _Library:
    """A warm index in a process that does nothing else."""

    def __init__(self, index: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LIBRARY, str(index)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._send(_questions(5))

    def ask(self, question: str) -> tuple[float, float]:
        """CPU and wall seconds."""
        cpu, wall = self._send(question)
        return cpu, wall

    def _send(self, document: object) -> list[float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(document) + "\n")
        self._process.stdin.flush()
        found: list[float] = json.loads(self._process.stdout.readline())
        return found

    def __enter__(self) -> _Library:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _first_answer_of_mcp(index: Path) -> tuple[float, float]:
    """CPU and wall seconds from the start of `ctx mcp` to its first answer, as an agent over stdio sees it."""
    command = [sys.executable, "-m", "cli.main", "mcp", "--index", str(index)]
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ)
    ) as process:
        try:
            tell, hear = _talk(process)
            hello = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "0"},
            }
            tell("initialize", hello, answered=True)
            hear()
            tell("notifications/initialized", {}, answered=False)
            tell("tools/call", {"name": "ask", "arguments": {"question": QUESTION}}, answered=True)
            found = hear()
            taken = cpu_of(process.pid), time.perf_counter() - began
            if "error" in found or found["result"].get("isError"):
                raise RuntimeError(str(found)[:1000])
            return taken
        finally:
            process.kill()


def _talk(process: subprocess.Popen[bytes]) -> tuple[Callable[..., None], Callable[[], dict[str, dict[str, object]]]]:
    numbers = count(1)
    assert process.stdin is not None
    assert process.stdout is not None
    told, heard = process.stdin, process.stdout

    def tell(method: str, params: object, *, answered: bool) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        told.write(json.dumps(message | ({"id": next(numbers)} if answered else {})).encode() + b"\n")
        told.flush()

    def hear() -> dict[str, dict[str, object]]:
        while True:
            message: dict[str, dict[str, object]] = json.loads(heard.readline())
            if "id" in message:
                return message

    return tell, hear
