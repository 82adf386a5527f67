"""How a reading process ended, in a word for scripts and a sentence for people."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from ingest.faults import A_BUG
from ingest.jobs import Task
from research.store.catalog.failures import CRASHED, INTERNAL, KILLED, TIMEOUT

# What a process does to itself by a mistake in its machine code; every other signal was sent by somebody.
_CRASHES = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS"}


@dataclass(frozen=True, slots=True)
class ExitReason:
    """`code` as in store.catalog.failures; `trace`: what the process said last, where it may tell the cause."""

    code: str
    reason: str
    trace: str = ""


def exit_reason(returncode: int | None, task: Task, said: bytes) -> ExitReason:
    """Of a process that ended by itself or by a signal; None if it could not even end."""
    trace = said.decode("utf-8", "replace").strip()
    if returncode is not None and returncode >= 0:
        reason = f"{A_BUG}: the reading process ended with exit code {returncode}"
        return ExitReason(INTERNAL, reason, trace)
    name = _name(-returncode) if returncode is not None else "it hung while ending"
    if returncode is None or name in _CRASHES:
        library = {"ocr": "OCR engine", "code": "parser"}.get(task, "PDF library")
        return ExitReason(CRASHED, f"the {library} crashed on it ({name})", trace)
    return ExitReason(KILLED, f"the reading process was killed ({name})")


def page_timeout(seconds: float, *, started: bool) -> ExitReason:
    if not started:  # nothing of the document has been touched
        return ExitReason(KILLED, f"the reading process did not start within {seconds:g} seconds")
    return ExitReason(TIMEOUT, f"a page took more than {seconds:g} seconds")


def document_timeout(seconds: float) -> ExitReason:
    return ExitReason(TIMEOUT, f"reading it took more than {seconds:g} seconds")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
