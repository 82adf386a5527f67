"""A circuit breaker: a service that failed several times in a row is left alone for a while, then tried by one call.

    CLOSED     calls go through; `threshold` failures in a row open it
    OPEN       none goes through, for `cooldown` seconds
    HALF_OPEN  one at a time goes through, for `trial` seconds: a success closes it, a failure opens it again; if nobody
               calls for so long, it is closed as if nothing had been

What is reported by a call that was let through before the last change says nothing about the service now, and is
passed over. For many threads and event loops at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from research.errors import SomaClientError

THRESHOLD, COOLDOWN, TRIAL = 3, 15.0, 15.0


class BreakerState(StrEnum):
    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class CircuitBreaker:
    def __init__(
        self,
        *,
        threshold: int = THRESHOLD,
        cooldown: float = COOLDOWN,
        trial: float = TRIAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds. One that jumps back makes a state last no longer than it would have from there."""
        self.threshold = max(1, threshold)
        self.cooldown = max(0.0, cooldown)
        self.trial = max(0.0, trial)
        self._clock = clock
        self._lock = threading.Lock()
        self._state = BreakerState.CLOSED
        self._since = 0.0  # when the state began
        self._failures = 0  # in a row
        self._probe: float | None = None  # when the one call of HALF_OPEN was let through
        self._generation = 0  # of the state; what was let through in an older one is not heard

    @property
    def state(self) -> BreakerState:
        with self._lock:
            self._advance()
            return self._state

    @property
    def failures(self) -> int:
        """In a row, so far."""
        with self._lock:
            return self._failures

    @property
    def open_for(self) -> float:
        """Seconds until it lets a call through again; 0 if it does."""
        with self._lock:
            now = self._advance()
            return self._since + self.cooldown - now if self._state is BreakerState.OPEN else 0.0

    def admit(self) -> int:
        """Let a call through: a number for `succeeded`, `failed` or `released`. Raises SomaClientError ("open")."""
        with self._lock:
            now = self._advance()
            if self._state is BreakerState.OPEN:
                left = self._since + self.cooldown - now
                raise _unavailable(f"circuit open for {int(left)}s", wait=left)
            if self._state is BreakerState.HALF_OPEN:
                if self._probe is not None:
                    raise _unavailable("another call is trying it", wait=1.0)
                self._probe = now
            return self._generation

    def succeeded(self, admitted: int | None = None) -> None:
        with self._lock:
            self._advance()
            if self._stale(admitted) or self._state is BreakerState.OPEN:
                return
            self._failures = 0
            if self._state is BreakerState.HALF_OPEN:
                self._become(BreakerState.CLOSED)

    def failed(self, admitted: int | None = None) -> None:
        """One call with all its retries is one failure."""
        with self._lock:
            self._advance()
            if self._stale(admitted) or self._state is BreakerState.OPEN:
                return
            self._failures += 1
            if self._state is BreakerState.HALF_OPEN or self._failures >= self.threshold:
                self._become(BreakerState.OPEN)

    def released(self, admitted: int | None = None) -> None:
        """The call ended without a verdict: whoever made it went away."""
        with self._lock:
            if not self._stale(admitted):
                self._probe = None

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Around one call. What it raises is a failure of the service, unless it says of itself that it is none."""
        admitted = self.admit()
        try:
            yield
        except Exception as error:
            if isinstance(error, SomaClientError) and not error.counts:
                self.succeeded(admitted)
            else:
                self.failed(admitted)
            raise
        except BaseException:  # cancelled, or the program ends
            self.released(admitted)
            raise
        self.succeeded(admitted)

    def _stale(self, admitted: int | None) -> bool:
        return admitted is not None and admitted != self._generation

    def _become(self, state: BreakerState, since: float | None = None) -> None:
        self._state, self._since = state, self._clock() if since is None else since
        self._probe = None
        self._generation += 1

    def _advance(self) -> float:
        """Do what time alone does, and tell it."""
        now = self._clock()
        self._since = min(self._since, now)
        if self._state is BreakerState.OPEN and now - self._since >= self.cooldown:
            self._become(BreakerState.HALF_OPEN, self._since + self.cooldown)
        if self._state is BreakerState.HALF_OPEN:
            if self._probe is not None and not 0 <= now - self._probe < max(self.trial, 1.0):
                self._probe = None  # nobody will hear of it any more
            if self._probe is None and now - self._since >= self.trial:
                self._failures = 0
                self._become(BreakerState.CLOSED)
        return now


def _unavailable(why: str, wait: float) -> SomaClientError:
    return SomaClientError(
        f"SomaBrain unavailable ({why})",
        code="open",
        wait=wait,
        counts=False,
        hint="it failed several times in a row, and is asked again after a while",
    )
