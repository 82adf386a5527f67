"""ctx ask --session, ctx session and ctx turn: what they print, keep and take away."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.session import add_history, load_history
from research.index import Index
from tests.cli.test_schemas import validate
from tests.in_process import Ran
from tests.loopback import Serving

Call = Callable[..., Ran]
CAUSE, BANKS = "What caused the housing bubble to burst?", "And what did the banks hold?"


@pytest.fixture
def ask(call: Call, copied: Path) -> Call:
    def run(question: str, *args: str) -> Ran:
        return call("ask", "--index", str(copied), "--session", "thesis", question, *args)

    return run


def test_ask_goes_on_with_a_session_and_says_what_was_searched(ask: Call, copied: Path) -> None:
    first, second = ask(CAUSE), ask(BANKS)
    assert (first.code, second.code) == (0, 0)
    assert "question before" not in first.err
    assert "searched with words of the question before: " in second.err
    explained = ask(BANKS, "--explain")
    assert "follow-up" in explained.err
    document = ask(BANKS, "--json").document
    validate(document)
    assert document["session"] == {"name": "thesis", "turn": 4}
    assert document["query"] == BANKS
    assert document["searched"].startswith(f"{BANKS} ")
    assert [rewrite["name"] for rewrite in document["rewrites"]] == ["follow-up"]
    assert ask(CAUSE, "--batch", "-").code == 2


def test_what_a_model_wrote_is_kept(ask: Call, copied: Path, serving: Serving, monkeypatch) -> None:
    server = serving(lambda call: call.reply("Subprime mortgages defaulted [1]."))
    monkeypatch.setenv("CTX_MODEL_URL", server.url)
    ask(CAUSE, "--model", "m")
    with Index(copied) as index:
        [turn] = index.sessions.get("thesis")
    assert (turn.answer, turn.model) == ("Subprime mortgages defaulted [1].", "m")


def test_sessions_are_listed_shown_and_removed(ask: Call, call: Call, copied: Path) -> None:
    at = ("--index", str(copied))
    none = call("session", *at)
    assert (none.code, none.out) == (0, "")
    assert "ctx chat" in none.err
    ask(CAUSE)
    ask(BANKS)
    assert call("session", *at).out.split("\t")[:2] == ["thesis", "2"]
    listed = call("session", "list", *at, "--json").document
    validate(listed)
    assert [(each["name"], each["turns"], each["question"]) for each in listed["sessions"]] == [("thesis", 2, CAUSE)]
    shown = call("session", "show", "thesis", *at)
    assert shown.out.startswith(f"1. {CAUSE}\n")
    assert f"\n2. {BANKS}\n   searched: {BANKS} " in shown.out
    assert "[1] crisis.pdf, page 2\n" in shown.out
    document = call("session", "show", "thesis", *at, "--json").document
    validate(document)
    assert document["turns"][0]["sources"][0]["filename"] == "crisis.pdf"
    status = call("status", *at)
    assert "1, with 2 questions" in status.out
    validate(call("status", *at, "--json").document)
    add_history(copied, "thesis", CAUSE)
    removed = call("session", "remove", "thesis", *at, "--json").document
    validate(removed)
    assert removed["removed"] == {"name": "thesis", "turns": 2, "memories": 0}
    assert load_history(copied, "thesis") == []
    assert call("session", "show", "thesis", *at).code == 3
    assert call("session", "remove", "thesis", *at).code == 3


def test_a_session_that_is_forgotten_takes_its_turns_along(ask: Call, call: Call, copied: Path) -> None:
    ask(CAUSE)
    call("remember", "The bubble was blown in spring", "--session", "thesis", "--index", str(copied))
    assert call("forget", "--session", "thesis", "--yes", "--index", str(copied)).code == 0
    assert call("session", "--index", str(copied)).out == ""


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["show"], "missing argument 'NAME'"),
        (["list", "x"], "unexpected extra argument"),
        (["burn", "x"], "no command 'burn' of ctx session"),
        (["show", "a\nb"], "one line"),
    ],
)
def test_wrong_usage_of_sessions(call: Call, copied: Path, args: list[str], words: str) -> None:
    ran = call("session", *args, "--index", str(copied))
    assert (ran.code, words in ran.err) == (2, True), ran.err


def test_sessions_of_no_index(call: Call, tmp_path: Path) -> None:
    at = ("--index", str(tmp_path / "none"))
    assert call("session", *at).code == 0
    assert call("session", "show", "x", *at).code == 3
    assert call("session", "remove", "x", *at).code == 3
    assert not (tmp_path / "none").exists()


@pytest.fixture
def turn(call: Call, copied: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    def run(envelope: Any, *args: str) -> Ran:
        content = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return call("turn", "--index", str(copied), *args)

    return run


def test_a_turn_is_one_document_of_messages(turn: Call, copied: Path, tmp_path: Path) -> None:
    with Index(copied) as index:
        index.memories.remember("Anna wants to hear about the housing bubble first.")
    envelope = {"user_message": CAUSE, "system_prompt": "You help.", "history": [{"role": "user", "content": "Hello"}]}
    ran = turn(envelope)
    assert (ran.code, ran.err) == (0, "")
    document = ran.document
    validate(document)
    assert [message["role"] for message in document["messages"]] == ["system", "user", "system", "user"]
    assert "Anna wants" in document["messages"][2]["content"]
    assert document["documents"] == []
    with_pages = turn(envelope, "--documents", "--max-prompt-tokens", "700").document
    validate(with_pages)
    assert with_pages["messages"][-2]["name"] == "documents"
    assert with_pages["documents"][0]["filename"] == "crisis.pdf"
    assert with_pages["prompt_tokens"] <= 700
    file = tmp_path / "envelope.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(envelope).encode())
    assert turn(b"", str(file)).document["messages"] == document["messages"]


@pytest.mark.parametrize(
    ("envelope", "args", "words"),
    [
        (b"", (), "no JSON"),
        (b"{", (), "no JSON"),
        (b"[1]", (), "no JSON object"),
        (b"[" * 5000, (), "no JSON"),
        ({"user_message": "x", "tenant_id": []}, (), "tenant_id"),
        ({"user_message": "word " * 500}, ("--max-prompt-tokens", "50"), "the budget is 50"),
        ({}, ("--max-prompt-tokens", "0"), "a number from 1"),
        ({}, ("nowhere.json",), "cannot read nowhere.json"),
    ],
)
def test_what_is_no_turn_is_said(turn: Call, envelope: Any, args: tuple[str, ...], words: str) -> None:
    ran = turn(envelope, *args)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_a_memory_service_that_is_down_is_told_and_the_turn_is_built(
    turn: Call, monkeypatch: pytest.MonkeyPatch, loopback: None
) -> None:
    monkeypatch.setenv("SA01_SOMA_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SA01_SOMA_MAX_RETRIES", "0")
    ran = turn({"user_message": "Hello"})
    assert ran.code == 0
    assert "without memories: 127.0.0.1:9 cannot be reached" in ran.err
    assert ran.document["messages"][-1]["content"] == "Hello"


def test_status_tells_who_would_hear_of_turns(call: Call, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SA01_SOMA_BASE_URL", "http://127.0.0.1:9/")
    found = call("status", "--index", str(copied), "--json").document["contacts"]
    assert found == [{"use": "memory service", "address": "http://127.0.0.1:9"}]
    monkeypatch.setenv("SA01_SOMA_BASE_URL", "http://u:secret@h")
    assert call("status", "--index", str(copied), "--json").document["contacts"] == []
