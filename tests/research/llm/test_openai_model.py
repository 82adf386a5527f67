"""A model behind an address: its replies stream, and nothing goes where it should not."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path

import pytest

from research.errors import (
    ModelRefusedError,
)
from research.llm import Message
from tests.loopback import Call, Serving
from tests.research.llm.asking import ASK, KEY, caught, client


def test_a_reply_streams_and_tells_how_it_ended(serving: Serving) -> None:
    def respond(call: Call) -> None:
        call.begin()
        call.send(": a comment\nevent: message\nid: 3\n")
        call.event(choices=[{"delta": {"role": "assistant", "content": None}}])
        call.say("Eighteen", " weeks [1].")
        call.finish("stop", {"prompt_tokens": 12, "completion_tokens": 4})

    server = serving(respond)
    with client(server) as model:
        reply = model.reply(ASK)
        assert list(reply) == ["Eighteen", " weeks [1]."]
    assert (reply.finish_reason, reply.usage and reply.usage.prompt_tokens) == ("stop", 12)
    [call] = server.calls
    assert (call.method, call.path) == ("POST", "/v1/chat/completions")
    assert call.body["messages"] == [{"role": "user", "content": "How long?"}]
    assert (call.body["model"], call.body["stream"], call.body["max_tokens"]) == ("some-model", True, 50)
    assert "Authorization" not in call.headers


def test_each_piece_is_there_before_the_next_is_sent(serving: Serving) -> None:
    """Nothing of ours holds a token back: the server waits for us to have it."""
    heard = threading.Event()

    def respond(call: Call) -> None:
        call.begin()
        for piece in ("One", " two", " three"):
            call.say(piece)
            assert heard.wait(20)
            heard.clear()
        call.finish()

    with client(serving(respond)) as model:
        pieces = []
        for piece in model.reply(ASK):
            pieces.append(piece)
            heard.set()
    assert pieces == ["One", " two", " three"]


def test_the_contracts_call(serving: Serving) -> None:
    server = serving(lambda call: call.reply("Because [1]."))
    with client(server) as model:
        done = asyncio.run(
            model.complete_with_context(
                query="Why?", context="[Document 1: a.pdf, Page 3]\nSo.", system_message="Be kind."
            )
        )
        assert done.content == "Because [1]."
        asyncio.run(model.complete_with_context(query="Why?", context="x"))
    first, second = (call.body["messages"] for call in server.calls)
    assert first[0] == {"role": "system", "content": "Be kind."}
    assert "[Document 1: a.pdf, Page 3]\nSo." in first[1]["content"]
    assert "Question: Why?" in first[1]["content"]
    assert "from the sources" in second[0]["content"]


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_an_address_with_or_without_v1(serving: Serving, path: str) -> None:
    server = serving(lambda call: call.reply("Yes."))
    with client(server.url + path) as model:
        assert model.complete(ASK).content == "Yes."
    assert server.calls[0].path == "/v1/chat/completions"


def test_a_server_that_does_not_stream(serving: Serving) -> None:
    whole = {"choices": [{"message": {"content": "All at once."}, "finish_reason": "stop"}], "usage": None}
    with client(serving(lambda call: call.answer(json.dumps(whole)))) as model:
        done = model.complete(ASK)
    assert (done.content, done.finish_reason) == ("All at once.", "stop")


def test_the_key_goes_to_the_server_and_nowhere_else(serving: Serving) -> None:
    other = serving(lambda call: call.answer("{}"))
    server = serving(lambda call: call.answer("", 307, Location=f"{other.url}/v1/chat/completions"))
    error = caught(server, ModelRefusedError, key=KEY)
    assert "sends on to another address" in error.message
    assert server.calls[0].headers["Authorization"] == f"Bearer {KEY}"
    assert not other.calls


def test_proxies_are_not_for_this_machine(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = serving(lambda call: call.answer("{}", 502))
    server = serving(lambda call: call.reply("Direct."))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    with client(server) as model:
        assert model.complete(ASK).content == "Direct."
    assert not proxy.calls


def test_stopping_early_ends_the_connection(serving: Serving) -> None:
    ended = threading.Event()

    def respond(call: Call) -> None:
        try:
            call.begin()
            while True:
                call.say(f"word{time.monotonic_ns()} ")
        except OSError:
            ended.set()
            raise

    with client(serving(respond)) as model:
        reply = model.reply(ASK, 100_000)
        pieces = iter(reply)
        assert next(pieces)
        reply.close()
        assert ended.wait(20), "the server would write on for nobody"


def test_a_thread_that_waits_is_woken_when_the_reply_is_closed(serving: Serving) -> None:
    before = threading.active_count()

    def respond(call: Call) -> None:
        call.begin()
        call.say("One.")
        server.over.wait(60)

    server = serving(respond)
    with client(server) as model:
        reply = model.reply(ASK)
        assert next(iter(reply)) == "One."
        names = [thread.name for thread in threading.enumerate()]
        assert "ctx-model" in names
        reply.close()
    assert "ctx-model" not in [thread.name for thread in threading.enumerate()]
    assert threading.active_count() <= before + 3, "the server's own"


def test_one_client_for_many_threads(serving: Serving) -> None:
    def respond(call: Call) -> None:
        call.begin()
        call.say(call.body["messages"][0]["content"], "!")
        call.finish()

    said: dict[int, str] = {}
    with client(serving(respond)) as model:

        def ask(number: int) -> None:
            said[number] = model.complete((Message("user", f"number {number}"),)).content

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert said == {number: f"number {number}!" for number in range(8)}


def test_pictures_come_after_the_text(serving: Serving, tmp_path: Path) -> None:
    from research.llm import Picture

    server = serving(lambda call: call.reply("A chart."))
    with client(server) as model:
        model.complete((Message("user", "What is this?", (Picture(b"\xff\xd8\xff\xe0abc"),)),))
    [content] = [message["content"] for message in server.calls[0].body["messages"]]
    assert content[0] == {"type": "text", "text": "What is this?"}
    assert content[1]["image_url"]["url"] == "data:image/jpeg;base64,/9j/4GFiYw=="
