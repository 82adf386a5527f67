"""Memories are redacted before anybody sees them; whatever the redactor does, nothing raw passes."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

import pytest

from research.governance import NoopRedactor
from tests.research.conversation.making import Memories, build, builder, memory, talk, turn

SECRET = "sk-proj-Zk3v9QpL2mXw8RtY5uNb7HcD4fGj6SaE1oIiKlMnBvCxZ0qW"


def _everything(context: Any, made: Any, caplog: pytest.LogCaptureFixture) -> str:
    """All that a turn leaves behind."""
    logged = "\n".join(f"{record.getMessage()} {record.exc_text or ''} {record.exc_info}" for record in caplog.records)
    return json.dumps([context.to_dict(), context.history]) + made.metrics.render() + logged


def _hostile() -> dict[str, Any]:
    """A memory with a key in everything it has."""
    metadata = {"source": f"notes {SECRET}", "timestamp": SECRET, "note": SECRET}
    return {"id": f"id-{SECRET}", "text": f"The key is {SECRET}.", "score": 0.9, "metadata": metadata}


def test_without_a_word_keys_are_taken_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = builder(Memories(_hostile(), memory("Ana lives in Kiel.", 0.8)))
    context = build(made, turn())
    assert "The key is <KEY_1>." in context.messages[-2]["content"]
    assert "Ana lives in Kiel." in context.messages[-2]["content"]
    assert SECRET not in _everything(context, made, caplog)


def test_the_same_key_has_the_same_name_in_one_context() -> None:
    other = SECRET.replace("Zk3v", "Ab4x")
    context = build(
        builder(Memories(*(memory(f"{n}: {key}") for n, key in enumerate((SECRET, other, SECRET))))), turn()
    )
    assert [snippet["text"] for snippet in context.snippets] == ["0: <KEY_1>", "1: <KEY_2>", "2: <KEY_1>"]


class _Raises:
    def redact(self, text: str) -> str:
        raise ValueError(f"cannot read {text}")


class _GivesNothing:
    def redact(self, text: str) -> Any:
        return None


class _Hangs:
    def __init__(self) -> None:
        self.over = threading.Event()

    def redact(self, text: str) -> str:
        self.over.wait(20)
        return text


class _IsMissing:
    def __getattr__(self, name: str) -> Any:
        raise ImportError(f"pip install it, and not {SECRET}")


@pytest.mark.parametrize("kind", [_Raises, _GivesNothing, _Hangs, _IsMissing])
def test_whatever_a_redactor_does_nothing_raw_passes(kind: type, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    redactor, service = kind(), Memories(_hostile(), memory("Ana lives in Kiel."))
    made = builder(service, redactor=redactor, redaction_timeout=0.1 if kind is _Hangs else 50.0)
    history = [{"role": "user", "content": "a question"}, *talk(20)]
    context = build(made, turn(history=history))
    if kind is _Hangs:
        redactor.over.set()
    assert context.snippets == []
    assert service.remembered == []  # no summary either
    reasons = {_Raises: "error", _GivesNothing: "error", _Hangs: "timeout", _IsMissing: "unavailable"}
    assert context.debug["dropped"] == {f"redaction_{reasons[kind]}": 2}
    assert len(context.history) == 20
    everything = _everything(context, made, caplog)
    assert SECRET not in everything
    assert "Ana lives" not in everything


def test_a_redactor_that_fails_for_one_costs_one() -> None:
    class Picky:
        def redact(self, text: str) -> str:
            if "dog" in text:
                raise ValueError(text)
            return text

    context = build(builder(Memories(memory("Ana lives in Kiel."), memory("Ana has a dog.")), redactor=Picky()), turn())
    assert [snippet["text"] for snippet in context.snippets] == ["Ana lives in Kiel."]
    assert context.debug["dropped"] == {"redaction_error": 1}


def test_what_was_done_in_time_is_shown() -> None:
    class Slow(_Hangs):
        def redact(self, text: str) -> str:
            return super().redact(text) if "dog" in text else text

    redactor = Slow()
    made = builder(
        Memories(memory("Ana lives in Kiel."), memory("Ana has a dog.", 0.5)), redactor=redactor, redaction_timeout=1.0
    )
    context = build(made, turn())
    redactor.over.set()
    assert [snippet["text"] for snippet in context.snippets] == ["Ana lives in Kiel."]
    assert context.debug["dropped"] == {"redaction_timeout": 1}


def test_a_redactor_that_always_hangs_takes_no_thread_a_turn() -> None:
    redactor = _Hangs()
    made = builder(Memories(memory("Ana lives in Kiel.")), redactor=redactor, redaction_timeout=0.01)
    for _ in range(20):
        assert build(made, turn()).snippets == []
    hanging = [thread for thread in threading.enumerate() if thread.name == "ctx-redaction"]
    assert len(hanging) <= 8
    redactor.over.set()
    for thread in hanging:
        thread.join()
    assert len(build(made, turn()).snippets) == 1


def test_who_wants_none_says_so() -> None:
    context = build(builder(Memories(_hostile()), redactor=NoopRedactor()), turn())
    assert SECRET in context.messages[-2]["content"]
