"""A real server under a crowd of right and wrong requests for a few seconds; `make soak` goes on for far longer."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.served import HOST, Served, served, served_here
from tests.soak.running import growth
from tests.soak.serving import DOCUMENTS, SEARCH, ServerSoak

REQUESTS = 2_000


@pytest.mark.slow
@pytest.mark.usefixtures("loopback")
def test_two_thousand_requests(sample_index: Path, tmp_path: Path) -> None:
    with served(sample_index, tmp_path, env={"MALLOC_ARENA_MAX": "1"}) as server:
        soak = ServerSoak(server, REQUESTS)
        soak.run()
    kilobytes, descriptors = growth(soak.samples, REQUESTS // 2)
    assert soak.problems == []
    assert {200, 206, 401, 403, 404, 405, 413, 422} <= set(soak.statuses)
    assert not [status for status in soak.statuses if status >= 500]
    assert kilobytes < 12_000  # what is kept once is not all there yet
    assert descriptors <= 12  # connections come and go


@pytest.mark.usefixtures("loopback")
def test_a_request_that_begins_before_the_one_before_it_is_answered(sample_index: Path, tmp_path: Path) -> None:
    """Its body is its body, however long, and not more headers."""
    with served_here(sample_index, tmp_path) as server:
        assert _early(server) == [200, 422]


def _early(server: Served) -> list[int]:
    """The statuses of two requests of one connection, sent one after the other."""
    client = server.client()
    document = json.loads(client.ask("GET", DOCUMENTS).body)["documents"][0]["doc_id"]
    client.close()
    own = f"Host: {HOST}:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
    body = json.dumps({"query": "x" * 100_000}).encode()
    first = f"GET {DOCUMENTS}/{document}/pages/1/image HTTP/1.1\r\n{own}\r\n"
    second = f"POST {SEARCH} HTTP/1.1\r\n{own}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection((HOST, server.port), timeout=60) as connection:
        connection.sendall(f"{first}{second}Connection: close\r\n\r\n".encode())
        connection.sendall(body)
        answered = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    return [int(answered[at + 9 : at + 12]) for at in range(len(answered)) if answered.startswith(b"HTTP/1.1 ", at)]
