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


def test_who_wants_none_says_so() -> None:
    context = build(builder(Memories(_hostile()), redactor=NoopRedactor()), turn())
    assert SECRET in context.messages[-2]["content"]
