"""Time that may be held against a page."""

from __future__ import annotations

import time
from collections.abc import Callable

# Ticks come several times a second. A longer gap is time in which nobody watched: the whole command was stopped
# (Ctrl-Z), or whoever takes the pages was busy, and the process watched may have been stopped or kept waiting too.
_LONGEST_TICK = 1.0


class Stopwatch:
    """Goes on with every tick, by the time since the last one or by a second, whichever is less."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._last = clock()

    def tick(self) -> None:
        now = self._clock()
        self.seconds += min(now - self._last, _LONGEST_TICK)
        self._last = now
