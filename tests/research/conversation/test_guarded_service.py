"""Memory services of every make, behind their breaker."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from research.conversation import CircuitBreaker
from research.conversation.service import GuardedService
from research.errors import SomaClientError

FOUND = {"candidates": [{"id": "1", "text": "Ana lives in Kiel.", "score": 0.9}]}


class _Blocking:
    def context_evaluate(self, payload: Mapping[str, Any]) -> Any:
        time.sleep(0.01)
        return FOUND

    def remember_batch(self, payload: Mapping[str, Any]) -> Any:
        return {"ok": True}


class _Async:
    async def context_evaluate(self, payload: Mapping[str, Any]) -> Any:
        return FOUND

    async def remember_batch(self, payload: Mapping[str, Any]) -> Any:
        return {"ok": True}


class _OnlyRecall:
    async def recall(self, payload: Mapping[str, Any]) -> Any:
        return {"results": FOUND["candidates"]}


class _Wrapped:
    """Methods that are not coroutines' and give one."""

    def context_evaluate(self, payload: Mapping[str, Any]) -> Any:
        return _Async().context_evaluate(payload)


@pytest.mark.parametrize("service", [_Blocking(), _Async(), _OnlyRecall(), _Wrapped()])
def test_a_service_may_be_made_as_it_likes(service: Any) -> None:
    found = asyncio.run(GuardedService(service).evaluate({}, 5.0))
    assert [candidate.text for candidate in found.found] == ["Ana lives in Kiel."]


def test_what_a_service_lacks_is_no_illness() -> None:
    guarded = GuardedService(_OnlyRecall())
    with pytest.raises(SomaClientError, match="has no remember_batch") as raised:
        asyncio.run(guarded.remember({}, 5.0))
    assert raised.value.counts is False
    assert guarded.breaker.failures == 0


def test_whatever_a_service_raises_is_told_by_its_type_alone() -> None:
    class Ill:
        def context_evaluate(self, payload: Mapping[str, Any]) -> Any:
            raise ValueError("the text of a memory")

    guarded = GuardedService(Ill())
    for _ in range(3):
        with pytest.raises(SomaClientError) as raised:
            asyncio.run(guarded.evaluate({}, 5.0))
        assert raised.value.message == "the memory service failed: ValueError"
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__
    with pytest.raises(SomaClientError, match="circuit open"):
        asyncio.run(guarded.evaluate({}, 5.0))


@pytest.mark.parametrize("blocking", [True, False])
def test_a_service_that_hangs_is_left_after_its_time(blocking: bool) -> None:
    over = threading.Event()

    class Hangs:
        if blocking:

            def context_evaluate(self, payload: Mapping[str, Any]) -> Any:
                over.wait(20)

        else:

            async def context_evaluate(self, payload: Mapping[str, Any]) -> Any:
                await asyncio.sleep(20)

    guarded = GuardedService(Hangs())
    with pytest.raises(SomaClientError, match=r"did not answer within 0\.05 s") as raised:
        asyncio.run(guarded.evaluate({}, 0.05))
    over.set()
    assert raised.value.code == "timeout"
    assert guarded.breaker.failures == 1


def test_a_service_that_guards_itself_is_not_counted_twice() -> None:
    class Guards(_Async):
        def __init__(self) -> None:
            self.breaker = CircuitBreaker()

        async def context_evaluate(self, payload: Mapping[str, Any]) -> Any:
            with self.breaker.guard():
                if payload:
                    await asyncio.sleep(20)
                raise SomaClientError("ill", code="busy")

    service = Guards()
    guarded = GuardedService(service)
    assert guarded.breaker is service.breaker
    for payload, failures in (({}, 1), ({"hang": True}, 2)):
        with pytest.raises(SomaClientError):
            asyncio.run(guarded.evaluate(payload, 0.05))
        assert service.breaker.failures == failures


def test_warm_up_is_the_services_own() -> None:
    warmed: list[str] = []

    class Warm(_Async):
        def warm_up(self) -> None:
            warmed.append(threading.current_thread().name)

    asyncio.run(GuardedService(Warm()).warm_up())
    asyncio.run(GuardedService(_Async()).warm_up())
    assert warmed == ["ctx-memory"]
