"""Redaction fails closed: whatever a redactor does, a raw text comes out nowhere. It is searched for everywhere."""

from __future__ import annotations

import gc
import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict

import pytest

from research.errors import RedactionError, UsageError
from research.governance import redaction
from research.governance.redaction import BaseRedactor, NoopRedactor, Placeholders, Redacted, SafeRedactor, redactor_of
from research.settings import Settings

MARK = "zanzibar-9f3e"
TEXT = f"the raw text says {MARK} and password=hunter2"


class Raising:
    def __init__(self, error: Callable[[str], BaseException]) -> None:
        self.error = error

    def redact(self, text: str) -> str:
        raise self.error(f"cannot redact {text!r}")


class RaisingInAChain:
    def redact(self, text: str) -> str:
        try:
            return Raising(ValueError).redact(text)
        except ValueError as error:
            raise RuntimeError(f"because of {text}") from error


class Hanging:
    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.asked = 0

    def redact(self, text: str) -> str:
        self.asked += 1
        self.go_on.wait(30)
        return text


class Answering:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def redact(self, text: str) -> str:
        return self.answer  # type: ignore[return-value]


class Recorded:
    """Everything a recorder is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def time(self, stage: str) -> object:
        raise NotImplementedError

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        self.told.append((name, value, labels))

    def event(self, name: str, **fields: object) -> None:
        self.told.append((name, fields))


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    redactor = Hanging()
    yield redactor
    redactor.go_on.set()


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Everything that was logged at any level, printed, warned, or told by a dying thread."""
    caplog.set_level(logging.DEBUG)
    out, err, dying = io.StringIO(), io.StringIO(), []
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(threading, "excepthook", lambda told: dying.append(repr(told)))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield lambda: "\n".join(
            [
                caplog.text,
                *(f"{record.getMessage()} {record.__dict__}" for record in caplog.records),
                out.getvalue(),
                err.getvalue(),
                *dying,
                *(str(each.message) for each in warned),
            ]
        )


def missing() -> BaseRedactor:
    raise RedactionError("an engine is missing", reason="unavailable", hint="pip install 'x'")


FAILING = [
    (Raising(ValueError), "error"),
    (Raising(SystemExit), "error"),
    (Raising(KeyboardInterrupt), "error"),
    (Raising(MemoryError), "error"),
    (Raising(RecursionError), "error"),
    (Raising(UsageError), "error"),
    (Raising(lambda message: RedactionError(message, reason="timeout")), "timeout"),
    (Raising(lambda message: RedactionError("x", reason=message)), "error"),
    (RaisingInAChain(), "error"),
    (Answering(None), "error"),
    (Answering(b"bytes"), "error"),
    (missing, "unavailable"),
    (lambda: Raising(ValueError).redact("not even opened"), "unavailable"),
]


@pytest.mark.parametrize(("redactor", "reason"), FAILING)
def test_a_redactor_that_fails_leaks_nothing(redactor: object, reason: str, heard: Callable[[], str]) -> None:
    recorder = Recorded()
    safe = SafeRedactor(redactor, recorder=recorder)  # type: ignore[arg-type]
    result = safe.redact_all([TEXT, TEXT])
    assert result.texts == (None, None)
    assert result.reasons == {reason: 2}
    told = "\n".join([repr(result), str(asdict(result)), repr(safe), str(recorder.told), heard()])
    assert MARK not in told
    assert "hunter2" not in told
    assert "redaction dropped 2 of 2 texts" in told, "but it is said that something was dropped"
    assert ("redaction_dropped", 2, {"reason": reason}) in recorder.told


def test_a_redactor_that_hangs_costs_its_time_and_leaks_nothing(hanging: Hanging, heard: Callable[[], str]) -> None:
    recorder = Recorded()
    safe = SafeRedactor(hanging, seconds=0.05, recorder=recorder)
    result = safe.redact_all([TEXT, TEXT])
    assert result.texts == (None, None)
    assert result.reasons == {"timeout": 2}
    assert hanging.asked == 1
    told = repr(result) + str(recorder.told) + heard()
    assert MARK not in told
    stuck = [thread for thread in threading.enumerate() if thread.name == "ctx-redaction"]
    hanging.go_on.set()
    for thread in stuck:
        thread.join(5)
    assert result.texts == (None, None), "what comes late is not taken"
    assert safe.redact_all(["now it answers"]).texts == ("now it answers",)


def test_a_hanging_redactor_leaves_only_so_many_threads(hanging: Hanging) -> None:
    safe = SafeRedactor(hanging, seconds=0.01)
    for _ in range(10):
        assert safe.redact_all([TEXT]).reasons == {"timeout": 1}
    assert hanging.asked == redaction._MOST_STUCK


def test_what_was_redacted_before_the_time_ran_out_is_kept(hanging: Hanging) -> None:
    class SlowOnce:
        def redact(self, text: str) -> str:
            return hanging.redact(text) if "slow" in text else BaseRedactor().redact(text)

    result = SafeRedactor(SlowOnce(), seconds=0.3).redact_all([TEXT, "slow", TEXT])
    assert result.texts == (TEXT.replace("hunter2", "<PASSWORD_1>"), None, None)
    assert dict(result.dropped) == {1: "timeout", 2: "timeout"}


def test_one_text_that_fails_costs_only_itself() -> None:
    class Picky:
        def redact(self, text: str) -> str:
            if MARK in text:
                raise ValueError(text)
            return text.upper()

    result = SafeRedactor(Picky()).redact_all(["a", TEXT, "b"])
    assert result.texts == ("A", None, "B")
    assert dict(result.dropped) == {1: "error"}


def test_nothing_of_a_dropped_text_is_kept_alive() -> None:
    """No traceback, no exception and no thread holds it once the result is there."""
    marked = f"{MARK} {object()!r} held by nobody"
    result = SafeRedactor(RaisingInAChain()).redact_all([marked])
    gc.collect()
    errors = [each for each in gc.get_objects() if issubclass(type(each), BaseException)]
    holders = [each for each in errors if marked in str(each)]
    assert holders == []
    assert result.texts == (None,)


def test_placeholders_are_shared_where_the_redactor_has_them() -> None:
    names, safe = Placeholders(), SafeRedactor(BaseRedactor("pii"))
    assert safe.redact_all(["a@example.com"], names).texts == ("<EMAIL_1>",)
    assert safe.redact_all(["b@example.com a@example.com"], names).texts == ("<EMAIL_2> <EMAIL_1>",)
    assert SafeRedactor(NoopRedactor()).redact_all(["a"], names).texts == ("a",)
    assert SafeRedactor(BaseRedactor).redact_all(["pwd=hunter2"]).texts == ("pwd=<PASSWORD_1>",), "a class opens one"
    assert safe.redact_all([]) == Redacted((), {})


def test_an_engine_that_is_missing_is_told_without_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    safe = SafeRedactor(lambda: redactor_of(Settings(redact="pii")))
    assert safe.redact_all([TEXT]).reasons == {"unavailable": 1}
    with pytest.raises(RedactionError, match="presidio_analyzer not installed") as caught:
        safe.warm_up()
    assert "pip install 'ctx-research[redact]'" in caught.value.hint
