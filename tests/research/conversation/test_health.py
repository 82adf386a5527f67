"""Health of the memory service: seed 001's transition table, who is told, and the monitor of seed 000 §18.2."""

from __future__ import annotations

import asyncio
import logging

import pytest

from research.conversation import (
    CircuitBreaker,
    ComponentHealth,
    ContextBuilder,
    DegradationLevel,
    DegradationMonitor,
    SomabrainHealthState,
)
from tests.research.conversation.making import Clock, Memories, build, builder, memory, turn

NORMAL, DEGRADED, DOWN = SomabrainHealthState
EIGHT = [memory(f"fact {number}") for number in range(12)]


def _turn(made: ContextBuilder) -> tuple[str, int]:
    """The state a turn was built in, and how many memories it had."""
    context = build(made, turn())
    return context.debug["somabrain_state"], context.debug["snippet_count"]


@pytest.mark.parametrize(("failures", "cooldown"), [(3, 15.0), (5, 60.0)])
def test_the_transition_table(failures: int, cooldown: float) -> None:
    clock, service = Clock(), Memories(*EIGHT)
    made = builder(service, clock=clock, breaker=CircuitBreaker(threshold=failures, cooldown=cooldown, clock=clock))
    # NORMAL, no issues
    assert [_turn(made) for _ in range(3)] == [("normal", 8)] * 3
    # NORMAL, an error → DEGRADED
    service.failing = True
    assert _turn(made) == ("normal", 0)
    assert made.health.state() is DEGRADED
    # DEGRADED, a success → NORMAL
    service.failing = False
    assert _turn(made) == ("degraded", 3)
    assert _turn(made) == ("normal", 8)
    # DEGRADED, so many failures → DOWN
    service.failing = True
    assert _turn(made) == ("normal", 0)
    for _ in range(failures - 1):
        assert _turn(made) == ("degraded", 0)
    assert made.health.state() is DOWN
    asked = len(service.asked)
    assert [_turn(made) for _ in range(5)] == [("down", 0)] * 5
    assert len(service.asked) == asked
    # DOWN, its time is over → DEGRADED
    clock.pass_by(cooldown - 0.1)
    assert made.health.state() is DOWN
    clock.pass_by(0.1)
    assert made.health.state() is DEGRADED
    service.failing = False
    assert _turn(made) == ("degraded", 3)
    assert _turn(made) == ("normal", 8)


def test_degraded_lasts_fifteen_seconds() -> None:
    clock, service = Clock(), Memories(*EIGHT)
    made = builder(service, clock=clock)
    service.failing = True
    _turn(made)
    clock.pass_by(14.9)
    assert made.health.state() is DEGRADED
    clock.pass_by(0.1)
    assert made.health.state() is NORMAL


def test_an_open_breaker_is_down_whatever_the_provider_says() -> None:
    clock, service = Clock(), Memories(*EIGHT)
    made = builder(service, clock=clock, health_provider=lambda: NORMAL)
    service.failing = True
    assert [_turn(made)[0] for _ in range(5)] == ["normal"] * 3 + ["down"] * 2
    assert len(service.asked) == 3


@pytest.mark.parametrize(("state", "count"), [(NORMAL, 8), (DEGRADED, 3), (DOWN, 0)])
def test_a_provider_decides_how_much_is_asked_for(state: SomabrainHealthState, count: int) -> None:
    service = Memories(*EIGHT)
    made = builder(service, health_provider=lambda: state)
    assert _turn(made) == (state.value, count)
    assert [asked["top_k"] for asked in service.asked] == ([count] if count else [])


def test_a_provider_that_fails_or_talks_nonsense_is_done_without(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> SomabrainHealthState:
        raise OSError("secret words")

    for provider in (broken, lambda: "splendid"):
        assert _turn(builder(Memories(*EIGHT), health_provider=provider)) == ("normal", 8)
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert not any("secret words" in record.getMessage() for record in caplog.records)


def test_on_degraded_is_called_once_on_leaving_normal() -> None:
    clock, service, told = Clock(), Memories(), list[float]()
    made = builder(service, clock=clock, on_degraded=told.append)
    service.failing = True
    for _ in range(3):
        _turn(made)
    clock.pass_by(15)  # DOWN → DEGRADED → DOWN: it never was NORMAL between
    _turn(made)
    assert told == [ContextBuilder.DEGRADED_WINDOW_SECONDS] == [15]
    clock.pass_by(15)
    service.failing = False
    _turn(made)
    service.failing = True
    _turn(made)
    assert told == [15, 15]


def test_on_degraded_is_called_once_by_turns_that_fail_together() -> None:
    service, told = Memories(), list[float]()
    service.failing = True
    made = builder(service, on_degraded=told.append, health_provider=lambda: NORMAL)

    async def together() -> None:
        await asyncio.gather(*(made.build_for_turn(turn()) for _ in range(8)))

    asyncio.run(together())
    assert told == [15]


def test_on_degraded_may_fail() -> None:
    def broken(_: float) -> None:
        raise ValueError

    service = Memories()
    service.failing = True
    assert _turn(builder(service, on_degraded=broken)) == ("normal", 0)


def test_the_wiring_that_seed_000_recommends() -> None:
    """§18.2, as it is written there."""
    clock = Clock()
    degradation_monitor = DegradationMonitor(clock=clock)

    def _map_degradation_to_health(health: ComponentHealth) -> SomabrainHealthState:
        if health.level == DegradationLevel.HEALTHY:
            return SomabrainHealthState.NORMAL
        if health.level == DegradationLevel.DEGRADED:
            return SomabrainHealthState.DEGRADED
        return SomabrainHealthState.DOWN

    service = Memories(*EIGHT)
    service.failing = True
    made = builder(
        service,
        clock=clock,
        health_provider=lambda: _map_degradation_to_health(degradation_monitor.get_component_health("somabrain")),
        on_degraded=lambda d: degradation_monitor.record_degradation("somabrain", d),
    )
    _turn(made)
    service.failing = False
    assert _turn(made) == ("degraded", 3)
    clock.pass_by(15)
    assert _turn(made) == ("normal", 8)


def test_by_default_the_builders_own_monitor_knows_and_may_be_told() -> None:
    clock, service = Clock(), Memories(*EIGHT)
    made = builder(service, clock=clock)
    made.monitor.record_degradation("somabrain", 60)
    assert _turn(made) == ("degraded", 3)  # and the success ends it
    made.monitor.record_degradation("somabrain", 60, DegradationLevel.DOWN)
    assert _turn(made) == ("down", 0)
    clock.pass_by(60)
    assert _turn(made) == ("normal", 8)


def test_the_monitor_tells_how_its_components_do() -> None:
    clock = Clock()
    monitor = DegradationMonitor(clock=clock)
    breaker = CircuitBreaker(threshold=1, clock=clock)
    assert monitor.get_component_health("anything").level == DegradationLevel.HEALTHY
    monitor.watch("memory", breaker)
    monitor.record_degradation("models", 5)
    assert monitor.get_component_health("models") == ComponentHealth("models", DegradationLevel.DEGRADED, 5.0)
    breaker.failed()
    assert monitor.get_component_health("memory") == ComponentHealth("memory", DegradationLevel.DOWN, 15.0)
    clock.pass_by(15)
    assert monitor.get_component_health("memory").level == DegradationLevel.DEGRADED
    monitor.record_degradation("models", 5)
    monitor.record_recovery("models")
    assert monitor.get_component_health("models").level == DegradationLevel.HEALTHY
