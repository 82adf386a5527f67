"""How well the memory service does, and how many memories it is therefore asked for.

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
from collections.abc import Callable
from enum import StrEnum

from research.conversation.breaker import BreakerState, CircuitBreaker
from research.conversation.degradation import ComponentHealth, DegradationLevel, DegradationMonitor

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
