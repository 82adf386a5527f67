"""ctx ask --answer: a model's answer is streamed and checked; whatever it does, quotes and sources are shown."""

from __future__ import annotations

import os
import pty
import signal
import threading
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path

import pytest

from cli.layout import WordWrap
from cli.main import main
from research.answer.answering import LocalModel
from research.index import Index
from research.settings import Settings
from tests.cli.test_schemas import validate
from tests.in_process import Ran
from tests.loopback import Call, Serving, SmallServer
from tests.serving import free_port

KEY = "sk-secret-4711-abcdef-0815"
QUESTION = "housing bubble"
TRUE = "The housing bubble burst when subprime mortgages defaulted [1]."
FALSE = " Banks held 97 percent capital [1]. Tomatoes cause crises [17]. Nobody knows why."
QUOTE = "The housing bubble burst when subprime mortgages defaulted."

Ask = Callable[..., Ran]


@pytest.fixture
def ask(call: Callable[..., Ran], filled: Path) -> Ask:
    def run(*args: str, question: str = QUESTION) -> Ran:
        return call("ask", question, "--index", str(filled), *args)

    return run


def model_at(server: SmallServer) -> list[str]:
    """The options, and the setting, for a model there."""
    os.environ["CTX_MODEL_URL"] = server.url
    return ["--model", "m"]


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_MODEL_URL", "")  # what `model_at` sets goes with the test


def test_without_a_model_nothing_changes(ask: Ask) -> None:
    plain = ask()
    assert plain.out.startswith("[Document 1: crisis.pdf, Page 2]")
    assert ask("--no-answer").out == plain.out
    document = ask("--json").document
    validate(document)
    assert document["answer"] is None
    refused = ask("--answer")
    assert (refused.code, "no model is named" in refused.err) == (2, True)
    nowhere = ask("--answer", "--model", "m")
    assert (nowhere.code, "not where it is" in nowhere.err) == (2, True)


def test_the_answer_its_sources_and_its_check(ask: Ask, serving: Serving) -> None:
    server = serving(lambda call: call.reply(TRUE[:20], TRUE[20:] + FALSE))
    ran = ask("--answer", *model_at(server))
    assert ran.code == 0
    text, _, sources = ran.out.partition("\n\nSources:\n")
    assert text == TRUE + FALSE
    assert sources.startswith("[1] crisis.pdf, page 2\n[2] ")
    assert "✓ 1 carried" in ran.err
    assert "✗ “Tomatoes cause crises [17].” not found: [17] is not among" in ran.err
    assert "✗ “Nobody knows why.” uncited" in ran.err
    assert QUOTE in server.calls[0].body["messages"][1]["content"]

    document = ask("--json", *model_at(server)).document
    validate(document)
    answer = document["answer"]
    assert (answer["text"], answer["finished"], answer["model"], answer["host"]) == (
        TRUE + FALSE, True, "m", server.host,
    )  # fmt: skip
    verdicts = [sentence["verdict"] for sentence in answer["sentences"]]
    assert (verdicts[0], verdicts[2:]) == ("carried", ["not found", "uncited"])
    assert verdicts[1] != "carried"
    assert document["quotes"]
    quiet = ask("--quiet", *model_at(server))
    assert (quiet.out, quiet.err) == (ran.out, "")


