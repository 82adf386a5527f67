"""Redaction that fails closed: a text comes out made safe, or not at all.

A redactor that raises, hangs, answers nonsense or cannot be loaded costs the texts it was given. Of them nothing is
told but how many and why (`error`, `timeout`, `unavailable`): no text, no message of an exception, no traceback,
because each of them may quote what it choked on.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from research.errors import CtxError, RedactionError, UsageError
from research.governance.placeholders import Placeholders
from research.governance.redaction import NumberingRedactor, RedactorProtocol
from research.observe import NullRecorder, Recorder, logger_of
from research.parallel import Workers

ERROR, TIMEOUT, UNAVAILABLE = "error", "timeout", "unavailable"
SECONDS = 5.0

_REASONS = {ERROR, TIMEOUT, UNAVAILABLE}  # another word might be a text

_MOST_STUCK = 4  # threads that one redactor may leave behind; after that it is not asked again while they hang

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Redacted:
    """The texts in the order they were given, None for each that was dropped; and why, by position."""

    texts: tuple[str | None, ...] = field(repr=False)
    dropped: Mapping[int, str]

    @property
    def reasons(self) -> dict[str, int]:
        """How many were dropped for which reason; this may be shown, logged and counted."""
        return dict(Counter(self.dropped.values()))


class SafeRedactor:
    """A redactor behind a deadline and a wall. Give it the redactor, or what opens it: one that cannot be opened
    (a missing extra) drops everything, too.

    `seconds` is for one call with all its texts, loading included. Where it runs out, the text at hand and those after
    it are dropped. A thread cannot be ended in Python: one that hangs stays behind, and never more than a few do.
    """

    def __init__(
        self,
        redactor: RedactorProtocol | Callable[[], RedactorProtocol],
        *,
        seconds: float = SECONDS,
        recorder: Recorder | None = None,
    ) -> None:
        if seconds <= 0:
            raise UsageError(f"a deadline of {seconds:g} seconds leaves no time to redact anything")
        self._redactor = redactor
        self._opened: RedactorProtocol | None = None
        self._seconds = seconds
        self._recorder = recorder or NullRecorder()
        self.why = ""  # it cannot be opened, in words that may be shown
        self._opening = threading.Lock()
        self._workers = Workers("ctx-redaction", _MOST_STUCK)

    def redact(self, text: str) -> str:
        """One text. Raises `RedactionError`, which holds nothing of it."""
        done = self.redact_all([text])
        safe = done.texts[0]
        if safe is None:
            reason = done.dropped[0]
            raise RedactionError(
                f"a text could not be redacted and was dropped: {reason}", reason=reason, hint=self.why
            )
        return safe

    def redact_all(self, texts: Iterable[str], placeholders: Placeholders | None = None) -> Redacted:
        """All texts with the numbers of one context. Never raises for what a redactor does."""
        given = tuple(texts)
        job = _Job(given, self._open, placeholders or Placeholders())
        if not given:
            return Redacted((), {})
        self._workers.start(job.run).wait(self._seconds)
        result = job.result()
        for reason, count in result.reasons.items():
            self._recorder.count("redaction_dropped", count, reason=reason)
        if result.dropped:
            told = ", ".join(f"{count} × {reason}" for reason, count in sorted(result.reasons.items()))
            logger_of("governance").warning(
                "redaction dropped %d of %d texts: %s", len(result.dropped), len(given), told
            )
        return result

    def warm_up(self) -> None:
        """Load what the redactor needs before the first text waits for it. No text is in play yet, so whatever is
        wrong is raised as it is."""
        warm = getattr(self._open(), "warm_up", None)
        if warm is not None:
            warm()

    def __repr__(self) -> str:
        return f"SafeRedactor({self._seconds:g} s)"

    def _open(self) -> RedactorProtocol:
        with self._opening:
            if self._opened is not None:
                return self._opened
            try:
                opened = _opened(self._redactor)
            except CtxError as error:
                self.why = f"{error.message}; {error.hint}" if error.hint else error.message
                raise
            self.why = ""
            self._opened = opened
            return opened


class _Job:
    """What a thread does, and how far it came."""

    def __init__(
        self, texts: tuple[str, ...], opened: Callable[[], RedactorProtocol], placeholders: Placeholders
    ) -> None:
        self._texts = texts
        self._open = opened
        self._placeholders = placeholders
        self._lock = threading.Lock()
        self._over = False
        self._safe: dict[int, str] = {}
        self._failed: dict[int, str] = {}

    def run(self) -> None:
        redactor, reason = _attempt(self._numbered, failure=UNAVAILABLE)
        for at, text in enumerate(self._texts):
            safe: object = None
            if redactor is not None:
                safe, reason = _attempt(lambda text=text: redactor.redact(text))  # type: ignore[misc]
            with self._lock:
                if self._over:
                    return
                if isinstance(safe, str):
                    self._safe[at] = safe
                else:
                    self._failed[at] = reason or ERROR  # something that is no text

    def result(self) -> Redacted:
        """As far as it is now; what comes later is too late."""
        with self._lock:
            self._over = True
            texts = tuple(self._safe.get(at) for at in range(len(self._texts)))
            dropped = {at: self._failed.get(at, TIMEOUT) for at, safe in enumerate(texts) if safe is None}
        return Redacted(texts, dropped)

    def _numbered(self) -> RedactorProtocol:
        redactor = self._open()
        return redactor.within(self._placeholders) if isinstance(redactor, NumberingRedactor) else redactor


def _opened(given: RedactorProtocol | Callable[[], RedactorProtocol]) -> RedactorProtocol:
    if isinstance(given, RedactorProtocol) and not isinstance(given, type):  # a class of redactors has the method too
        return given
    return cast("Callable[[], RedactorProtocol]", given)()


def _attempt(call: Callable[[], T], failure: str = ERROR) -> tuple[T | None, str]:
    """What a foreign call gives, or the reason why not. Nothing of an exception leaves this function: its message and
    the frames of its traceback hold the text."""
    try:
        return call(), ""
    except RedactionError as error:
        return None, error.reason if error.reason in _REASONS else failure
    except BaseException:  # noqa: BLE001  a thread that dies of SystemExit or a MemoryError would be told on stderr
        return None, failure
