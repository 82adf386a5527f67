"""The loggers of ctx: `ctx`, with one child for each part (`ctx.ingest`, `ctx.store`, `ctx.cli` …).

They are Python's own, silent until somebody adds a handler: a program that uses ctx as a library sets up `logging` as
it likes, the command line does it for `--log-file` and `CTX_LOG`.

What is logged as INFO or above holds no text of a document and no question. Names of files, numbers, times and the
types of exceptions are fine; the message of an exception is not, because it may quote what it choked on. `DEBUG` may
hold anything, and so may what is added with `extra=in_full(…)`: the same in all its words, which stand in the record's
place with --debug and in a log of level DEBUG.
"""

from __future__ import annotations

import logging
import traceback

NAME = "ctx"
_IN_FULL = "in_full"  # an attribute of a record


def logger_of(part: str) -> logging.Logger:
    """The logger of one part of ctx. With nobody listening, Python would print its warnings on stderr."""
    root = logging.getLogger(NAME)
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    return root.getChild(part)


def log_failure(part: str, what: str, error: BaseException) -> None:
    """A part that failed while the rest goes on. Imported where it happens: a question that fails nowhere loads no
    logging."""
    logger_of(part).warning("%s: %s", what, type(error).__name__, exc_info=error)


def in_full(text: str) -> dict[str, str]:
    return {_IN_FULL: text}


def full_text(record: logging.LogRecord) -> str:
    """A record in all its words; for readers who may see them."""
    return str(getattr(record, _IN_FULL, "") or record.getMessage())


def frames_of(error: BaseException) -> str:
    """A traceback that may be logged: where it happened and what type each exception was, without their messages."""
    chain: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        kind = type(current)
        chain.append("".join(traceback.format_tb(current.__traceback__)) + f"{kind.__module__}.{kind.__qualname__}")
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return "Traceback (most recent call last):\n" + "\nwhile this was handled, or because of it:\n".join(chain[::-1])
