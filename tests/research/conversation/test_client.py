"""SomaBrainClient against real HTTP on this machine: the seed's documents, and everything a service may do wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from research.conversation import CircuitBreaker, SomaBrainClient, SomaClientError, SomaSettings
from research.errors import UsageError
from research.secret import Secret
from tests.research.conversation.making import Clock, builder
from tests.serving import Asked, Reply, Served, free_port, serving

FOUND = {
    "candidates": [
        {
            "id": "mem-001",
            "score": 0.92,
            "text": "Previously stored memory content",
            "metadata": {"source": "conversation", "timestamp": "2025-12-10T10:30:00Z"},
        }
    ]
}
ASKED = {"tenant_id": "tenant-123", "session_id": "session-456", "query": "user's message text", "top_k": 8}


@pytest.fixture
def service(loopback: None) -> Iterator[Served]:
    with serving(lambda _: Reply(FOUND)) as served:
        yield served


def _settings(service: Served, **given: Any) -> SomaSettings:
    return SomaSettings(service.url, **{"retry_base_ms": 1.0, **given})


def _with(
    service: Served, call: Callable[[SomaBrainClient], Coroutine[Any, Any, Any]], *, breaker: Any = None, **given: Any
) -> Any:
    async def run() -> Any:
        async with SomaBrainClient(settings=_settings(service, **given), breaker=breaker) as client:
            return await call(client)

    return asyncio.run(run())


def _refused(service: Served, **given: Any) -> SomaClientError:
    with pytest.raises(SomaClientError) as raised:
        _with(service, lambda client: client.context_evaluate(ASKED), **given)
    return raised.value


def test_context_evaluate_is_the_seeds_request(service: Served) -> None:
    """§16.1."""
    assert _with(service, lambda client: client.context_evaluate(ASKED)) == FOUND
    [asked] = service.asked
    assert (asked.path, asked.document, asked.headers["Content-Type"]) == (
        "/context/evaluate",
        ASKED,
        "application/json",
    )
    assert "Authorization" not in asked.headers


def test_the_other_endpoints(service: Served) -> None:
    async def all_of_them(client: SomaBrainClient) -> None:
        await client.recall("where?", top_k=5, tenant_id="t")
        await client.recall({"query": "where?", "top_k": 3, "threshold": 0.5})
        await client.remember({"tenant_id": "t", "text": "Ana lives in Kiel."})
        await client.remember_batch({"tenant_id": "t", "memories": [{"text": "a"}]})

    _with(service, all_of_them)
    assert [(asked.path, asked.document) for asked in service.asked] == [
        ("/recall", {"query": "where?", "top_k": 5, "tenant_id": "t"}),
        ("/recall", {"query": "where?", "top_k": 3, "threshold": 0.5}),
        ("/memory/remember", {"tenant_id": "t", "text": "Ana lives in Kiel."}),
        ("/memory/remember/batch", {"tenant_id": "t", "memories": [{"text": "a"}]}),
    ]


def test_namespaces_are_sent_where_they_are_others_than_usual(service: Served) -> None:
    _with(service, lambda client: client.recall("x"), namespace="work", memory_namespace="ltm")
    assert service.asked[0].document == {"query": "x", "top_k": 8, "universe": "work", "namespace": "ltm"}


def test_a_key_is_sent_and_never_shown(service: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key = "soma-key-7f3a9c51d2e8"
    service.answer = lambda asked: Reply({"detail": f"no {asked.headers['Authorization']}"}, 401)
    error = _refused(service, key=Secret(key))
    assert service.asked[0].headers["Authorization"] == f"Bearer {key}"
    assert (error.code, error.hint) == ("refused", "export SA01_SOMA_API_KEY=…")
    for said in (str(error), error.detail, repr(error), caplog.text, repr(_settings(service, key=Secret(key)))):
        assert key not in said


@pytest.mark.parametrize(
    ("reply", "code", "says"),
    [
        (Reply({"detail": "broken"}, 500), "busy", "answered 500"),
        (Reply(b"<html>Bad Gateway</html>", 502), "busy", "answered 502"),
        (Reply({"detail": "slow down"}, 429), "busy", "answered 429"),
        (Reply({}, 404), "refused", "answered 404"),
        (Reply({}, 403), "refused", "it wants a key"),
        (Reply(b"", 302, {"Location": "http://127.0.0.1:1/"}), "refused", "a redirect, which is not followed"),
        (Reply(b"<!DOCTYPE html><html>Welcome!</html>"), "nonsense", "answers with a web page"),
        (Reply(b'{"candidates": [{"id": "mem-001", "sc'), "nonsense", "text that is no JSON"),
        (Reply(b""), "nonsense", "answers with nothing"),
        (Reply(b"\xff\xfe\x00"), "nonsense", "text that is no JSON"),
        (Reply(b"[" * 100_000), "nonsense", "text that is no JSON"),
        (Reply(b"42"), "nonsense", "JSON that is no document (int)"),
        (Reply(b"null"), "nonsense", "JSON that is no document (NoneType)"),
        (Reply({"candidates": "none"}), "nonsense", "its candidates are no list"),
        (Reply(b'{"candidates": [' + b'{"text": "x"},' * 400_000 + b"{}]}"), "nonsense", "more than 4 MB"),
    ],
)
def test_what_is_no_answer_is_a_clear_error(service: Served, reply: Reply, code: str, says: str) -> None:
    service.answer = lambda _: reply
    error = _refused(service)
    assert (error.code, error.counts) == (code, True)
    assert says in error.message
    assert len(error.message) < 200
    assert error.hint


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_error_about_the_request_is_not_one_of_the_service(service: Served, status: int) -> None:
    service.answer = lambda _: Reply({"detail": "top_k is too large"}, status)
    breaker = CircuitBreaker()
    for _ in range(5):
        error = _refused(service, breaker=breaker)
        assert (error.counts, error.detail) == (False, "top_k is too large")
    assert breaker.state == "CLOSED"


def test_what_a_service_says_may_repeat_a_memory_and_stays_out_of_the_message(service: Served) -> None:
    service.answer = lambda asked: Reply({"detail": f"cannot store {asked.document['query']}"}, 500)
    error = _refused(service, max_retries=0)
    assert ASKED["query"] not in error.message
    assert error.detail == f"cannot store {ASKED['query']}"


def test_nobody_there(loopback: None) -> None:
    async def ask() -> None:
        async with SomaBrainClient(settings=SomaSettings(f"http://127.0.0.1:{free_port()}", retry_base_ms=1)) as client:
            await client.context_evaluate(ASKED)

    with pytest.raises(SomaClientError, match="cannot be reached: ConnectError") as raised:
        asyncio.run(ask())
    assert raised.value.code == "unreachable"


@pytest.mark.parametrize("reply", [Reply(never=True), Reply({"candidates": [], "padding": "x" * 1000}, drip=1)])
def test_a_service_that_hangs_or_drips_is_left_after_its_time(service: Served, reply: Reply) -> None:
    service.answer = lambda _: reply
    error = _refused(service, timeout_seconds=0.2)
    assert (error.code, error.message) == (
        "timeout",
        f"{service.url.removeprefix('http://')} did not answer within 0.2 s",
    )
    assert len(service.asked) <= 1  # not again: that would take as long again


def _failing(times: int, status: int = 503, **headers: str) -> Callable[[Asked], Reply]:
    replies = iter([Reply({}, status, headers)] * times)
    return lambda _: next(replies, Reply(FOUND))


def test_questions_are_asked_again(service: Served) -> None:
    service.answer = _failing(2)
    assert _with(service, lambda client: client.context_evaluate(ASKED)) == FOUND
    assert len(service.asked) == 3


def test_as_often_as_is_set_and_that_is_one_failure(service: Served) -> None:
    service.answer = _failing(100)
    for retries in (0, 1, 4):
        breaker = CircuitBreaker()
        service.asked.clear()
        assert _refused(service, max_retries=retries, breaker=breaker).code == "busy"
        assert (len(service.asked), breaker.failures) == (retries + 1, 1)


KEYED = {"tenant_id": "t", "memories": [{"text": "a", "idempotency_key": "1"}, {"text": "b", "key": "2"}]}
UNKEYED = {"tenant_id": "t", "memories": [{"text": "a", "idempotency_key": "1"}, {"text": "b"}]}


@pytest.mark.parametrize(
    ("payload", "tries"), [(KEYED, 3), (UNKEYED, 1), ({**UNKEYED, "idempotency_key": "all"}, 3), ({"memories": []}, 1)]
)
def test_what_is_told_is_told_again_only_by_its_key(service: Served, payload: dict[str, Any], tries: int) -> None:
    service.answer = _failing(2)
    try:
        _with(service, lambda client: client.remember_batch(payload))
    except SomaClientError:
        assert tries == 1
    assert len(service.asked) == tries


def test_what_was_never_sent_may_be_sent_again(loopback: None) -> None:
    """A service that is not up yet: nothing can have been stored twice."""
    port = free_port()

    async def told() -> Any:
        settings = SomaSettings(f"http://127.0.0.1:{port}", retry_base_ms=200.0, max_retries=6)
        async with SomaBrainClient(settings=settings) as client:
            telling = asyncio.create_task(client.remember_batch(UNKEYED))
            await asyncio.sleep(0.05)
            served = Served(lambda _: Reply({"ok": True}), port)
            try:
                return await telling, len(served.asked)
            finally:
                served.close()

    assert asyncio.run(told()) == ({"ok": True}, 1)


def test_a_service_may_ask_to_be_left_alone_for_a_moment(service: Served) -> None:
    service.answer = _failing(1, 429, **{"Retry-After": "86400"})
    slept: list[float] = []
    real = asyncio.sleep

    async def ask(client: SomaBrainClient) -> Any:
        return await client.context_evaluate(ASKED)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "sleep", lambda seconds: (slept.append(seconds), real(0))[1])
        assert _with(service, ask) == FOUND
    assert slept == [5.0]  # and not for a day


def test_an_open_breaker_asks_nobody(service: Served) -> None:
    service.answer = _failing(1000)
    clock = Clock()
    breaker = CircuitBreaker(clock=clock)
    for _ in range(3):
        assert _refused(service, max_retries=0, breaker=breaker).code == "busy"
    for _ in range(10):
        error = _refused(service, breaker=breaker)
        assert (error.code, str(error)) == ("open", "SomaBrain unavailable (circuit open for 15s)")
    assert len(service.asked) == 3
    clock.pass_by(15)
    service.answer = lambda _: Reply(FOUND)
    assert _with(service, lambda client: client.context_evaluate(ASKED), breaker=breaker) == FOUND
    assert breaker.state == "CLOSED"


def test_one_client_serves_many_event_loops(service: Served) -> None:
    client = SomaBrainClient(settings=_settings(service))

    async def ask() -> Any:
        try:
            return await client.context_evaluate(ASKED)
        finally:
            await client.aclose()

    assert [asyncio.run(ask()) for _ in range(3)] == [FOUND] * 3


def test_what_cannot_be_sent_is_told_before_anything_is(service: Served) -> None:
    for payload in ({"query": float("nan")}, {"query": {1, 2}}):
        with pytest.raises(SomaClientError, match="cannot be sent as JSON") as raised:
            _with(service, lambda client, payload=payload: client.context_evaluate(payload))
        assert raised.value.counts is False
    assert service.asked == []


def test_proxies_of_the_environment_are_not_for_this_machine(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert _with(service, lambda client: client.context_evaluate(ASKED)) == FOUND


def test_nothing_said_is_as_good_as_done(service: Served) -> None:
    service.answer = lambda _: Reply(b"", 204)
    assert _with(service, lambda client: client.remember_batch(KEYED)) == {}


def test_settings_come_from_the_seeds_variables() -> None:
    assert SomaSettings.from_environment({"SA01_SOMA_BASE_URL": "http://brain:9696/"}) == SomaSettings(
        "http://brain:9696", 30.0, 2, 150.0, "", "wm"
    )
    given = {
        "SA01_SOMA_BASE_URL": "https://brain.example/v1/",
        "SA01_SOMA_TIMEOUT_SECONDS": "5.5",
        "SA01_SOMA_MAX_RETRIES": "0",
        "SA01_SOMA_RETRY_BASE_MS": "10",
        "SA01_NAMESPACE": "work",
        "SA01_MEMORY_NAMESPACE": "ltm",
        "SA01_SOMA_API_KEY": "k3y",
    }
    settings = SomaSettings.from_environment(given)
    assert settings == SomaSettings("https://brain.example/v1", 5.5, 0, 10.0, "work", "ltm")
    assert settings.key is not None
    assert settings.key.reveal() == "k3y"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SA01_SOMA_BASE_URL", ""),
        ("SA01_SOMA_BASE_URL", "brain:9696"),
        ("SA01_SOMA_BASE_URL", "ftp://brain"),
        ("SA01_SOMA_BASE_URL", "http://user:pa55word@brain"),
        ("SA01_SOMA_BASE_URL", "http://brain/?key=pa55word"),
        ("SA01_SOMA_TIMEOUT_SECONDS", "soon"),
        ("SA01_SOMA_TIMEOUT_SECONDS", "0"),
        ("SA01_SOMA_TIMEOUT_SECONDS", "nan"),
        ("SA01_SOMA_MAX_RETRIES", "-1"),
        ("SA01_SOMA_RETRY_BASE_MS", "inf"),
        ("SA01_SOMA_API_KEY", "pa55word\n"),
        ("SA01_SOMA_API_KEY", "pa55 word"),
    ],
)
def test_a_setting_that_is_none_is_named_and_not_repeated(name: str, value: str) -> None:
    environment = {"SA01_SOMA_BASE_URL": "http://brain:9696", name: value}
    if value == "pa55word\n":  # which a shell adds easily
        assert SomaSettings.from_environment(environment).key is not None
        return
    with pytest.raises(UsageError, match=name) as raised:
        SomaSettings.from_environment(environment)
    assert "pa55" not in str(raised.value) + raised.value.hint


def test_get_is_one_for_all_and_can_be_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SA01_SOMA_BASE_URL", raising=False)
    SomaBrainClient.use(None)
    with pytest.raises(UsageError, match="SA01_SOMA_BASE_URL is not set"):
        SomaBrainClient.get()
    monkeypatch.setenv("SA01_SOMA_BASE_URL", "http://127.0.0.1:9696")
    first = SomaBrainClient.get()
    assert SomaBrainClient.get() is first
    monkeypatch.setenv("SA01_SOMA_API_KEY", "other")
    assert SomaBrainClient.get() is not first
    own = SomaBrainClient("http://127.0.0.1:1")
    SomaBrainClient.use(own)
    assert SomaBrainClient.get() is own
    SomaBrainClient.use(None)
    assert SomaBrainClient.get() is not own
    SomaBrainClient.use(None)


def test_nothing_is_contacted_before_the_first_call() -> None:
    """The tests' guard refuses any connection."""
    made = builder(SomaBrainClient("http://127.0.0.1:9"))
    asyncio.run(made.warm_up())
