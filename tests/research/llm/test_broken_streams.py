"""Streams that are nonsense, break off, hang or never end: a clear error each, in time."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from research.errors import (
    ModelError,
    ModelProtocolError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from tests.loopback import Call, Serving, SmallServer
from tests.research.llm.asking import ASK, QUICK, caught, client


def test_a_page_of_an_error(serving: Serving) -> None:
    page = "<!doctype html><html><head><title>502 Bad\n Gateway</title></head><body>" + "x" * 100_000
    error = caught(serving(lambda call: call.answer(page, 200, "text/html")), ModelProtocolError)
    assert error.message.endswith("answered 200: 502 Bad Gateway")
    assert "OpenAI-compatible" in error.hint
    assert (
        "Bad Gateway" in caught(serving(lambda call: call.answer(page, 405, "text/html")), ModelProtocolError).message
    )


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", '{"response": "another schema", "done": true}'),
        ("application/json", "[1, 2]"),
        ("application/json", "not at all"),
        ("application/json", "[" * 100_000),
        ("text/event-stream", 'data: {"response": "another schema"}\n\n'),
        ("text/event-stream", "data: nonsense\n\n"),
        ("text/event-stream", "data: [DONE]\n\n"),
        ("text/event-stream", ""),
        ("text/plain", "Hello, I am not a model."),
        ("application/octet-stream", b"\xff\xfe\x00\x01" * 1000),
        ("text/event-stream", 'data: {"choices": [{"delta": "wrong"}]}\n\ndata: [DONE]\n\n'),
    ],
)
def test_nonsense(serving: Serving, kind: str, body: str | bytes) -> None:
    error = caught(serving(lambda call: call.answer(body, 200, kind)), ModelProtocolError)
    assert "OpenAI-compatible" in error.hint


def test_something_that_is_no_http(loopback: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
                connection.recv(65536)

        thread = threading.Thread(target=answer)
        thread.start()
        error = caught(f"http://127.0.0.1:{listening.getsockname()[1]}", ModelProtocolError)
        thread.join()
    assert "does not speak HTTP" in error.message


def test_an_address_with_https_where_there_is_none(serving: Serving) -> None:
    server = serving(lambda call: call.reply("Hello."))
    error = caught(server.url.replace("http:", "https:"), ModelUnavailableError)
    assert "cannot be reached" in error.message
    assert error.hint == "does the server speak https? try its address with http://"


def test_an_answer_that_unpacks_to_anything_is_not_unpacked(serving: Serving) -> None:
    bomb = gzip.compress(b"data: x\n\n" * 1_000_000)
    server = serving(lambda call: call.answer(bomb, 200, "text/event-stream", Content_Encoding="gzip"))
    assert "compressed" in caught(server, ModelProtocolError).message
    assert server.calls[0].headers["Accept-Encoding"] == "identity"


def test_a_line_without_end(serving: Serving) -> None:
    def respond(call: Call) -> None:
        call.begin()
        for _ in range(10_000):
            call.send("x" * 65536)

    assert "more than an answer can be" in caught(serving(respond), ModelProtocolError).message


def _in_chunks(call: Call) -> None:
    call.begin(Transfer_Encoding="chunked")
    call.send(b'2b\r\ndata: {"choices": [')


def _with_an_error(call: Call) -> None:
    call.begin()
    call.say("Half an")
    call.event(error={"message": "out of memory", "code": 500})


def _of_a_length(call: Call) -> None:
    call.begin(Content_Length="5000")
    call.say("Half an")


def _without_a_word(call: Call) -> None:
    call.begin()
    call.say("Half an")
    call.send('data: {"choi')


HALVES = [_in_chunks, _with_an_error, _of_a_length, _without_a_word]


@pytest.mark.parametrize("half", HALVES)
def test_half_a_stream_is_not_tried_again(serving: Serving, half: Callable[[Call], None]) -> None:
    server = serving(half)
    pieces = []
    with client(server) as model, pytest.raises(ModelError) as raised:
        for piece in model.reply(ASK):
            pieces.append(piece)
    assert "".join(pieces) in {"Half an", ""}
    assert raised.value.code in {"protocol", "busy"}
    if pieces:
        assert len(server.calls) == 1


def test_what_comes_after_the_end_does_not_matter(serving: Serving) -> None:
    def respond(call: Call) -> None:
        call.begin(Content_Length="100000")
        call.say("Whole.")
        call.event(choices=[{"delta": {}, "finish_reason": "stop"}])  # and the connection breaks

    def hangs(call: Call) -> None:
        call.begin()
        call.say("Whole.")
        call.finish()
        server.over.wait(60)

    with client(serving(respond)) as model:
        assert model.complete(ASK).content == "Whole."
    server = serving(hangs)
    with client(server) as model:
        assert model.complete(ASK).content == "Whole."


def _drip(call: Call, server: SmallServer, data: str) -> None:
    while not server.over.wait(0.02):
        call.send(data)


@pytest.mark.parametrize("what", ["head", "body", "comments", "letters", "roles"])
def test_a_server_that_hangs_before_it_begins(serving: Serving, what: str) -> None:
    """Also one that keeps sending something, as long as it is no token."""
    drips = {"comments": ": ping\n\n", "letters": "x", "roles": 'data: {"choices": [{"delta": {}}]}\n\n'}

    def respond(call: Call) -> None:
        if what != "head":
            call.begin()
        if what in drips:
            _drip(call, server, drips[what])
        server.over.wait(60)

    server = serving(respond)
    error = caught(server, ModelTimeoutError, patience=replace(QUICK, first_token=0.3))
    assert error.message == f"{server.host} did not answer within 0.3 s"
    assert "model_timeout" in error.hint


def test_a_server_that_hangs_in_the_middle(serving: Serving) -> None:
    def respond(call: Call) -> None:
        call.begin()
        call.say("So far")
        _drip(call, server, ": ping\n\n")

    server = serving(respond)
    error = caught(server, ModelTimeoutError, patience=replace(QUICK, between_tokens=0.3))
    assert error.message == f"{server.host} stopped in the middle: nothing for 0.3 s"


def test_a_server_that_takes_for_ever(serving: Serving) -> None:
    def respond(call: Call) -> None:
        call.begin()
        while not server.over.wait(0.05):
            call.say(f"{time.monotonic_ns()} ")

    server = serving(respond)
    error = caught(server, ModelTimeoutError, patience=replace(QUICK, total=0.5))
    assert error.message == f"{server.host} was not through after 0.5 s"


def test_a_server_that_hangs_in_an_error_has_said_enough(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.llm.endpoint._ERROR_SECONDS", 0.3)

    def respond(call: Call) -> None:
        call.handler.send_response(405)
        call.handler.end_headers()
        server.over.wait(60)

    server = serving(respond)
    assert caught(server, ModelRefusedError).message == f"{server.host} answered 405"


def test_thoughts_are_no_answer(serving: Serving) -> None:
    def respond(call: Call) -> None:
        call.begin()
        call.event(choices=[{"delta": {"reasoning_content": "Hm, let me see"}}])
        call.say("<th", "ink>\nperhaps", " </thi", "nk>\n\n", "Yes.")
        call.finish()

    with client(serving(respond)) as model:
        reply = model.reply(ASK)
        assert "".join(reply) == "Yes."
    assert reply.thought
