"""Questions over HTTP: the seed's field names, the library's own answers, and a clear status for every bad request."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from research.index import Index
from research.service.service import Limits, ServeOptions, Service
from tests.research.service.serving_app import client_of, events, run

LEAVE = "How long is parental leave under the 2025 handbook?"


def test_an_answer_has_the_names_of_the_seed_and_the_librarys_content(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        found = (await client.post("/api/research/ask", json={"query": LEAVE, "max_tokens": 900})).json()
        with Index.open(sample_index) as index:
            expected = index.ask(LEAVE, max_tokens=900, highlights=True)
        assert {"answer", "sources", "truncated", "total_tokens"} <= found.keys()
        assert found["formatted_text"] == expected.formatted_text
        assert found["total_tokens"] == expected.total_tokens <= 900
        assert found["truncated"] == expected.truncated
        assert found["confidence"] == {"value": expected.confidence.value, "level": expected.confidence.level}
        assert [source["ref"] for source in found["sources"]] == [source.ref for source in expected.sources]
        for source, known in zip(found["sources"], expected.sources, strict=True):
            assert known.to_dict().keys() <= source.keys(), "every field of the contract"
            assert source["markdown_content"] == known.markdown_content
        assert [source["citation"] for source in found["sources"]] == list(range(1, len(found["sources"]) + 1))

    run(work, sample_index)


def test_without_a_model_the_answer_is_the_quotes(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        found = (await client.post("/api/research/ask", json={"query": LEAVE})).json()
        assert found["answer_kind"] == "quotes"
        assert found["written"] is None
        first = found["quotes"][0]
        assert found["answer"].splitlines()[0] == f"{' '.join(first['text'].split())} [{first['citation']}]"
        assert "18 weeks" in found["answer"]

    run(work, sample_index)


def test_a_session_goes_on_and_a_turn_of_it_can_be_asked_again(sample_index: Path, tmp_path: Path) -> None:
    index = Path(shutil.copytree(sample_index, tmp_path / "index"))

    async def work(client: httpx.AsyncClient, service: Service) -> None:
        async def ask(query: str, **more: object) -> dict[str, Any]:
            found: dict[str, Any] = (await client.post("/api/research/ask", json={"query": query, **more})).json()
            return found

        first = await ask("What was the order intake of Weighing Systems?", session="talk")
        second = await ask("Who leads it?", session="talk")
        assert (first["session"], second["session"]) == ({"name": "talk", "turn": 1}, {"name": "talk", "turn": 2})
        assert second["searched"] == "Who leads it? Weighing Systems"
        again = await ask("Who leads it?", session="talk", turn=2)
        assert (again["searched"], again["session"]) == (second["searched"], second["session"])
        assert (await ask("Who leads it?", session="talk", turn=1))["searched"] == "Who leads it?"
        assert "session" not in await ask("Who leads it?")
        told = (await client.get("/api/sessions/talk")).json()
        assert [turn["question"] for turn in told["turns"]] == [first["query"], "Who leads it?"]
        assert (await client.get("/api/sessions/other")).status_code == 404
        assert (await client.post("/api/research/ask", json={"query": "x", "session": "a\nb"})).status_code == 422

    run(work, index)


def test_a_stream_brings_the_context_and_then_the_answer(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        for options in ({"json": {"query": LEAVE, "stream": True}}, {"json": {"query": LEAVE}}):
            accept = {"Accept": "text/event-stream"}
            answered = await client.post("/api/research/ask", headers=accept, **options)
            assert answered.headers["content-type"].startswith("text/event-stream")
            named = events(answered.text)
            assert [name for name, _ in named] == ["context", "answer"]
            assert named[0][1]["answer"] == named[1][1]["answer"]

    run(work, sample_index)


def test_trouble_on_the_way_is_an_event_of_a_stream(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        body = {"query": LEAVE, "stream": True, "documents": ["no-such.pdf"]}
        [(name, problem)] = events((await client.post("/api/research/ask", json=body)).text)
        assert name == "problem"
        assert problem["status"] == 404
        assert problem["instance"] == "test-request"

    run(work, sample_index)


def test_filters_reach_the_index(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        body = {"query": "parental leave", "filters": {"documents": ["saltmarsh-handbook-2024.pdf"], "pages": "5-9"}}
        found = (await client.post("/api/search", json=body)).json()
        assert {result["filename"] for result in found["results"]} == {"saltmarsh-handbook-2024.pdf"}
        assert all(5 <= result["page"] <= 9 for result in found["results"])
        by_address = await client.get(
            "/api/search", params={"q": "parental leave", "doc": "saltmarsh-handbook-2024.pdf", "pages": "5-9"}
        )
        assert [each["ref"] for each in by_address.json()["results"]] == [each["ref"] for each in found["results"]]
        none = await client.post("/api/search", json={"query": "x", "documents": []})
        assert none.json()["results"] == [], "a list that came out empty allows nothing"

    run(work, sample_index)


BAD = [
    (b"{", 400),
    (b"\xff\xfe", 400),
    (b"", 422),
    (b"[]", 422),
    (b'{"query": "   "}', 422),
    (b'{"query": "a", "max_tokns": 5}', 422),
    (b'{"query": "a", "max_tokens": "many"}', 422),
    (b'{"query": "a", "filters": {"pages": "x"}}', 422),
    (b'{"query": "a", "documents": ["\\u0000"]}', 422),
    (b'{"query": "a", "documents": ["nothing.pdf"]}', 404),
    (b'{"query": "' + b"a" * 30_000 + b'"}', 422),
    (b'{"query": "leave", "write": true}', 422),
]


def test_bad_requests_get_a_problem_document(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        headers = {"Content-Type": "application/json"}
        for body, status in BAD:
            for path in ("/api/research/ask", *(() if b"write" in body else ("/api/search",))):
                answered = await client.post(path, content=body, headers=headers)
                assert answered.status_code == status, (body[:100], answered.text)
                assert answered.headers["content-type"] == "application/problem+json"
                problem = answered.json()
                assert problem["status"] == status
                assert problem["type"].startswith("urn:ctx:problem:")
                assert problem["instance"] == "test-request"
                assert len(answered.content) < 5000, "the value itself is not told back"

    run(work, sample_index)


@pytest.mark.slow
def test_more_questions_than_may_wait_are_told_to_come_again(sample_index: Path) -> None:
    limits = Limits(questions=1, waiting=2)

    async def work(client: httpx.AsyncClient, service: Service) -> None:
        asked = [client.post("/api/search", json={"query": f"parental leave {n}"}) for n in range(8)]
        answers = await asyncio.gather(*asked)
        assert sorted({answer.status_code for answer in answers}) == [200, 429]
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["hint"]
        assert (await client.post("/api/search", json={"query": "leave"})).status_code == 200

    run(work, sample_index, options=ServeOptions(limits=limits))


@pytest.mark.slow
def test_a_question_that_takes_too_long_is_let_go_and_keeps_its_place_until_it_ends(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        late = await client.post("/api/research/ask", json={"query": LEAVE})
        assert late.status_code == 504
        assert late.json()["hint"]
        while service.turns.working:
            await asyncio.sleep(0.01)
        assert (await client.get("/health")).status_code == 200

    run(work, sample_index, options=ServeOptions(limits=Limits(question_seconds=0.0)))


@pytest.mark.slow
def test_an_index_that_is_removed_emptied_damaged_or_replaced(sample_index: Path, tmp_path: Path) -> None:
    root = tmp_path / "index"
    shutil.copytree(sample_index, root)

    async def main() -> None:
        async with client_of(root) as (client, _):
            ask = {"json": {"query": LEAVE}}
            before = (await client.post("/api/research/ask", **ask)).json()
            root.rename(tmp_path / "away")
            gone = await client.get("/api/search?q=leave")
            assert gone.status_code == 404, gone.text
            assert "ctx ingest" in gone.json()["hint"]
            unready = await client.get("/ready")
            assert unready.status_code == 503
            assert str(tmp_path) not in unready.text, "anybody may ask this"
            assert (await client.get("/api/documents")).json()["total"] == 0
            shutil.copytree(sample_index, root)
            again = await client.post("/api/research/ask", **ask)
            assert again.json()["formatted_text"] == before["formatted_text"]
            (root / "catalog.sqlite3").write_bytes(b"nonsense " * 1000)
            damaged = await client.post("/api/research/ask", **ask)
            assert damaged.status_code == 503, damaged.text
            assert damaged.json()["hint"]
            assert (await client.get("/ready")).status_code == 503
            assert (await client.get("/health")).status_code == 200
            shutil.rmtree(root)
            (tmp_path / "away").rename(root)
            assert (await client.post("/api/research/ask", **ask)).status_code == 200

    asyncio.run(main())


def test_real_answers_are_what_the_interface_promises(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        interface = (await client.get("/openapi.json")).json()
        asked = (await client.post("/api/research/ask", json={"query": LEAVE})).json()
        page = asked["sources"][0]["page_url"]
        document = page.partition("/pages/")[0]
        for method, path, shown, body in (
            ("post", "/api/research/ask", "/api/research/ask", {"query": LEAVE}),
            ("post", "/api/search", "/api/search", {"query": LEAVE}),
            ("get", "/api/documents", "/api/documents", None),
            ("get", document, "/api/documents/{doc_id}", None),
            ("get", f"{document}/outline", "/api/documents/{doc_id}/outline", None),
            ("get", f"{page}?question=leave", "/api/documents/{doc_id}/pages/{page}", None),
            ("get", "/api/tags", "/api/tags", None),
            ("get", "/api/status", "/api/status", None),
        ):
            answered = await client.request(method, path, json=body)
            assert answered.status_code == 200, path
            schema = interface["paths"][shown][method]["responses"]["200"]["content"]["application/json"]["schema"]
            jsonschema.validate(answered.json(), {**schema, "components": interface["components"]})

    run(work, sample_index)
