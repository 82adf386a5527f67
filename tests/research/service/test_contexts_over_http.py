"""Context of several sources and the premortem over HTTP: the library's own, for whoever the token says asks."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx
from pydantic import TypeAdapter

from research.governance import Principal
from research.index import Index
from research.service.knowledge import ContextDocument
from research.sources import CONTEXT_TYPES
from tests.research.service.serving_app import run_client as run

ASKED = "why do uploads stop and are parts sent again"


def test_a_context_is_the_librarys(of_everything: Path) -> None:
    with Index.open(of_everything) as index:
        expected = index.context(ASKED, CONTEXT_TYPES, max_tokens=900)

    async def work(client: httpx.AsyncClient) -> None:
        answered = await client.post("/api/context", json={"query": ASKED, "max_tokens": 900})
        assert answered.status_code == 200
        found = answered.json()
        assert found["schema"] == "ctx.research.context/1"
        assert found["markdown"] == expected.markdown
        assert found["token_count"] == expected.token_count <= 900
        assert [item["ref"] for item in found["items"]] == [item.ref for item in expected.items]
        TypeAdapter(ContextDocument).validate_python(found)
        some = (await client.post("/api/context", json={"query": ASKED, "context_types": ["code", "code"]})).json()
        assert set(some["sources_used"]) == {"code"}

    run(work, of_everything)


def test_the_premortem_is_the_librarys(of_everything: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        body = {"domain": "debugging", "strategy": "read-the-error", "max_tokens": 1200}
        found = (await client.post("/api/premortem", json=body)).json()
        assert found["markdown"].startswith("# Premortem: debugging with read-the-error\n")
        assert found["token_count"] <= 1200
        TypeAdapter(ContextDocument).validate_python(found)
        unknown = await client.post("/api/premortem", json={"domain": "dreaming"})
        assert unknown.status_code == 422
        assert "refactoring" in unknown.json()["hint"]
        nothing = await client.post("/api/premortem", json={"domain": "refactoring"})
        assert (nothing.status_code, nothing.json()["markdown"]) == (200, "")

    run(work, of_everything)


def test_memories_are_those_of_whoever_asks_whatever_the_body_says(of_everything: Path, tmp_path: Path) -> None:
    body = {"query": "the key under the mat", "context_types": ["memories"]}

    async def as_owner(client: httpx.AsyncClient) -> None:
        assert "secret" not in (await client.post("/api/context", json=body)).text
        assert (await client.post("/api/context", json={**body, "tenant": "eva"})).status_code == 422

    async def as_eva(client: httpx.AsyncClient) -> None:
        found = (await client.post("/api/context", json=body)).json()
        assert "secret upload key" in found["markdown"]
        assert found["sources_used"] == {"memories": 1}

    run(as_owner, of_everything)
    run(as_eva, Path(shutil.copytree(of_everything, tmp_path / "index")), caller=Principal("eva", "eva"))


def test_without_an_index_nothing_is_found(tmp_path: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        assert (await client.post("/api/context", json={"query": ASKED})).status_code == 404

    run(work, tmp_path / "none")
