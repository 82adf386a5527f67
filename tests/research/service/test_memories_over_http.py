"""Memories and turns over HTTP: whose they are is the token's to say, and our own client finds in our own server a
memory service as the seeds have it."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cli.schemas import load
from research.conversation import (
    ContextBuilder,
    ContextBuilderMetrics,
    SomaBrainClient,
    SomaClientError,
    SomaSettings,
    TurnMaker,
)
from research.index import Index
from research.secret import Secret
from research.service.tokens import make_token
from research.store import IndexPaths
from tests.conftest import built_once
from tests.research.conversation.talking import make_talkative
from tests.research.service.serving_app import Whole
from tests.served import Served, served_here
from tests.serving import allow_loopback

BREAKFAST = "Anna eats porridge for breakfast."


@dataclass(frozen=True)
class Running:
    """A whole server without sockets, and the tokens of three who may ask it."""

    made: Whole
    owner: str
    anna: str
    ben: str

    def post(self, path: str, body: Any, token: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return asyncio.run(self.made.send("POST", path, content=json.dumps(body), headers=headers))

    def told(self, token: str, **payload: Any) -> dict[str, Any]:
        answer = self.post("/memory/remember", payload, token)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def found(self, token: str, query: str = "breakfast", **more: Any) -> list[str]:
        answer = self.post("/context/evaluate", {"query": query, "top_k": 8, **more}, token)
        assert answer.status_code == 200, answer.text
        return [each["text"] for each in answer.json()["candidates"]]


@contextmanager
def tokens_in(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        yield


@pytest.fixture
def running(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Running]:
    root = shutil.copytree(built_once(tmp_path_factory, "talkative-index", make_talkative), tmp_path / "index")
    with tokens_in(tmp_path):
        anna, ben = (make_token(IndexPaths(root), name, name)[0].reveal() for name in ("anna", "ben"))
        made = Whole.of(root, tmp_path)
        yield Running(made, made.token, anna, ben)
        made.close()


def test_tenants_come_from_tokens(running: Running) -> None:
    assert running.told(running.anna, text=BREAKFAST)["outcome"] == "stored"
    assert running.found(running.anna) == [BREAKFAST]
    assert running.found(running.ben) == running.found(running.owner) == []
    assert running.found(running.anna, tenant_id="anna") == [BREAKFAST]
    assert running.found(running.owner, tenant_id="anna") == [BREAKFAST], "the owner may name any"
    running.told(running.owner, text="Ben eats toast for breakfast.", tenant_id="ben")
    assert running.found(running.ben) == ["Ben eats toast for breakfast."]


def test_what_replaces_a_memory_stands_before_it(running: Running) -> None:
    old = running.told(running.anna, text=BREAKFAST)["id"]
    running.told(running.anna, text="Toast it is, from today on.", replaces=old)
    assert running.found(running.anna)[0] == "Toast it is, from today on."
    assert running.post("/memory/remember", {"text": "x", "replaces": "nobody"}, running.anna).status_code == 422


def test_another_tenant_than_the_tokens_is_refused(running: Running) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "/context/evaluate": {"query": "breakfast"},
        "/recall": {"query": "breakfast"},
        "/memory/remember": {"text": "something"},
        "/memory/remember/batch": {"memories": [{"text": "something"}]},
        "/context/turn": {"user_message": "breakfast"},
    }
    running.told(running.anna, text=BREAKFAST)
    for (path, body), name, wrong in product(bodies.items(), ("tenant_id", "tenant"), ("anna", "Ben", "*", "ben%")):
        answer = running.post(path, {**body, name: wrong}, running.ben)
        assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json"), path
        assert BREAKFAST not in answer.text, path
    assert running.found(running.ben) == []
    for path, body in bodies.items():
        assert running.post(path, body, "guessed").status_code == 401, path


def test_a_tenant_inside_a_memory_counts_for_nothing(running: Running) -> None:
    memories = [{"text": BREAKFAST, "tenant_id": "anna", "tenant": "anna", "namespace": ""}]
    assert running.post("/memory/remember/batch", {"memories": memories}, running.ben).status_code == 200
    assert running.found(running.anna) == []
    assert running.found(running.ben) == [BREAKFAST]


def test_what_cannot_be_understood_is_said_and_nothing_is_told(running: Running) -> None:
    for path, body in (
        ("/context/evaluate", {}),
        ("/context/evaluate", {"query": 5}),
        ("/context/evaluate", {"query": "x", "top_k": "many"}),
        ("/context/evaluate", {"query": "x", "threshold": 7}),
        ("/context/evaluate", {"query": "x", "tenant_id": ["a"]}),
        ("/memory/remember", {"text": ""}),
        ("/memory/remember", {"text": "x" * 20_001}),
        ("/memory/remember", {"text": "x", "metadata": "no"}),
        ("/memory/remember/batch", {"memories": "x"}),
        ("/memory/remember/batch", {"memories": [{"text": "fine"}, {"text": "x", "importance": 9}]}),
        ("/context/turn", {"user_message": "x", "max_prompt_tokens": 0}),
        ("/context/turn", {"user_message": "word " * 900, "max_prompt_tokens": 50}),
    ):
        answer = running.post(path, body, running.owner)
        assert answer.status_code == 422, (path, str(body)[:100], answer.text)
        assert answer.json()["detail"], path
    assert list(running.made.made.service.index.memories.list()) == []


def test_a_turn_is_built_with_memories_and_documents(running: Running) -> None:
    running.told(running.anna, text="Anna wants to know about the guarantee of the G4 in short sentences.")
    body = {"user_message": "How long is the guarantee of the G4?", "documents": True, "max_prompt_tokens": 800}
    answer = running.post("/context/turn", body, running.anna)
    assert answer.status_code == 200, answer.text
    hers = answer.json()
    jsonschema.validate(hers, load("turn"))
    assert [message.get("name") for message in hers["messages"]] == [None, "memory", None], "documents are the owner's"
    document = running.post("/context/turn", {**body, "tenant_id": "anna"}, running.owner).json()
    assert [message.get("name") for message in document["messages"]] == [None, "memory", "documents", None]
    assert document["prompt_tokens"] <= 800
    assert "short sentences" not in running.post("/context/turn", body, running.ben).text
    odd = running.post("/context/turn", {"user_message": "half \ud800", "history": ["\ud800", {"x": [1]}]}, running.ben)
    assert odd.status_code == 200


def test_metrics_have_those_of_turns(running: Running) -> None:
    running.post("/context/turn", {"user_message": "hello"}, running.anna)

    metrics = asyncio.run(running.made.send("GET", "/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(metrics)}
    counted = {sample.name: sample.value for sample in families["context_builder_prompt"].samples}
    assert counted["context_builder_prompt_total"] == 1
    assert {"thinking_total_seconds", "thinking_retrieval_seconds", "context_prompt_tokens"} <= families.keys()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server, and the token of a tenant."""
    folder = tmp_path_factory.mktemp("served")
    root = shutil.copytree(built_once(tmp_path_factory, "talkative-index", make_talkative), folder / "index")
    with tokens_in(folder):
        token = make_token(IndexPaths(root), "agent", "lab")[0].reveal()
        with pytest.MonkeyPatch.context() as patch:
            allow_loopback(patch)
            with served_here(root, folder) as running:
                yield running, token


