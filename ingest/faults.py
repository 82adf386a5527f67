"""Our own mistakes, told apart from what a document, its library or the machine did."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from research.errors import CtxError
from research.observe import frames_of

# What is no mistake of ours on one page and must reach the edge of the process: errors with a meaning of their own.
NOT_OURS = (CtxError, MemoryError, OSError)

A_BUG = "a bug in ctx, not in the file"

_PACKAGES = {"ingest", "research"}
_LONGEST = 200  # characters of an exception's message, which may quote the document


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception of our own code: a sentence for the user, the frames of its traceback for whoever mends it."""

    reason: str
    trace: str


class FaultError(Exception):
    """A fault that was kept and turned out to cost the whole document."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


def fault_of(error: Exception) -> Fault:
    if isinstance(error, FaultError):
        return error.fault
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    return Fault(f"{A_BUG}: {said[:_LONGEST]}", frames_of(error))


def is_ours(error: Exception) -> bool:
    """Whether it was raised in our own code, and not inside a library that we called."""
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    if innermost is None:
        return False
    module = str(innermost.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _PACKAGES and not isinstance(error, RecursionError)
