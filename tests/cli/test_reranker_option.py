"""A reranker on the real command: the order, what --explain shows, and what is told when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.in_process import Ran
from tests.serving import KEY, Asked, Reply, Served, serving

QUESTION = "housing bubble"


@pytest.fixture
def server(loopback: None) -> Iterator[Served]:
    """Likes short texts best."""

    def answer(asked: Asked) -> Reply:
        texts = asked.document["documents"]
        return Reply({"results": [{"index": n, "relevance_score": 1 / len(text)} for n, text in enumerate(texts)]})

    with serving(answer) as served:
        yield served


def test_the_variable(call: Callable[..., Ran], filled: Path, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def pages(reranker: str) -> list[tuple[str, int]]:
        monkeypatch.setenv("CTX_RERANKER", reranker)
        ran = call("ask", QUESTION, "--json", "--index", str(filled))
        assert (ran.code, ran.err) == (0, "")
        return [(source["filename"], source["page"]) for source in ran.document["sources"]]

    url = f"{server.url}/rerank"
    plain = pages("")
    ordered = pages(url)
    assert ordered != plain
    assert sorted(ordered) == sorted(plain)
    lengths = [len(text) for text in server.asked[0].document["documents"]]
    assert len(lengths) == len(plain)
    assert pages("off") == plain
    monkeypatch.setenv("CTX_RERANKER", url)
    found = call("search", QUESTION, "--json", "--index", str(filled)).document["results"]
    assert [(result["filename"], result["page"]) for result in found] == ordered
    assert [result["legs"]["reranker"]["rank"] for result in found] == list(range(1, len(found) + 1))


@pytest.mark.parametrize("command", ["ask", "search"])
def test_explain_shows_it(
    call: Callable[..., Ran], filled: Path, server: Served, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "reranker" not in call(command, QUESTION, "--explain", "--index", str(filled)).err
    monkeypatch.setenv("CTX_RERANKER", f"{server.url}/rerank")
    assert "reranker rank 1 score 0." in call(command, QUESTION, "--explain", "--index", str(filled)).err


def test_one_that_is_down_is_told_and_changes_nothing(
    call: Callable[..., Ran], filled: Path, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTX_RERANKER_KEY", KEY)
    server.answer = lambda asked: Reply({"error": f"wrong: {asked.headers['Authorization']}"}, 401)
    args = ("--json", "--debug", "--index", str(filled))
    plain = call("ask", QUESTION, *args)
    monkeypatch.setenv("CTX_RERANKER", f"{server.url}/rerank")
    down = call("ask", QUESTION, *args)
    monkeypatch.delenv("CTX_RERANKER")
    assert (down.code, down.document["sources"]) == (0, plain.document["sources"])
    [note] = down.document["coverage"]["notes"]
    assert note.startswith(
        f"the reranker failed ({server.url}/rerank does not accept the key ({server.url}/rerank answered 401: wrong: "
    )
    assert f"ctx: note: {note}" in down.err
    assert KEY not in down.out + down.err
    doctor = call("doctor", "--index", str(filled))
    assert "reranker" not in doctor.out
    monkeypatch.setenv("CTX_RERANKER", f"{server.url}/rerank")
    doctor = call("doctor", "--index", str(filled))
    assert (
        f"warn\treranker\t{server.url}/rerank does not accept the key ({server.url}/rerank answered 401: wrong: Bearer"
        " [key])\tsee that CTX_RERANKER_KEY" in doctor.out
    )
    assert KEY not in doctor.out + doctor.err
    status = call("status", "--json", "--index", str(filled))
    assert status.document["contacts"] == [{"use": "reranker", "address": f"{server.url}/rerank"}]


def test_doctor_and_status_of_one_that_is_well(
    call: Callable[..., Ran], filled: Path, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "contacts     nobody: all of it runs here" in call("status", "--index", str(filled)).out
    assert "contacts     nobody" in call("status", "--index", "nowhere").out
    monkeypatch.setenv("CTX_RERANKER", f"{server.url}/rerank")
    assert f"ok\treranker\t{server.url}/rerank answers in " in call("doctor", "--index", str(filled)).out
    assert f"contacts     {server.url}/rerank (reranker)" in call("status", "--index", str(filled)).out


def test_a_wrong_address_is_a_wrong_call(call: Callable[..., Ran], filled: Path, monkeypatch) -> None:
    monkeypatch.setenv("CTX_RERANKER", "http://user:hunter2@h/rerank")
    ran = call("ask", "x", "--index", str(filled))
    assert (ran.code, "hunter2" in ran.err) == (2, False)
    assert "CTX_RERANKER: reranker has a user name or password in its address" in ran.err
