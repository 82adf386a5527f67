"""What the parts of ctx log, on stderr where somebody asked for it; otherwise it goes nowhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from cli.output import say


class _Talk(logging.Handler):
    """Line by line, so that nothing a log quotes of a document reaches the terminal as it is."""

    def emit(self, record: logging.LogRecord) -> None:
        for line in self.format(record).splitlines():
            say(line)


@contextmanager
def shown_log(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    logger, handler = logging.getLogger("ctx"), _Talk()
    handler.setFormatter(logging.Formatter("ctx: log: %(message)s"))
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