def test_the_real_client_finds_a_memory_service_in_the_real_server(real: tuple[Served, str], loopback: None) -> None:
    server, token = real

    async def talk() -> None:
        settings = SomaSettings(f"http://127.0.0.1:{server.port}", key=Secret(token), max_retries=0)
        async with SomaBrainClient(settings=settings) as client:
            told = await client.remember({"text": "The lab meets on Tuesdays.", "key": "meeting"})
            assert told == {"ok": True, "id": told["id"], "outcome": "stored"}
            again = await client.remember({"text": "The lab meets on Tuesdays.", "key": "meeting"})
            assert (again["id"], again["outcome"]) == (told["id"], "known")
            batch = await client.remember_batch({"tenant_id": "lab", "memories": [{"text": "Coffee is at ten."}]})
            assert batch["ok"]
            for found in (
                await client.context_evaluate({"tenant_id": "lab", "query": "When does the lab meet?", "top_k": 3}),
                await client.recall("When does the lab meet?", top_k=3),
                await client.recall({"query": "When does the lab meet?", "top_k": 3}),
            ):
                assert found["candidates"][0]["text"] == "The lab meets on Tuesdays."
            with pytest.raises(SomaClientError) as refused:
                await client.context_evaluate({"tenant_id": "others", "query": "x", "top_k": 3})
            assert refused.value.code == "refused"
        async with SomaBrainClient(f"http://127.0.0.1:{server.port}") as stranger:
            with pytest.raises(SomaClientError):
                await stranger.recall("x")

    asyncio.run(talk())


def test_a_turn_is_built_with_the_memory_of_another_ctx(real: tuple[Served, str], loopback: None) -> None:
    server, token = real

    async def talk() -> None:
        settings = SomaSettings(f"http://127.0.0.1:{server.port}", key=Secret(token))
        async with SomaBrainClient(settings=settings) as client:
            await client.remember({"text": "Ida looks after the kiln.", "key": "kiln"})
            builder = ContextBuilder(somabrain=client, metrics=ContextBuilderMetrics(), token_counter=len)
            turn = {"tenant_id": "lab", "session_id": "s", "user_message": "Who looks after the kiln?"}
            history = [{"role": "user", "content": f"{number}: {'word ' * 40}"} for number in range(30)]
            built = await builder.build_for_turn({**turn, "history": history}, max_prompt_tokens=2000)
            assert built.debug["retrieval"]["status"] == "ok"
            assert built.snippets[0]["text"] == "Ida looks after the kiln."
            assert built.debug["summary"] == "stored", "what was trimmed is remembered over there"

    asyncio.run(talk())


def test_ctx_turn_asks_the_server_that_the_environment_names(
    real: tuple[Served, str], loopback: None, tmp_path: Path
) -> None:
    server, token = real
    environment = {"SA01_SOMA_BASE_URL": f"http://127.0.0.1:{server.port}", "SA01_SOMA_API_KEY": token}
    with Index(tmp_path / "empty") as index:
        maker = TurnMaker(index, environment=environment)

        async def tell() -> None:
            async with SomaBrainClient(settings=SomaSettings.from_environment(environment)) as client:
                await client.remember({"tenant_id": "lab", "text": "Ida looks after the kiln.", "key": "kiln"})

        asyncio.run(tell())
        for _ in range(2):  # each in an event loop of its own
            built = maker.build_now({"tenant_id": "lab", "user_message": "Who looks after the kiln?"})
            assert "Ida" in built.context.snippets[0]["text"]
        assert not index.exists
