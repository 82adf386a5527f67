"""How well the memory service does, and how many memories it is therefore asked for.

    NORMAL    an error         → DEGRADED, for the window (15 s)
    DEGRADED  a success        → NORMAL
    DEGRADED  errors in a row  → DOWN, while the breaker is open
    DEGRADED  its time is over → NORMAL
    DOWN      its time is over → DEGRADED, for the window; one call at a time tries it

An open breaker is DOWN whatever anybody else says; below that a `provider`, if there is one, knows best. Names are
those of seed 000, §6 and §18.2. All of it is for many threads and event loops at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from research.errors import SomaClientError

COMPONENT = "somabrain"


class BreakerState(StrEnum):
    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class DegradationLevel(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"


class SomabrainHealthState(StrEnum):
    NORMAL = "normal"
    DEGRADED = "degraded"
    DOWN = "down"


HealthProvider = Callable[[], SomabrainHealthState]
OnDegraded = Callable[[float], object]
_STATES = dict(zip(DegradationLevel, SomabrainHealthState, strict=True))


class CircuitBreaker:
    """Leaves a service alone for a while that failed several times in a row, then lets one call try it.

    CLOSED     calls go through; `threshold` failures in a row open it
    OPEN       none goes through, for `cooldown` seconds
    HALF_OPEN  one at a time goes through, for `trial` seconds: a success closes it, a failure opens it again; if nobody
               calls for so long, it is closed as if nothing had been

    What a call reports that was let through before the last change says nothing about the service now.
    """

    def __init__(
        self,
        *,
        threshold: int = 3,
        cooldown: float = 15.0,
        trial: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.threshold = max(1, threshold)
        self.cooldown = max(0.0, cooldown)
        self.trial = max(0.0, trial)
        self._clock = clock
        self._lock = threading.Lock()
        self._state = BreakerState.CLOSED
        self._since = 0.0  # when the state began
        self._failures = 0  # in a row
        self._probe: float | None = None  # when the one call of HALF_OPEN was let through
        self._generation = 0  # of the state

    @property
    def state(self) -> BreakerState:
        with self._lock:
            self._advance()
            return self._state

    @property
    def failures(self) -> int:
        """In a row, so far."""
        return self._failures

    @property
    def open_for(self) -> float:
        """Seconds until it lets a call through again; 0 if it does."""
        with self._lock:
            now = self._advance()
            return self._since + self.cooldown - now if self._state is BreakerState.OPEN else 0.0

    def admit(self) -> int:
        """Let a call through and number it for `succeeded`, `failed` or `released`. Raises SomaClientError ("open")."""
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
            if self._counts(admitted):
                self._failures = 0
                if self._state is BreakerState.HALF_OPEN:
                    self._become(BreakerState.CLOSED, self._clock())

    def failed(self, admitted: int | None = None) -> None:
        """One call with all its retries is one failure."""
        with self._lock:
            self._advance()
            if self._counts(admitted):
                self._failures += 1
                if self._state is BreakerState.HALF_OPEN or self._failures >= self.threshold:
                    self._become(BreakerState.OPEN, self._clock())

    def released(self, admitted: int) -> None:
        """The call ended without a verdict: whoever made it went away."""
        with self._lock:
            if self._counts(admitted):
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

    def _counts(self, admitted: int | None) -> bool:
        return self._state is not BreakerState.OPEN and admitted in (None, self._generation)

    def _become(self, state: BreakerState, since: float) -> None:
        self._state, self._since, self._probe = state, since, None
        self._generation += 1

    def _advance(self) -> float:
        """Do what time alone does, and return it."""
        now = self._clock()
        if self._state is BreakerState.OPEN and now - self._since >= self.cooldown:
            self._become(BreakerState.HALF_OPEN, self._since + self.cooldown)
        if self._state is BreakerState.HALF_OPEN:
            if self._probe is not None and now - self._probe >= max(self.trial, 1.0):
                self._probe = None  # nobody will hear of it any more
            if self._probe is None and now - self._since >= self.trial:
                self._failures = 0
                self._become(BreakerState.CLOSED, now)
        return now


def _unavailable(why: str, wait: float) -> SomaClientError:
    hint = "it failed several times in a row, and is asked again after a while"
    return SomaClientError(f"SomaBrain unavailable ({why})", code="open", wait=wait, counts=False, hint=hint)


@dataclass(frozen=True, slots=True)
class ComponentHealth:
    """How a component does, and for how many seconds that holds at most; 0 if it is healthy."""

    name: str
    level: DegradationLevel
    seconds: float = 0.0


class DegradationMonitor:
    """Knows how well the components do that a conversation needs. One nobody spoke of is healthy."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, tuple[DegradationLevel, float]] = {}  # and until when
        self._breakers: dict[str, CircuitBreaker] = {}

    def record_degradation(
        self, component: str, duration: float, level: DegradationLevel = DegradationLevel.DEGRADED
    ) -> None:
        """It is not well, for so many seconds from now on."""
        self._windows[component] = level, self._clock() + duration

    def record_recovery(self, component: str) -> None:
        """It is well again."""
        self._windows.pop(component, None)

    def watch(self, component: str, breaker: CircuitBreaker) -> None:
        """While this breaker is open the component is down, and degraded while it is tried."""
        self._breakers[component] = breaker

    def get_component_health(self, component: str) -> ComponentHealth:
        level, until = self._windows.get(component, (DegradationLevel.HEALTHY, 0.0))
        seconds = max(0.0, until - self._clock())
        level = level if seconds else DegradationLevel.HEALTHY
        breaker = self._breakers.get(component)
        state = breaker.state if breaker is not None else BreakerState.CLOSED
        if breaker is not None and state is BreakerState.OPEN:
            return ComponentHealth(component, DegradationLevel.DOWN, breaker.open_for)
        if breaker is not None and state is BreakerState.HALF_OPEN and level is not DegradationLevel.DOWN:
            return ComponentHealth(component, DegradationLevel.DEGRADED, max(seconds, breaker.trial))
        return ComponentHealth(component, level, seconds)


