"""How a reading process ended, in a word for scripts and a sentence for people."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from ingest.jobs import Task
from research.store.catalog.failures import CRASHED, INTERNAL, KILLED, TIMEOUT

# What a process does to itself by a mistake in its machine code; every other signal was sent by somebody.
_CRASHES = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS"}


@dataclass(frozen=True, slots=True)
class Ending:
    """`code` as in research.store.catalog.failures; `trace`: what the process said last, where it may tell the cause."""

    code: str
    reason: str
    trace: str = ""


def ending_of(returncode: int | None, task: Task, said: bytes) -> Ending:
    """Of a process that ended by itself or by a signal; None if it could not even end."""
    trace = said.decode("utf-8", "replace").strip()
    if returncode is not None and returncode >= 0:
        reason = f"ctx itself failed on it: the reading process ended with exit code {returncode}"
        return Ending(INTERNAL, reason, trace)
    name = _name(-returncode) if returncode is not None else "it hung while ending"
    if returncode is None or name in _CRASHES:
        library = "OCR engine" if task == "ocr" else "PDF library"
        return Ending(CRASHED, f"the {library} crashed on it ({name})", trace)
    return Ending(KILLED, f"the reading process was killed ({name})")


def out_of_time(seconds: float, *, begun: bool) -> Ending:
    if not begun:  # nothing of the document has been touched
        return Ending(KILLED, f"the reading process did not start within {seconds:g} seconds")
    return Ending(TIMEOUT, f"a page took more than {seconds:g} seconds")


def too_long(seconds: float) -> Ending:
    return Ending(TIMEOUT, f"reading it took more than {seconds:g} seconds")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
