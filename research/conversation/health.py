"""A circuit breaker: a service that failed several times in a row is left alone for a while, then tried by one call.

    CLOSED     calls go through; `threshold` failures in a row open it
    OPEN       none goes through, for `cooldown` seconds
    HALF_OPEN  one at a time goes through, for `trial` seconds: a success closes it, a failure opens it again; if nobody
               calls for so long, it is closed as if nothing had been

What is reported by a call that was let through before the last change says nothing about the service now, and is
passed over. For many threads and event loops at once.

How well the parts do that a conversation needs, for whoever wants to know: `DegradationMonitor`.

Whoever meets a failure records it for a time; a part that has a breaker is also as well as that says. Names are those
of seed 000, §18.2.

How well the memory service does, and how many memories it is therefore asked for.

    NORMAL    an error         → DEGRADED, for the window (15 s)
    DEGRADED  a success        → NORMAL
    DEGRADED  errors in a row  → DOWN, while the breaker is open
    DEGRADED  its time is over → NORMAL
    DOWN      its time is over → DEGRADED, for the window; one call at a time tries it

An open breaker is DOWN whatever anybody else says. Below that a `provider`, if there is one, knows best.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


class DegradationLevel(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class ComponentHealth:
    """How a part does, and for how many seconds that holds at most; 0 if it is healthy."""

    name: str
    level: DegradationLevel
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Window:
    level: DegradationLevel
    begun: float
    seconds: float


class DegradationMonitor:
    """For many threads. A part nobody spoke of is healthy."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: dict[str, _Window] = {}
        self._breakers: dict[str, CircuitBreaker] = {}

    def record_degradation(
        self, component: str, duration: float, level: DegradationLevel = DegradationLevel.DEGRADED
    ) -> None:
        """It is not well, for so many seconds from now on."""
        with self._lock:
            self._windows[component] = _Window(level, self._clock(), max(0.0, duration))

    def record_recovery(self, component: str) -> None:
        """It is well again."""
        with self._lock:
            self._windows.pop(component, None)

    def watch(self, component: str, breaker: CircuitBreaker) -> None:
        """While this breaker is open the component is down, and degraded while it is tried."""
        with self._lock:
            self._breakers[component] = breaker

    def get_component_health(self, component: str) -> ComponentHealth:
        with self._lock:
            level, seconds = self._window(component)
            breaker = self._breakers.get(component)
        if breaker is not None:
            state = breaker.state
            if state is BreakerState.OPEN:
                return ComponentHealth(component, DegradationLevel.DOWN, breaker.open_for)
            if state is BreakerState.HALF_OPEN and level is not DegradationLevel.DOWN:
                return ComponentHealth(component, DegradationLevel.DEGRADED, max(seconds, breaker.trial))
        return ComponentHealth(component, level, seconds)

    def components(self) -> list[ComponentHealth]:
        """All that were ever spoken of, by name."""
        with self._lock:
            names = sorted({*self._windows, *self._breakers})
        return [self.get_component_health(name) for name in names]

    def _window(self, component: str) -> tuple[DegradationLevel, float]:
        """What was recorded, as far as it still holds."""
        window = self._windows.get(component)
        if window is None:
            return DegradationLevel.HEALTHY, 0.0
        passed = self._clock() - window.begun
        if passed < 0:  # the clock was set back: it holds for its time from there, and no longer
            self._windows[component] = _Window(window.level, self._clock(), window.seconds)
            return window.level, window.seconds
        left = window.seconds - passed
        return (window.level, left) if left > 0 else (DegradationLevel.HEALTHY, 0.0)


degradation_monitor = DegradationMonitor()
"""One for the whole process, under the seed's name. A builder keeps one of its own unless it is given this."""


COMPONENT = "somabrain"


class SomabrainHealthState(StrEnum):
    NORMAL = "normal"
    DEGRADED = "degraded"
    DOWN = "down"


HealthProvider = Callable[[], SomabrainHealthState]
OnDegraded = Callable[[float], object]


def state_of(health: ComponentHealth) -> SomabrainHealthState:
    """What a component's health means for a turn."""
    if health.level is DegradationLevel.HEALTHY:
        return SomabrainHealthState.NORMAL
    if health.level is DegradationLevel.DEGRADED:
        return SomabrainHealthState.DEGRADED
    return SomabrainHealthState.DOWN


class ServiceHealth:
    """Of one service, for many turns at once."""

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
        self.breaker = breaker
        self.monitor = monitor
        self._window = window
        self._provider = provider
        self._on_degraded = on_degraded
        self._clock = clock
        self._lock = threading.Lock()
        self._told: float | None = None  # when the last failure was that on_degraded has heard of, or need not
        monitor.watch(COMPONENT, breaker)

    def state(self) -> SomabrainHealthState:
        if self.breaker.state is BreakerState.OPEN:
            return SomabrainHealthState.DOWN
        if self._provider is not None:
            try:
                return SomabrainHealthState(self._provider())
            except Exception as error:  # noqa: BLE001  the turn is built with what we know ourselves
                _log("the health provider failed", error)
        return state_of(self.monitor.get_component_health(COMPONENT))

    def succeeded(self) -> None:
        with self._lock:
            self._told = None
            self.monitor.record_recovery(COMPONENT)

    def failed(self, seen: SomabrainHealthState) -> None:
        """A turn that `seen` this state has met an error. The first one to leave NORMAL tells `on_degraded`."""
        with self._lock:
            now = self._clock()
            told = self._told is not None and 0 <= now - self._told < self._window
            self._told = now
            self.monitor.record_degradation(COMPONENT, self._window)
        if seen is SomabrainHealthState.NORMAL and not told and self._on_degraded is not None:
            try:
                self._on_degraded(self._window)
            except Exception as error:  # noqa: BLE001  whoever wants to know must not stop the turn
                _log("on_degraded failed", error)


def _log(what: str, error: Exception) -> None:
    from research.observe import log_failure

    log_failure("conversation", what, error)
