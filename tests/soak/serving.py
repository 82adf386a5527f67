"""A real server under all kinds of requests, right and wrong ones, from several clients at once."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

from tests.served import HOST, Answer, Client, Served
from tests.soak.corpus import QUESTIONS

ASK, SEARCH, DOCUMENTS = "/api/research/ask", "/api/search", "/api/documents"
PROBLEM = "application/problem+json"
_SAMPLES = 100  # of memory, over the whole run
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request, and the statuses that are right for it."""

    method: str
    path: str
    statuses: tuple[int, ...] = (200,)
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ServerSoak:
    """So many requests from so many clients; what was not answered as it should be is in `problems`."""

    server: Served
    requests: int
    clients: int = 8
    problems: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    samples: list[tuple[int, int, int]] = field(default_factory=list)  # requests, resident kB, descriptors
    _numbers: Iterator[int] = field(default_factory=count)
    _telling: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        client = self.server.client()
        listed = json.loads(client.ask("GET", DOCUMENTS).body)["documents"]
        client.close()
        threads = [threading.Thread(target=self._guard, args=(listed,)) for _ in range(self.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _guard(self, listed: list[dict[str, object]]) -> None:
        client = self.server.client()
        try:
            while (number := next(self._numbers)) < self.requests and len(self.problems) < 20:
                self._one(client, number, listed)
        except Exception as error:  # noqa: BLE001  a thread's failure must reach the test
            self.problems.append(f"{type(error).__name__}: {error}")
        finally:
            client.close()

    def _one(self, client: Client, number: int, listed: list[dict[str, object]]) -> None:
        if number % max(1, self.requests // _SAMPLES) == 0:
            self.samples.append((number, self.server.resident, self.server.descriptors))
        if number % 97 == 0:
            leave_early(self.server, number)
            return
        wanted = request_of(number, listed)
        answer = client.ask(wanted.method, wanted.path, wanted.body, wanted.headers)
        with self._telling:
            self.statuses[answer.status] += 1
        if (problem := _wrong(wanted, answer)) and len(self.problems) < 20:
            self.problems.append(f"{number}: {wanted.method} {wanted.path[:200]} {problem}")


def _wrong(wanted: Wanted, answer: Answer) -> str:
    if answer.status not in wanted.statuses:
        return f"{answer.status}, not {wanted.statuses}: {answer.body[:300]!r}"
    if "x-request-id" not in answer.headers:
        return "has no id"
    told = answer.headers.get("content-type", "")
    if answer.status >= 400 and wanted.method != "HEAD" and wanted.path.startswith("/api") and told != PROBLEM:
        return f"{answer.status} as {told}"
    return ""


def request_of(number: int, listed: list[dict[str, object]]) -> Wanted:
    """The request of this number, of some kind: always the same."""
    pick = Random(number)
    document = pick.choice(listed)
    doc_id, pages = str(document["doc_id"]), int(str(document["num_pages"]))
    return pick.choices([make for make, _ in _KINDS], [weight for _, weight in _KINDS])[0](pick, doc_id, pages)


def leave_early(server: Served, number: int) -> None:
    """A client that goes away: before it has said all, or before it has heard anything."""
    body = json.dumps({"query": QUESTIONS[number % len(QUESTIONS)], "stream": bool(number % 2)}).encode()
    head = (
        f"POST {ASK} HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    whole = head + body
    with socket.create_connection((HOST, server.port), timeout=60) as connection:
        connection.sendall(whole[: len(whole) if number % 3 else Random(number).randrange(len(whole))])


def _question(pick: Random) -> str:
    """Always a new one, so that nothing that remembers questions stays small by itself."""
    return f"{pick.choice(QUESTIONS)} {pick.randrange(10**9)}"


def _ask(pick: Random, doc_id: str, pages: int) -> Wanted:
    body = {"query": _question(pick), "max_tokens": pick.choice([200, 1000, 4000]), "stream": pick.random() < 0.3}
    if pick.random() < 0.3:
        body["filters"] = {"documents": [doc_id]}
    return Wanted("POST", ASK, (200,), json.dumps(body).encode(), _JSON)


def _search(pick: Random, doc_id: str, pages: int) -> Wanted:
    if pick.random() < 0.5:
        body = json.dumps({"query": _question(pick), "num_results": pick.randrange(1, 20)}).encode()
        return Wanted("POST", SEARCH, (200,), body, _JSON)
    return Wanted("GET", f"{SEARCH}?q={pick.randrange(10**9)}+leave&mode={pick.choice(['hybrid', 'lexical'])}")


def _page(pick: Random, doc_id: str, pages: int) -> Wanted:
    path = f"{DOCUMENTS}/{doc_id}/pages/{pick.randrange(1, pages + 1)}"
    return Wanted("GET", path + pick.choice(["", "", "/image", "/image", "/thumbnail", "?question=how+many+weeks"]))


def _document(pick: Random, doc_id: str, pages: int) -> Wanted:
    return Wanted("GET", pick.choice([f"{DOCUMENTS}/{doc_id}", f"{DOCUMENTS}/{doc_id}/outline", f"{DOCUMENTS}?q=a"]))


def _file(pick: Random, doc_id: str, pages: int) -> Wanted:
    start = pick.randrange(1000)
    headers = {"Range": f"bytes={start}-{start + pick.randrange(5000)}"}
    return Wanted("GET", f"{DOCUMENTS}/{doc_id}/file", (200, 206), None, headers)


def _state(pick: Random, doc_id: str, pages: int) -> Wanted:
    return Wanted("GET", pick.choice(["/health", "/ready", "/api/status", "/api/tags", "/metrics", "/openapi.json"]))


def _shown(pick: Random, doc_id: str, pages: int) -> Wanted:
    return Wanted("GET", pick.choice(["/", "/docs", f"/ask?q=leave+{pick.randrange(10**9)}"]))


def _unknown(pick: Random, doc_id: str, pages: int) -> Wanted:
    name = f"{pick.randrange(16**16):016x}"
    paths = [
        f"{DOCUMENTS}/{name}",
        f"{DOCUMENTS}/{name}/pages/1",
        f"{DOCUMENTS}/{doc_id}/pages/{pages + 1 + pick.randrange(10**6)}",
        f"{DOCUMENTS}/{doc_id}/pages/{pages + 1}/image",
        f"/api/{name}",
        f"{DOCUMENTS}/..%2f..%2f{name}",
    ]
    return Wanted("GET", pick.choice(paths), (400, 404))


def _nonsense(pick: Random, doc_id: str, pages: int) -> Wanted:
    bodies = [
        b"{",
        b"[]",
        b'{"query": 7}',
        b'{"query": ""}',
        b"\xff\xfe",
        json.dumps({"query": "x" * 300_000}).encode(),
    ]
    return Wanted("POST", pick.choice([ASK, SEARCH]), (400, 413, 422), pick.choice(bodies), _JSON)


def _stranger(pick: Random, doc_id: str, pages: int) -> Wanted:
    """Without a token, with a wrong one, by another name, from another page."""
    if pick.random() < 0.6:
        token = pick.choice(["", f"Bearer {pick.randrange(10**20)}"])
        return Wanted("GET", f"{DOCUMENTS}/{doc_id}", (401,), None, {"Authorization": token})
    return Wanted("POST", SEARCH, (403,), b"{}", {**_JSON, **pick.choice([{"Host": "evil.example"}, _FOREIGN])})


def _method(pick: Random, doc_id: str, pages: int) -> Wanted:
    return Wanted(pick.choice(["PUT", "DELETE", "PATCH"]), ASK, (405,), b"{}", _JSON)


def _large(pick: Random, doc_id: str, pages: int) -> Wanted:
    return Wanted("POST", ASK, (413,), b" " * (1_200_000), _JSON)


_FOREIGN = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
_KINDS: list[tuple[Callable[[Random, str, int], Wanted], int]] = [
    (_ask, 3),
    (_search, 3),
    (_page, 25),
    (_document, 15),
    (_file, 6),
    (_state, 18),
    (_shown, 4),
    (_unknown, 10),
    (_nonsense, 8),
    (_stranger, 5),
    (_method, 2),
    (_large, 1),
]


def samples_index(folder: Path) -> Path:
    """An index of data/samples, with pictures of the pages."""
    from ingest import Observer, ingest
    from research.settings import Settings
    from research.store import IndexPaths

    root = folder / "index"
    samples = Path(__file__).parents[2] / "data" / "samples"
    ingest(IndexPaths(root), [samples], settings=Settings(), observer=Observer())
    return root
