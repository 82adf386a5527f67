"""The builder with what it should not be given: the turn is built, `debug` tells, and nothing outlasts its time."""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.conversation import SomabrainHealthState
from research.conversation.salience import read_candidates, score_of
from research.conversation.turn import Turn
from research.errors import UsageError
from tests.research.conversation.making import NOW, Clock, Memories, build, builder, memory, talk, turn


def test_in_order_of_salience_and_clipped() -> None:
    memories = [
        memory("old and far", 0.6, days=60),
        memory("old and near", 0.9, days=60),
        memory("new and far", 0.6, days=2),
        memory("new and near", 0.95, days=1),
    ]
    context = build(builder(Memories(*memories), health_provider=lambda: SomabrainHealthState.DEGRADED), turn())
    assert [snippet["text"] for snippet in context.snippets] == ["new and near", "new and far", "old and near"]
    assert [round(snippet["score"], 2) for snippet in context.snippets] == [0.96, 0.70, 0.67]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "no",
        b"no",
        7,
        {"candidates": "none"},
        {"candidates": {"id": 1}},
        {"results": 7},
        object(),
    ],
)
def test_an_answer_of_another_form_is_an_error_of_the_service(answer: Any) -> None:
    service = Memories()
    service.answer = answer
    made = builder(service)
    context = build(made, turn(history=talk(3)))
    assert context.debug["retrieval"]["status"] == "failed"
    assert context.debug["retrieval"]["reason"].startswith("the memory service did not answer as one does")
    assert len(context.messages) == 5
    assert made.health.state() == "degraded"


@pytest.mark.parametrize(
    "answer", [{}, [], {"candidates": None}, {"candidates": []}, {"candidates": None, "results": []}]
)
def test_nothing_found_is_no_error(answer: Any) -> None:
    service = Memories()
    service.answer = answer
    made = builder(service)
    assert build(made, turn()).debug["retrieval"] == {"status": "ok", "reason": "", "candidates": 0}
    assert made.health.state() == "normal"


def test_odd_candidates_are_left_out_and_counted() -> None:
    odd: list[Any] = [
        None,
        "text",
        {},
        {"text": 7},
        {"text": "  "},
        {"text": "x" * 200_000},
        memory("good"),
        memory("good"),
        {"content": "as content", "score": "0.5", "created_at": NOW.isoformat(), "metadata": "none"},
    ]
    context = build(builder(Memories(*odd)), turn())
    assert [snippet["text"] for snippet in context.snippets] == ["good", "as content"]
    assert context.snippets[1]["recency"] == 1.0
    assert context.debug["dropped"] == {"not_a_memory": 2, "without_text": 3, "too_long": 1, "repeated": 1}


@pytest.mark.parametrize(
    ("given_score", "score"),
    [
        (0.5, 0.5), (1, 1.0), ("0.92", 0.92), (" 1e-1 ", 0.1), (7, 1.0), (-3, 0.0), (float("nan"), 0.0), ("nan", 0.0),
        (float("inf"), 1.0), ("high", 0.0), (None, 0.0), (True, 0.0), ([], 0.0), (10**400, 0.0), ({}, 0.0),
    ],
)  # fmt: skip
def test_scores_of_any_kind(given_score: Any, score: float) -> None:
    assert score_of(given_score) == score
    [snippet] = build(builder(Memories(memory("x", given_score))), turn()).snippets
    assert snippet["base_score"] == score


def test_of_a_million_candidates_a_thousand_are_looked_at() -> None:
    found = read_candidates({"candidates": [memory("first"), *([{}] * 1_000_000)]})
    assert [candidate.text for candidate in found.found] == ["first"]
    assert found.dropped == {"too_many": 999_001, "without_text": 999}


_NAMES = st.sampled_from(["text", "score", "id", "metadata", "timestamp", "source", "x"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=5),
    max_leaves=12,
)


@given(
    answer=_JSON | st.fixed_dictionaries({"candidates": _JSON}) | st.lists(_JSON).map(lambda found: {"results": found})
)
def test_whatever_a_service_answers_the_turn_is_built(answer: Any) -> None:
    service = Memories()
    service.answer = answer
    context = build(builder(service, retrieval_timeout=30), turn(history=talk(2)))
    assert context.messages[-1]["content"] == "Where does Ana live?"
    json.dumps(context.to_dict())
    assert context.debug["retrieval"]["status"] in ("ok", "failed")


@given(envelope=st.dictionaries(st.sampled_from(["system_prompt", "user_message", "history", "x"]), _JSON))
def test_whatever_a_turn_holds_it_is_built(envelope: dict[str, Any]) -> None:
    context = build(builder(None), envelope, 100_000)
    assert [context.messages[0]["role"], context.messages[-1]["role"]] == ["system", "user"]
    json.dumps(context.to_dict())


