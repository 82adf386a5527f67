"""What servers say when something is wrong is told as what it means, with the next step."""

from __future__ import annotations

import json
import socket

import pytest

from research.errors import (
    ContextTooLongError,
    ModelBusyError,
    ModelRefusedError,
    ModelUnavailableError,
)
from research.llm.chat import ServedModel
from tests.loopback import Call, Serving
from tests.research.llm.asking import ASK, KEY, caught, client


def test_nobody_there(loopback: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    error = caught(f"http://127.0.0.1:{port}", ModelUnavailableError)
    assert f"127.0.0.1:{port} cannot be reached" in error.message
    assert "see that the server runs" in error.hint


@pytest.mark.parametrize("key", ["", KEY])
def test_a_wrong_key(serving: Serving, key: str) -> None:
    said = json.dumps({"error": {"message": f"Incorrect API key provided: {key}.", "code": "invalid_api_key"}})
    error = caught(serving(lambda call: call.answer(said, 401)), ModelRefusedError, key=key)
    assert ("does not accept the key" if key else "wants a key") in error.message
    assert "CTX_MODEL_KEY" in error.hint
    assert KEY not in error.message


def test_a_model_that_is_not_there_is_told_with_those_that_are(serving: Serving) -> None:
    def respond(call: Call) -> None:
        if call.path == "/v1/models":
            call.answer(json.dumps({"data": [{"id": "llama3.2"}, {"id": "qwen3"}, {"wrong": 1}, "x"]}))
        else:
            call.answer('{"error": {"message": "model \\"some-model\\" not found, try pulling it first"}}', 404)

    error = caught(serving(respond), ModelRefusedError)
    assert "has no model 'some-model'; it has llama3.2, qwen3" in error.message
    assert error.hint == "ctx ask … --model llama3.2"


def test_a_wrong_path(serving: Serving) -> None:
    error = caught(serving(lambda call: call.answer("404 page not found", 404, "text/plain")), ModelRefusedError)
    assert "/v1" in error.hint


def test_the_models_of_a_server(serving: Serving) -> None:
    listed = [
        {"id": "a", "meta": {"n_ctx": 2048}},
        {"id": "b", "max_model_len": 4096},
        {"id": "c", "context_length": 8192, "meta": None},
        {"id": "d", "context_length": "many"},
        {"id": 5},
    ]
    with client(serving(lambda call: call.answer(json.dumps({"data": listed})))) as model:
        found = model.models()
    assert found == [ServedModel("a", 2048), ServedModel("b", 4096), ServedModel("c", 8192), ServedModel("d")]


TOO_LONG = [
    (
        400,
        '{"error": {"code": 400, "message": "request (5031 tokens) exceeds the available context size (2048 tokens),'
        ' try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 5031, "n_ctx": 2048}}',
        (2048, 5031),
    ),
    (
        400,
        '{"error": {"message": "This model\'s maximum context length is 8,192 tokens. However, you requested 10021'
        ' tokens (9421 in the messages, 600 in the completion).", "code": "context_length_exceeded"}}',
        (8192, 9421),
    ),
    (
        400,
        '{"object": "error", "message": "\'max_tokens\' or \'max_completion_tokens\' is too large: 600. This model\'s'
        ' maximum context length is 512 tokens and your request has 300 input tokens", "code": 400}',
        (512, 300),
    ),
    (400, '{"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}', (200000, 0)),
    (
        400,
        '{"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}',
        (32768, 0),
    ),
    (
        400,
        '[{"error": {"message": "The input token count (1200000) exceeds the maximum number of tokens allowed'
        ' (1048576)."}}]',
        (1048576, 0),
    ),
    (400, '{"error": {"message": "Please reduce the length of the messages or completion."}}', (0, 0)),
    (500, '{"error": "input (901 tokens) is too large to process. increase the physical batch size"}', (0, 0)),
    (400, '{"error": "the input length exceeds the context length"}', (0, 0)),
    (413, '{"error": "`inputs` must have less than 512 tokens. Given: 600"}', (0, 0)),
]


@pytest.mark.parametrize(("status", "body", "counts"), TOO_LONG)
def test_a_prompt_that_is_too_long(serving: Serving, status: int, body: str, counts: tuple[int, int]) -> None:
    server = serving(lambda call: call.answer(body, status))
    error = caught(server, ContextTooLongError)
    assert isinstance(error, ContextTooLongError)
    assert (error.window, error.prompt_tokens) == counts
    assert len(server.calls) == 1, "the same would be too long again"


def test_trouble_that_passes_is_waited_for(serving: Serving) -> None:
    def respond(call: Call) -> None:
        if len(server.calls) == 1:
            call.answer('{"error": {"message": "Loading model"}}', 503)
        elif len(server.calls) == 2:
            call.answer("slow down", 429, "text/plain", Retry_After="0")
        else:
            call.reply("Now.")

    server = serving(respond)
    with client(server) as model:
        assert model.complete(ASK).content == "Now."
    assert len(server.calls) == 3


@pytest.mark.parametrize(
    ("headers", "calls", "hint"),
    [({}, 3, "try again in a while"), ({"Retry_After": "90"}, 1, "try again in 90 s")],
)
def test_trouble_that_stays(serving: Serving, headers: dict[str, str], calls: int, hint: str) -> None:
    server = serving(lambda call: call.answer('{"error": "overloaded"}', 429, **headers))
    error = caught(server, ModelBusyError)
    assert error.message == f"{server.host} answered 429: overloaded"
    assert (len(server.calls), error.hint) == (calls, hint)


def test_no_money_is_not_waited_for(serving: Serving) -> None:
    said = '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
    server = serving(lambda call: call.answer(said, 429))
    assert "see your account" in caught(server, ModelRefusedError).hint
    assert len(server.calls) == 1


def test_a_connection_that_closes_without_a_word_is_tried_again(serving: Serving) -> None:
    def respond(call: Call) -> None:
        if len(server.calls) > 1:
            call.reply("Second time.")

    server = serving(respond)
    with client(server) as model:
        assert model.complete(ASK).content == "Second time."
    silent = serving(lambda call: None)
    assert "without an answer" in caught(silent, ModelUnavailableError).message
    assert len(silent.calls) == 3


def test_parameters_that_a_server_does_not_take(serving: Serving) -> None:
    def respond(call: Call) -> None:
        if "max_tokens" in call.body:
            said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
            call.answer(json.dumps({"error": {"message": said, "param": "max_tokens"}}), 400)
        elif "temperature" in call.body:
            call.answer(json.dumps({"error": {"message": "Unsupported value", "param": "temperature"}}), 400)
        elif "stream_options" in call.body:
            call.answer(json.dumps({"detail": [{"loc": ["body", "stream_options"], "msg": "extra"}]}), 422)
        else:
            call.reply("Fine.")

    server = serving(respond)
    with client(server) as model:
        assert model.complete(ASK).content == "Fine."
        assert server.calls[-1].body["max_completion_tokens"] == 50
        assert len(server.calls) == 4
        assert model.complete(ASK).content == "Fine."
    assert len(server.calls) == 5, "it is learnt once"


def test_a_refusal_in_the_servers_own_words(serving: Serving) -> None:
    said = json.dumps({"detail": [{"loc": ["body"], "msg": "\x1b[31mwrong\x00\n thing " + "y" * 1000}]})
    error = caught(serving(lambda call: call.answer(said, 422)), ModelRefusedError)
    assert "wrong" in error.message
    assert error.message.isprintable()


def test_a_model_without_eyes(serving: Serving) -> None:
    said = '{"error": {"code": 500, "message": "image input is not supported - hint: provide the mmproj"}}'
    server = serving(lambda call: call.answer(said, 500))
    assert "model_images" in caught(server, ModelRefusedError).hint
    assert len(server.calls) == 1
