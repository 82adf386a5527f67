"""An answer is passed on while it is written, and what was written is kept whatever happens; a key is never in it."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from research.answer.answering import OpenAIModel, open_model
from research.answer.written import WrittenAnswer, page_pictures, write_answer
from research.errors import ModelError, NothingFoundError
from research.llm import Patience
from research.models import ResearchContext
from research.settings import Settings
from tests.loopback import Call, Serving, SmallServer
from tests.research.answer.making import context, source
from tests.research.llm.asking import ASK, KEY, QUICK

PAGE = "Staff with a year of service get 18 weeks of leave. " + "The office opens at nine and closes at five. " * 30
CONTEXT = context(source("Staff get 18 weeks of leave."), source("Contractors get none.", page=4))


def written(
    server: SmallServer,
    of: ResearchContext = CONTEXT,
    *,
    window: int = 0,
    max_answer_tokens: int = 50,
    patience: Patience = QUICK,
    on_piece: Callable[[str], object] | None = None,
    with_pictures: bool = False,
) -> WrittenAnswer:
    model = OpenAIModel(server.url, "m", window=window, max_answer_tokens=max_answer_tokens, patience=patience)
    with model:
        return write_answer(model, of, on_piece=on_piece, with_pictures=with_pictures)


def test_an_answer_with_all_that_is_to_say_about_it(serving: Serving) -> None:
    server = serving(lambda call: call.reply("18 weeks", " [1].", usage={"prompt_tokens": 500, "completion_tokens": 6}))
    pieces: list[str] = []
    answer = written(server, on_piece=pieces.append)
    assert pieces == ["18 weeks", " [1]."]
    assert (answer.text, answer.finished, answer.problem, answer.notes) == ("18 weeks [1].", True, "", ())
    assert (answer.model, answer.host, answer.finish_reason) == ("m", server.host, "stop")
    assert (answer.sources, answer.dropped, answer.shortened) == ((1, 2), (), ())
    assert answer.usage is not None
    assert answer.first_token_seconds is not None
    assert 0 < answer.first_token_seconds <= answer.seconds
    assert json.loads(json.dumps(answer.to_dict()))["usage"] == {"prompt_tokens": 500, "completion_tokens": 6}
    [_, user] = server.calls[0].body["messages"]
    assert '<source id="2" name="handbook.pdf" page="4">\nContractors get none.\n</source>' in user["content"]
    assert "Question: How many weeks of leave?" in user["content"]


def _broken(call: Call) -> None:
    call.begin()
    call.say("18 we")


def _repeating(call: Call) -> None:
    call.begin()
    call.say("Well. ", *["The answer is 18. "] * 200)
    call.finish()


def _thinking(call: Call) -> None:
    call.begin()
    call.event(choices=[{"delta": {"reasoning_content": "Hm."}, "finish_reason": None}])
    call.finish("length")


ENDINGS: list[tuple[Callable[[Call], None], str, str, str]] = [
    (_broken, "18 we", "protocol", "broke off in the middle"),
    (_repeating, "Well. The answer is 18.", "repetition", "the model repeated itself"),
    (_thinking, "", "length", "used up its 50 tokens by thinking"),
    (lambda call: call.reply("18 we", reason="length"), "18 we", "length", "it was cut at 50 tokens"),
    (lambda call: call.reply(str(list(range(1000)))), "[0, 1, 2", "length", "it was cut at 50 tokens"),
    (lambda call: call.reply("No.", reason="content_filter"), "No.", "content_filter", "the server ended it"),
    (lambda call: call.reply(" \n"), "", "empty", "the model wrote nothing"),
    (lambda call: call.answer('{"error": "bad"}', 400), "", "refused", "answered 400: bad"),
    (lambda call: call.answer("busy", 503), "", "busy", "answered 503: busy"),
    (lambda call: call.answer("<html>", 200, "text/html"), "", "protocol", "answered 200"),
]


@pytest.mark.parametrize(("respond", "text", "code", "problem"), ENDINGS)
def test_what_was_written_stays_and_what_is_wrong_is_told(
    serving: Serving, respond: Callable[[Call], None], text: str, code: str, problem: str
) -> None:
    answer = written(serving(respond))
    assert not answer.finished
    assert answer.text.startswith(text)
    assert bool(answer.text) == bool(text)
    assert answer.code == code
    assert problem in answer.problem
    assert answer.sources == (1, 2)


@pytest.fixture
def _ctrl_c_is_heard() -> Iterator[None]:
    """Also where the tests themselves run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c_is_heard")
@pytest.mark.parametrize("pieces", [("18 weeks", " [1]"), ()])
def test_ctrl_c_leaves_what_was_written(serving: Serving, pieces: tuple[str, ...]) -> None:
    heard = threading.Semaphore(0)

    def respond(call: Call) -> None:
        call.begin()
        call.say(*pieces)
        for _ in pieces:
            heard.acquire()
        os.kill(os.getpid(), signal.SIGINT)
        server.over.wait(60)

    server = serving(respond)
    answer = written(server, on_piece=lambda piece: heard.release())
    assert (answer.text, answer.finished, answer.interrupted) == ("".join(pieces), False, True)
    assert (answer.first_token_seconds is None) == (not pieces)


def test_a_reader_that_goes_away_ends_it(serving: Serving) -> None:
    def gone(piece: str) -> None:
        raise BrokenPipeError

    server = serving(lambda call: call.reply("18 weeks"))
    with pytest.raises(BrokenPipeError):
        written(server, on_piece=gone)