@pytest.mark.parametrize("envelope", [None, "hello", 7, [], [("user_message", "x")]])
def test_what_is_no_turn(envelope: Any) -> None:
    with pytest.raises(UsageError, match="a turn is a document"):
        build(builder(Memories()), envelope)


@pytest.mark.parametrize("name", ["tenant_id", "session_id", "persona_id"])
@pytest.mark.parametrize("value", [True, 1.5, ["a"], {"a": 1}, b"a"])
def test_who_is_asking_is_never_guessed(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{name} must be text"):
        build(builder(Memories()), turn(**{name: value}))


def test_ids_may_be_missing_or_numbers() -> None:
    service = Memories()
    build(builder(service), {"user_message": "hello"})
    build(builder(service), Turn(tenant_id="7", user_message="hello"))
    build(builder(service), turn(tenant_id=7, session_id=""))
    assert [(asked["tenant_id"], asked["session_id"]) for asked in service.asked] == [
        (None, None),
        ("7", None),
        ("7", None),
    ]


def test_without_a_memory_there_is_history() -> None:
    context = build(builder(None), turn(history=talk(30)))
    assert context.debug["retrieval"]["status"] == "off"
    assert (context.debug["summary"], context.debug["history_count"]) == ("none", 20)


def test_a_service_that_hangs_is_left_after_two_seconds_or_as_set() -> None:
    service, told = Memories(memory("In Kiel.")), list[float]()
    service.hanging = True
    made = builder(service, retrieval_timeout=0.05, on_degraded=told.append)
    context = build(made, turn(history=talk(30)))
    assert context.debug["retrieval"] == {
        "status": "failed",
        "reason": "the memory service did not answer within 0.05 s",
        "candidates": 0,
    }
    assert context.debug["summary"] == "not yet"
    assert context.debug["history_count"] == 20
    assert told == [15]
    assert 'context_builder_degradation_total{reason="timeout"} 1.0' in made.metrics.render()


def test_a_service_that_refuses_one_turn_is_not_ill() -> None:
    class Strict(Memories):
        async def context_evaluate(self, payload: Any) -> Any:
            raise UsageError("session_id must be one line")

    made = builder(Strict())
    for _ in range(5):
        assert build(made, turn()).debug["retrieval"]["reason"] == "the memory service refused the turn"
    assert made.health.state() == "normal"


def test_while_it_is_tried_by_one_turn_others_do_without() -> None:
    clock, service = Clock(), Memories(memory("In Kiel."))
    made = builder(service, clock=clock, retrieval_timeout=50)
    service.failing = True
    for _ in range(3):
        build(made, turn())
    clock.pass_by(15)
    service.failing = False
    asked = len(service.asked)
    building: list[asyncio.Task[Any]] = []

    async def together() -> list[str]:
        building.extend(asyncio.create_task(made.build_for_turn(turn())) for _ in range(6))
        return sorted(context.debug["retrieval"]["status"] for context in await asyncio.gather(*building))

    async def slowly(payload: Any) -> Any:
        service.asked.append(payload)
        while sum(each.done() for each in building) < 5:
            await asyncio.sleep(0.001)
        return service.answer

    service.context_evaluate = slowly  # type: ignore[method-assign]
    assert asyncio.run(together()) == ["ok", *["skipped"] * 5]
    assert len(service.asked) == asked + 1
    assert made.health.state() == "normal"


def test_many_threads_with_a_loop_each() -> None:
    service = Memories(*(memory(f"fact {number}") for number in range(8)))
    made = builder(service)

    def one(number: int) -> int:
        return int(build(made, turn(history=talk(30), session_id=f"s{number}")).debug["snippet_count"])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(64))) == [8] * 64
    assert len(service.remembered) == 64
    assert "context_builder_prompt_total 64.0" in made.metrics.render()


def test_logs_hold_neither_question_nor_memory(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    service = Memories(memory("In Kiel, secretly."))
    made = builder(service)
    build(made, turn("a private question", history=talk(30)))
    service.failing = True
    build(made, turn("a private question", history=talk(30)))
    service.answer, service.failing = {"candidates": "In Kiel, secretly."}, False
    build(made, turn("a private question", history=talk(30)))
    assert [record.getMessage() for record in caplog.records if record.name.startswith("ctx")] == [
        "the memory service failed: busy",
        "the memory service failed: nonsense",
    ]
    assert "private question" not in caplog.text
    assert "secretly" not in caplog.text


def test_warm_up_loads_what_the_first_turn_would_wait_for() -> None:
    warmed: list[str] = []

    class Warm(Memories):
        async def warm_up(self) -> None:
            warmed.append("memory")

    class Redacts:
        def redact(self, text: str) -> str:
            warmed.append("redactor")
            return text

    def count(text: str) -> int:
        warmed.append("counter")
        return len(text)

    asyncio.run(builder(Warm(), count, redactor=Redacts()).warm_up())
    assert set(warmed) == {"memory", "redactor", "counter"}