def test_a_model_of_the_users_own_settings_answers_by_itself(
    ask: Ask, serving: Serving, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = serving(lambda call: call.reply(TRUE))
    config = tmp_path / "home/config/ctx/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'model = "m"\nmodel_url = "{server.url}"\n')
    monkeypatch.delenv("CTX_MODEL_URL")
    assert ask().out.startswith(TRUE)
    assert ask("--no-answer").out.startswith("[Document 1: ")
    assert len(server.calls) == 1
    config.unlink()
    (tmp_path / "ctx.toml").write_text(f'model = "m"\nmodel_url = "{server.url}"\n')
    monkeypatch.chdir(tmp_path)
    found = ask()
    assert (found.code, "the user's own to set" in found.err) == (2, True)
    assert len(server.calls) == 1


def _broken(call: Call) -> None:
    call.begin()
    call.say(TRUE, " And then")


TROUBLE: list[tuple[Callable[[Call], None], str, str, str]] = [
    (_broken, "protocol", "broke off", f"{TRUE} And then […]\n"),
    (lambda call: call.answer('{"error": "no such key"}', 401), "refused", "no such key", f"“{QUOTE}"),
    (lambda call: call.answer("<html>", 200, "text/html"), "protocol", "answered 200", f"“{QUOTE}"),
    (lambda call: call.reply(TRUE, reason="length"), "length", "cut at 600 tokens", f"{TRUE} […]\n"),
    (lambda call: call.reply(" "), "empty", "wrote nothing", ""),
]


@pytest.mark.parametrize(("respond", "code", "told", "begins"), TROUBLE)
def test_a_model_that_fails_costs_only_its_answer(
    ask: Ask, serving: Serving, *, respond: Callable[[Call], None], code: str, told: str, begins: str
) -> None:
    server = serving(respond)
    ran = ask("--answer", *model_at(server))
    assert ran.code == 0
    assert ran.out.lstrip(" \n").startswith(begins)
    assert f"“{QUOTE}" in ran.out
    assert "\nSources:\n[1] crisis.pdf, page 2\n" in ran.out
    assert told in ran.err
    assert "ctx: note: " in ran.err
    as_json = ask("--json", *model_at(server))
    validate(as_json.document)
    assert (as_json.code, as_json.document["answer"]["finished"], as_json.document["answer"]["code"]) == (
        0, False, code,
    )  # fmt: skip
    assert as_json.document["quotes"]


@pytest.mark.usefixtures("loopback")
def test_nobody_there(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_MODEL_URL", f"http://127.0.0.1:{free_port()}")
    ran = ask("--answer", "--model", "m")
    assert (ran.code, f"“{QUOTE}" in ran.out) == (0, True)
    assert "no answer was written" in ran.err
    assert "hint: see that the server runs" in ran.err


def test_where_nothing_answers_the_model_is_not_asked(ask: Ask, serving: Serving) -> None:
    server = serving(lambda call: call.reply("Anything."))
    ran = ask("--json", *model_at(server), question="xylophone quux")
    validate(ran.document)
    assert (ran.code, server.calls) == (3, [])
    assert ran.document["answer"]["code"] == "not_asked"
    assert ask("--answer", *model_at(server), question="xylophone quux").code == 3
    assert server.calls == []


def test_ctrl_c_leaves_what_was_written(ask: Ask, serving: Serving) -> None:
    def respond(call: Call) -> None:
        call.begin()
        call.say(TRUE)
        os.kill(os.getpid(), signal.SIGINT)
        server.over.wait(20)

    server = serving(respond)
    ran = ask("--json", *model_at(server))
    validate(ran.document)
    answer = ran.document["answer"]
    assert (ran.code, answer["code"], answer["finished"]) == (130, "interrupted", False)
    assert ran.document["quotes"]
    assert "unfinished" in ran.err or "no answer was written" in ran.err


def test_escapes_of_a_model_reach_no_terminal(ask: Ask, serving: Serving) -> None:
    server = serving(lambda call: call.reply("Red \x1b[31m and \u202egnp.exe\x07 [1]."))
    ran = ask("--answer", *model_at(server))
    assert not set(ran.out + ran.err) & set("\x1b\u202e\x07")


def test_the_prompt_is_shown_and_nothing_is_sent(ask: Ask, serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serving(lambda call: call.reply(TRUE))
    monkeypatch.setenv("CTX_MODEL_KEY", KEY)
    shown = ask("--show-prompt", "--json", *model_at(server))
    validate(shown.document)
    as_text = ask("--show-prompt", *model_at(server))
    assert as_text.out.startswith("--- system ---\nYou answer a question from the sources")
    assert f"Question: {QUESTION}" in as_text.out
    assert ask("--show-prompt").out == as_text.out, "also before a model is named"
    assert server.calls == []
    ask("--answer", *model_at(server))
    assert server.calls[0].body["messages"] == shown.document["messages"]
    assert server.calls[0].headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in shown.out + shown.err + as_text.out + as_text.err


def test_the_key_is_shown_nowhere(ask: Ask, serving: Serving, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def repeat(call: Call) -> None:
        if "fail" in call.body["messages"][1]["content"]:
            call.answer(f'{{"error": "bad key {KEY}"}}', 401)
        else:
            call.reply(f"Your key is {KEY} [1].")

    server = serving(repeat)
    monkeypatch.setenv("CTX_MODEL_KEY", KEY)
    log = tmp_path / "ctx.log"
    for question in (QUESTION, f"{QUESTION} fail"):
        for more in ([], ["--json"]):
            logged = ["--debug", "--log-file", str(log), "--log-level", "debug"]
            ran = ask(*model_at(server), *more, *logged, question=question)
            assert KEY not in ran.out + ran.err
    assert len(server.calls) == 4
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert log.read_text()


@pytest.mark.parametrize(
    "args",
    [
        ["--answer", "--batch", "-"],
        ["--model", "m", "--batch", "-"],
        ["--show-prompt", "--batch", "-"],
        ["--answer", "--html", "a.html"],
        ["--no-answer", "--show-prompt"],
    ],
)
def test_options_that_exclude_each_other(call: Callable[..., Ran], args: list[str]) -> None:
    ran = call("ask", *([] if "--batch" in args else [QUESTION]), *args)
    assert (ran.code, "leave one of them out" in ran.err) == (2, True)


def test_status_and_doctor_name_the_model(
    call: Callable[..., Ran], filled: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(lambda call: call.answer('{"data": [{"id": "m", "max_model_len": 4096}, {"id": "other"}]}'))
    monkeypatch.setenv("CTX_INDEX", str(filled))
    monkeypatch.setenv("CTX_MODEL_URL", server.url)
    assert "nobody" in call("status").out, "an address alone is asked nothing"
    monkeypatch.setenv("CTX_MODEL", "m")
    assert call("status", "--json").document["contacts"] == [{"use": "model", "address": f"{server.url}/v1"}]
    assert server.calls == []
    assert f"ok\tmodel\t{server.host} answers, with m, 4,096 tokens\n" in call("doctor").out
    assert [(each.method, each.path) for each in server.calls] == [("GET", "/v1/models")]
    monkeypatch.setenv("CTX_MODEL", "missing")
    told = call("doctor")
    assert (told.code, f"warn\tmodel\t{server.host} answers, and has no missing\tit has: m, other" in told.out) == (
        0, True,
    )  # fmt: skip
    monkeypatch.setenv("CTX_MODEL_URL", f"http://127.0.0.1:{free_port()}")
    assert "warn\tmodel\t127.0.0.1:" in call("doctor").out
    monkeypatch.setenv("CTX_MODEL", "local")
    assert "nobody" in call("status").out
    assert "ok\tmodel\tthe local model is installed" in call("doctor").out


@pytest.mark.slow
def test_a_real_model_answers_over_http(ask: Ask, local_model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    server = local_model.server()
    assert server.key is not None
    monkeypatch.setenv("CTX_MODEL_KEY", server.key.reveal())
    monkeypatch.setenv("CTX_MODEL_URL", server.address.base)
    monkeypatch.setenv("CTX_MAX_ANSWER_TOKENS", "8")
    monkeypatch.setenv("CTX_MAX_SOURCES", "1")
    ran = ask("--json", "--model", "local-served")
    validate(ran.document)
    answer = ran.document["answer"]
    assert (ran.code, answer["host"]) == (0, server.address.host)
    assert answer["text"].strip()
    assert 0 < answer["usage"]["completion_tokens"] <= 8
    assert [sentence["text"] for sentence in answer["sentences"]]
    assert ran.document["quotes"]


def on_screen(*args: str) -> tuple[int, str]:
    """The command in this process, where servers of the test can be reached, with a terminal as stdout."""
    ours, theirs = pty.openpty()
    pieces: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # the other end is closed
            while piece := os.read(ours, 4096):
                pieces.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(theirs, "w", encoding="utf-8") as screen, redirect_stdout(screen):
        code = main(args)
    reader.join()
    os.close(ours)
    return code, b"".join(pieces).decode().replace("\r\n", "\n")


def test_pictures_of_pages_are_sent_if_asked_for(
    call: Callable[..., Ran], sample_index: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(lambda call: call.reply("18 weeks [1]."))
    monkeypatch.setenv("CTX_MAX_SOURCES", "2")
    for pictures in ("false", "true"):
        monkeypatch.setenv("CTX_MODEL_IMAGES", pictures)
        at = ["--index", str(sample_index)]
        assert call("ask", "How long is parental leave?", *at, *model_at(server)).code == 0
    without, with_pictures = (each.body["messages"][1]["content"] for each in server.calls)
    assert isinstance(without, str)
    assert [part["type"] for part in with_pictures] == ["text", "image_url", "image_url"]
    assert with_pictures[1]["image_url"]["url"].startswith("data:image/")


def test_the_library_answers_too(filled: Path, serving: Serving) -> None:
    server = serving(lambda call: call.reply(TRUE))
    pieces: list[str] = []
    with Index.open(filled, Settings(model="m", model_url=server.url)) as index:
        answer = index.answer(index.ask(QUESTION), on_piece=pieces.append)
    assert (answer.written.text, pieces) == (TRUE, [TRUE])
    assert [sentence.verdict for sentence in answer.claims] == ["carried"]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_pieces_are_broken_between_words(size: int) -> None:
    text = "one two three\n\n- a-word-longer-than-a-line  four five six "
    wrap = WordWrap(10)
    pieces = [wrap.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join([*pieces, wrap.end()]) == "one two\nthree\n\n-\na-word-longer-than-a-line\nfour five\nsix "
    assert pieces[0] == text[:size] or size > 10, "what comes first is shown at once"


def test_on_a_terminal_the_answer_stands_above_the_quotes(
    filled: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LINES", "30")
    monkeypatch.setenv("TERM", "dumb")
    server = serving(lambda call: call.reply(TRUE[:20], TRUE[20:] + FALSE))
    code, shown = on_screen("ask", QUESTION, "--index", str(filled), *model_at(server))
    assert code == 0
    lines = shown.splitlines()
    assert " ".join(lines).startswith(TRUE + FALSE), "broken between words"
    assert max(map(len, lines)) <= 100
    marks = shown.index("checked beside what it cites: ✓ 1 carried, ")
    assert marks < shown.index("✗ “Nobody knows why.” uncited: it cites nothing") < shown.index(f"“{QUOTE}")
    assert "[1] crisis.pdf p. 2" in shown
    assert len(lines) <= 30, "all of it fits the screen"
    assert capsys.readouterr().err == ""

    broken = serving(_broken)
    code, shown = on_screen("ask", QUESTION, "--index", str(filled), *model_at(broken))
    assert (code, shown.startswith(f"{TRUE} And then […]\n")) == (0, True)
    assert f"“{QUOTE}" in shown
    assert "ctx: note: the answer is unfinished: " in capsys.readouterr().err
