"""Packages over HTTP: the library's own, for whoever the token says asks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from research.governance import Principal
from research.packages import published
from tests.research.service.serving_app import run_client as run

ASKED = {"intent": "why do uploads stop and are parts sent again", "tokenBudget": 700}
BUILD = "/knowledge/context/build"
OTHER = Principal("eva", "eva")


@pytest.fixture
def root(of_everything: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(of_everything, tmp_path / "index"))


def test_a_package_is_built_and_given_again(root: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        built = await client.post(BUILD, json=ASKED)
        assert built.status_code == 200, built.text
        package = built.json()
        Draft202012Validator(published("package")).validate(package)
        assert package["sources"]
        assert package["tokensUsed"] <= package["tokenBudget"] == 700
        assert package["traceId"] == "0af7651916cd43dd8448eb211c80319c"
        again = await client.get(f"/knowledge/context/{package['contextPackageId']}")
        assert again.json() == package
        paths = (await client.get("/openapi.json")).json()["paths"]
        assert BUILD in paths
        assert "/knowledge/context/{package_id}" in paths

    run(work, root, trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")


def test_what_is_no_request_is_a_problem_with_its_trace(root: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"tenant": "eva"},
        {"principal": "root"},
        {"tokenBudget": -1},
        {"pinned": ["memory:m"] * 10_000},
        {"pinned": ["forged\nref"]},
    ]

    async def work(client: httpx.AsyncClient) -> None:
        for body in ({}, *({**ASKED, **each} for each in wrong)):
            answer = await client.post(BUILD, json=body)
            assert answer.status_code == 422, str(body)[:200]
            problem = answer.json()
            assert problem["traceId"] == "0af7651916cd43dd8448eb211c80319c"
            assert problem["errors"]
            assert len(answer.content) < 10_000

    run(work, root, trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")


def test_nobody_else_gets_it_and_without_a_policy_nobody_else_gets_anything(root: Path) -> None:
    ids: list[str] = []

    async def build(client: httpx.AsyncClient) -> None:
        ids.append((await client.post(BUILD, json=ASKED)).json()["contextPackageId"])

    async def look(client: httpx.AsyncClient) -> None:
        answer = await client.get(f"/knowledge/context/{ids[0]}")
        assert answer.status_code == 404
        assert answer.json()["traceId"]
        package = (await client.post(BUILD, json=ASKED)).json()
        assert {source["kind"] for source in package["sources"]} == {"memory"}, "nothing but what is theirs"
        assert package["denied"] is False

    run(build, root)
    run(look, root, caller=OTHER)


def test_an_id_that_is_none_is_not_looked_for(root: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        for name in ("..%2F..%2Fetc", "g" * 32, "0" * 100):
            assert (await client.get(f"/knowledge/context/{name}")).status_code in (404, 422)
        assert json.loads((await client.get(f"/knowledge/context/{'0' * 32}")).text)["status"] == 404

    run(work, root)


def test_the_audit_is_for_the_owner_alone(root: Path) -> None:
    async def read(client: httpx.AsyncClient) -> None:
        package = (await client.post(BUILD, json=ASKED)).json()
        entries = (await client.get("/knowledge/audit", params={"limit": 1})).json()["entries"]
        assert [each["decision"] for each in entries] == [package["policyDecisionId"]]
        assert entries[0]["trace_id"] == package["traceId"]
        assert (await client.get("/knowledge/audit", params={"limit": 0})).status_code == 422

    async def refused(client: httpx.AsyncClient) -> None:
        answer = await client.get("/knowledge/audit")
        assert answer.status_code == 403
        assert "entries" not in answer.json()

    run(read, root)
    run(refused, root, caller=OTHER)
