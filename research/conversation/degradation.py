"""How well the parts do that a conversation needs, for whoever wants to know: `DegradationMonitor`.

Whoever meets a failure records it for a time; a part that has a breaker is also as well as that says. Names are those
of seed 000, §18.2.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from research.conversation.breaker import BreakerState, CircuitBreaker


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
