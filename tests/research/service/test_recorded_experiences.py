"""Experiences told by programs and agents: POST /api/experiences, and the tool record_experience."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from research.governance import Principal
from research.index import Index
from research.service.knowledge import ExperienceDocument
from research.service.mcp.tasks import record_experience
from tests.mcp_driving import agent_here, fields_of, text_of
from tests.research.service.serving_app import run_client

TOLD = {"goal": "Find the leak", "hypothesis": "A file stays open", "action": "Count them", "prediction": "They grow"}
ENDED = {"outcome": "falsified", "outcome_result": "They did not"}


def post(root: Path, *bodies: Any, owner: bool = True) -> list[httpx.Response]:
    answers: list[httpx.Response] = []

    async def work(client: httpx.AsyncClient) -> None:
        answers.extend([await client.post("/api/experiences", json=body) for body in bodies])

    run_client(work, root, caller=Principal("me", "", owner=owner))
    return answers


def test_in_two_requests(tmp_path: Path) -> None:
    begun, ended, again = post(
        tmp_path / "index",
        {**TOLD, "id": "leak-1", "domain": "debugging"},
        {"id": "leak-1", **ENDED},
        {"id": "leak-1", **ENDED},
    )
    assert begun.status_code == 200
    assert (begun.json()["schema"], begun.json()["outcome"]) == ("ctx.research.experience/1", "")
    document = ended.json()
    assert (document["outcome"], document["confidence_tier"], document["goal"]) == ("falsified", "silver", TOLD["goal"])
    TypeAdapter(ExperienceDocument).validate_python(document)
    assert again.status_code == 422
    assert "closed already" in again.json()["detail"]
    with Index.open(tmp_path / "index") as index:
        assert index.experiences.get("leak-1").domain == "debugging"


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    wrong: list[tuple[Any, str]] = [
        ({**TOLD, "domain": "cooking"}, "debugging, refactoring"),
        ({**TOLD, "outcome": "won"}, "confirmed"),
        ({**TOLD, "outcome": "confirmed"}, "needs a result"),
        ({"goal": "g"}, "needs a hypothesis, an action and a prediction"),
        ({**TOLD, "mood": "good"}, "mood"),
        ({**TOLD, "goal": "x" * 5001}, "5,000"),
        ([], "body"),
    ]
    for refused, (body, words) in zip(post(tmp_path / "index", *(body for body, _ in wrong)), wrong, strict=True):
        assert refused.status_code == 422, str(body)[:200]
        assert words in refused.text
    assert not (tmp_path / "index").exists()


def test_only_the_owner_may(tmp_path: Path) -> None:
    [refused] = post(tmp_path / "index", TOLD, owner=False)
    assert refused.status_code == 403
    assert refused.headers["content-type"] == "application/problem+json"
    assert not (tmp_path / "index").exists()


@pytest.mark.slow
def test_values_follow_in_the_background(tmp_path: Path) -> None:
    with Index(tmp_path / "index") as index:
        for number in range(10):
            index.experiences.record(**TOLD, **ENDED, root_cause=f"No timeout was set on request {number}")
        record_experience(index, **TOLD, **ENDED, root_cause="No timeout was set on the request")
        renewing = [each for each in threading.enumerate() if each.name.endswith("renewing values")]
        for each in renewing:
            each.join()
        assert renewing
        [value] = index.experiences.values(axis="root_cause")
        assert value.cluster_size >= 10


def test_an_agent_records_before_there_is_any_document(tmp_path: Path) -> None:
    with agent_here(tmp_path / "index") as agent:
        begun = agent.call("record_experience", **TOLD)
        id = fields_of(begun)["id"]
        assert f"record_experience with id={id}, outcome" in text_of(begun)
        assert fields_of(agent.call("record_experience", id=id, hypothesis="A socket"))["iteration_count"] == 2
        ended = agent.call("record_experience", id=id, **ENDED, lesson="Count sockets, too")
        assert fields_of(ended)["state"] == "falsified"
        assert "closed already" in text_of(agent.call("record_experience", id=id, **ENDED))
        assert "choose from: confirmed" in text_of(agent.call("record_experience", **TOLD, outcome="won"))
    with Index.open(tmp_path / "index") as index:
        assert index.experiences.get(id).lesson == "Count sockets, too"