degradation_monitor = DegradationMonitor()
"""One for the whole process, under the seed's name. A builder keeps one of its own unless it is given this."""


class ServiceHealth:
    """How one memory service does, for many turns at once."""

    def __init__(
        self,
        breaker: CircuitBreaker,
        monitor: DegradationMonitor,
        *,
        window: float,
        provider: HealthProvider | None = None,
        on_degraded: OnDegraded | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._breaker = breaker
        self._monitor = monitor
        self._window = window
        self._provider = provider
        self._on_degraded = on_degraded
        self._clock = clock
        self._lock = threading.Lock()
        self._heard_until = 0.0  # until then on_degraded has heard of failures, or need not
        monitor.watch(COMPONENT, breaker)

    def state(self) -> SomabrainHealthState:
        if self._breaker.state is BreakerState.OPEN:
            return SomabrainHealthState.DOWN
        if self._provider is not None:
            try:
                return SomabrainHealthState(self._provider())
            except Exception as error:  # noqa: BLE001  the turn is built with what we know ourselves
                _log("the health provider failed", error)
        return _STATES[self._monitor.get_component_health(COMPONENT).level]

    def succeeded(self) -> None:
        with self._lock:
            self._heard_until = 0.0
            self._monitor.record_recovery(COMPONENT)

    def failed(self, seen: SomabrainHealthState) -> None:
        """A turn that `seen` this state has met an error. The first one to leave NORMAL tells `on_degraded`."""
        with self._lock:
            now = self._clock()
            heard, self._heard_until = now < self._heard_until, now + self._window
            self._monitor.record_degradation(COMPONENT, self._window)
        if seen is SomabrainHealthState.NORMAL and not heard and self._on_degraded is not None:
            try:
                self._on_degraded(self._window)
            except Exception as error:  # noqa: BLE001  whoever wants to know must not stop the turn
                _log("on_degraded failed", error)


def _log(what: str, error: Exception) -> None:
    from research.observe import log_failure

    log_failure("conversation", what, error)
