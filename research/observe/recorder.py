"""Times, counts and events of a running ctx, for whoever wants them; by default nobody does.

Code that does something worth knowing is given a `Recorder` and calls it:

    with recorder.time("retrieve"):
        ...
    recorder.count("pages_read", 12, reader="pdf")
    recorder.event("generation_published", number=7, records=120_000)

Names are lower case with underscores, labels have few values (a stage, a leg, a status), and neither labels nor fields
ever hold text of a document or a question: what is recorded may be kept for years by others.

A recorder for Prometheus or OpenTelemetry is one more class in a file of its own beside this one: `time` becomes a
histogram `ctx_<stage>_seconds`, `count` a counter `ctx_<name>_total` with its labels, `event` a span event or nothing.
Only that file imports the library, and raises `CtxError` with the `pip install` line where it is missing. Methods are
called from many threads at once and must neither block nor raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import logging


class Recorder(Protocol):
    def time(self, stage: str) -> AbstractContextManager[None]:
        """Measures what runs inside it, also if that raises."""
        ...

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        """So many more of something."""
        ...

    def event(self, name: str, **fields: str | int | float) -> None:
        """Something that happens seldom and is worth a line."""
        ...


class NullRecorder:
    """The default: hears everything and keeps nothing."""

    def time(self, stage: str) -> AbstractContextManager[None]:
        return _NOTHING

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        pass

    def event(self, name: str, **fields: str | int | float) -> None:
        pass


_NOTHING = nullcontext()  # holds no state, so one serves all threads at once


class LoggingRecorder:
    """Everything as lines of the logger `ctx.recorder`: events as INFO, times and counts, of which there are many, as
    DEBUG. A logger may be given instead."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        if logger is None:
            from research.observe.log import logger_of

            logger = logger_of("recorder")
        self._logger = logger

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        from time import perf_counter

        begun, ended = perf_counter(), "failed"
        try:
            yield
            ended = "done"
        finally:
            self._logger.debug("time %s: %.1f ms, %s", stage, (perf_counter() - begun) * 1000, ended)

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        self._logger.debug("count %s: %d%s", name, value, _pairs(labels))

    def event(self, name: str, **fields: str | int | float) -> None:
        self._logger.info("event %s%s", name, _pairs(fields))


def _pairs(fields: dict[str, str] | dict[str, str | int | float]) -> str:
    return "".join(f" {name}={value}" for name, value in fields.items())