def test_a_prompt_that_proves_too_long_is_fitted_and_told(serving: Serving) -> None:
    def respond(call: Call) -> None:
        tokens = sum(len(message["content"]) for message in call.body["messages"]) // 3  # counts more than we do
        if tokens + 50 > 1500:
            said = {
                "type": "exceed_context_size_error",
                "message": "too long",
                "n_prompt_tokens": tokens,
                "n_ctx": 1500,
            }
            call.answer(json.dumps({"error": said}), 400)
        else:
            call.reply("18 weeks [1].")

    server = serving(respond)
    answer = written(server, context(*(source(PAGE, page=page) for page in range(1, 6))))
    assert answer.finished
    assert len(server.calls) == 2
    assert answer.sources + answer.dropped == (1, 2, 3, 4, 5)
    assert answer.dropped
    assert "the model's window is small" in answer.notes[0]


def test_a_server_that_does_not_say_how_much_it_takes(serving: Serving) -> None:
    def respond(call: Call) -> None:
        if len(call.body["messages"][1]["content"]) > 4000:
            call.answer('{"error": {"code": "context_length_exceeded", "message": "too long"}}', 400)
        else:
            call.reply("18 weeks [1].")

    server = serving(respond)
    answer = written(server, context(*(source(PAGE, page=page) for page in range(1, 6))))
    assert answer.finished
    sizes = [len(call.body["messages"][1]["content"]) for call in server.calls]
    assert sizes == sorted(sizes, reverse=True)
    assert answer.dropped


def test_a_server_that_takes_nothing_is_not_asked_for_ever(serving: Serving) -> None:
    said = '{"error": {"code": "context_length_exceeded", "message": "maximum context length is 4000000 tokens"}}'
    server = serving(lambda call: call.answer(said, 400))
    answer = written(server, context(source(PAGE), source(PAGE)))
    assert (answer.code, answer.text) == ("context_too_long", "")
    assert len(server.calls) == 3


def test_a_known_window_is_kept_without_asking(serving: Serving) -> None:
    server = serving(lambda call: call.reply("18 weeks [1]."))
    answer = written(server, context(*(source(PAGE, page=page) for page in range(1, 6))), window=1500)
    assert len(server.calls) == 1
    assert answer.dropped
    too_small = written(server, window=100)
    assert too_small.code == "context_too_long"
    assert len(server.calls) == 1, "nothing is sent that cannot fit"


def test_a_server_that_cuts_the_prompt_in_silence_is_told_on(serving: Serving) -> None:
    server = serving(lambda call: call.reply("18 weeks.", usage={"prompt_tokens": 128, "completion_tokens": 3}))
    answer = written(server)
    assert answer.finished
    assert "it may have cut the prompt" in answer.notes[0]


def test_pictures_of_the_pages_are_sent_where_they_are_wanted(serving: Serving, tmp_path: Path) -> None:
    for name, data in (("1.jpg", b"\xff\xd8\xff\xe0one"), ("2.png", b"\x89PNG\r\n\x1a\ntwo"), ("3.jpg", b"no picture")):
        (tmp_path / name).write_bytes(data)
    places = [str(tmp_path / name) for name in ("1.jpg", "2.png", "3.jpg", "gone.jpg")]
    seen = context(*(source("Text.", image_path=place) for place in places), source("Text."))
    assert [number for number, _ in page_pictures(seen.sources)] == [1, 2]
    server = serving(lambda call: call.reply("A chart [1]."))
    assert written(server, seen, with_pictures=True).finished
    assert written(server, seen).finished
    with_them, without = (call.body["messages"][1]["content"] for call in server.calls)
    assert [part["type"] for part in with_them] == ["text", "image_url", "image_url"]
    assert with_them[2]["image_url"]["url"].startswith("data:image/png;base64,")
    assert isinstance(without, str)


def test_without_sources_nobody_is_asked(serving: Serving) -> None:
    server = serving(lambda call: call.reply("Anything."))
    with pytest.raises(NothingFoundError):
        written(server, context())
    assert not server.calls


def _echo(call: Call) -> None:
    """Says the key in every way a server can."""
    said = call.headers["Authorization"].removeprefix("Bearer ")
    call.handler.send_response(400, f"bad key {said}")
    call.handler.send_header("X-Echo", said)
    call.handler.end_headers()
    call.send(json.dumps({"error": {"message": f"Incorrect API key: {said}", "echo": said[:12]}}))


def _echo_in_the_answer(call: Call) -> None:
    said = call.headers["Authorization"].removeprefix("Bearer ")
    call.begin(X_Echo=said)
    call.say("Your key is ", said[:9], said[9:], ".")
    call.event(error={"message": f"no more for {said}"})


def _echo_without_http(call: Call) -> None:
    call.send(f"{call.headers['Authorization']}\r\n\r\n")
    call.handler.close_connection = True


@pytest.mark.parametrize("respond", [_echo, _echo_in_the_answer, _echo_without_http])
def test_the_key_is_in_nothing_that_anybody_sees(
    serving: Serving, respond: Callable[[Call], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = serving(respond)
    settings = Settings(model="m", model_url=server.url)
    with open_model(settings, {"CTX_MODEL_KEY": KEY}) as model:
        answer = write_answer(model, CONTEXT)
        shown = [repr(answer), repr(model), repr(vars(model)), json.dumps(answer.to_dict()), repr(settings)]
        with pytest.raises(ModelError) as caught:
            model.complete(ASK)
    shown += ["".join(traceback.format_exception(caught.value)), caught.value.message, caught.value.hint, caplog.text]
    shown += [repr(record.__dict__) for record in caplog.records]
    assert server.calls[0].headers["Authorization"] == f"Bearer {KEY}", "it did get there"
    assert answer.problem
    assert any(record.name.startswith("httpcore") for record in caplog.records), "the library did log"
    for text in shown:
        assert not any(KEY[at : at + 8] in text for at in range(len(KEY) - 7)), text
