"""The breaker: the numbers of both seeds, one probe at a time, threads, and clocks that jump."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.conversation import BreakerState, CircuitBreaker
from research.errors import SomaClientError
from tests.research.conversation.making import Clock


def _fail(breaker: CircuitBreaker, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(ConnectionError), breaker.guard():
            raise ConnectionError


def _succeed(breaker: CircuitBreaker) -> None:
    with breaker.guard():
        pass


@pytest.mark.parametrize(("threshold", "cooldown"), [(3, 15.0), (5, 60.0)])
def test_so_many_failures_in_a_row_open_it_for_so_long(threshold: int, cooldown: float) -> None:
    clock = Clock()
    breaker = CircuitBreaker(threshold=threshold, cooldown=cooldown, clock=clock)
    _fail(breaker, threshold - 1)
    assert breaker.state == "CLOSED"
    _fail(breaker)
    assert breaker.state == "OPEN"
    clock.pass_by(cooldown - 3.5)
    with pytest.raises(SomaClientError, match=r"SomaBrain unavailable \(circuit open for 3s\)") as refused:
        _succeed(breaker)
    assert (refused.value.code, refused.value.counts) == ("open", False)
    assert breaker.open_for == 3.5
    clock.pass_by(3.5)
    assert (breaker.state, breaker.open_for) == ("HALF_OPEN", 0.0)


def test_one_call_at_a_time_tries_it_and_decides() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock=clock)
    _fail(breaker, 3)
    clock.pass_by(15)
    probe = breaker.admit()
    with pytest.raises(SomaClientError, match="another call is trying it"):
        breaker.admit()
    breaker.failed(probe)
    assert breaker.state == "OPEN"
    clock.pass_by(15)
    breaker.succeeded(breaker.admit())
    assert breaker.state == "CLOSED"
    _fail(breaker, 2)
    assert breaker.state == "CLOSED"


def test_a_probe_that_was_cancelled_lets_another_through() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock=clock)
    _fail(breaker, 3)
    clock.pass_by(15)
    with pytest.raises(asyncio.CancelledError), breaker.guard():
        raise asyncio.CancelledError
    assert breaker.state == "HALF_OPEN"
    _succeed(breaker)
    assert breaker.state == "CLOSED"


def test_a_probe_nobody_hears_of_again_blocks_nobody_for_ever() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock=clock, trial=20)
    _fail(breaker, 3)
    clock.pass_by(15)
    breaker.admit()
    clock.pass_by(19)
    with pytest.raises(SomaClientError):
        breaker.admit()
    clock.pass_by(1)
    breaker.admit()


def test_what_began_before_the_last_change_is_not_heard() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock=clock)
    early = breaker.admit()
    _fail(breaker, 3)
    breaker.succeeded(early)
    assert breaker.state == "OPEN"
    clock.pass_by(15)
    breaker.failed(early)
    assert breaker.state == "HALF_OPEN"


def test_an_error_about_the_request_says_that_the_service_lives() -> None:
    breaker = CircuitBreaker(clock=Clock())
    _fail(breaker, 2)
    with pytest.raises(SomaClientError), breaker.guard():
        raise SomaClientError("422", counts=False)
    assert breaker.failures == 0


def test_many_threads_count_every_failure_and_one_of_them_is_the_probe() -> None:
    clock = Clock()
    breaker = CircuitBreaker(threshold=1000, clock=clock)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: _fail(breaker, 124), range(8)))
    assert breaker.failures == 992
    _fail(breaker, 8)
    clock.pass_by(15)
    together = Barrier(8)

    def admitted(_: int) -> bool:
        together.wait()
        try:
            breaker.admit()
        except SomaClientError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(admitted, range(8))) == 1


@given(st.lists(st.one_of(st.sampled_from(["fail", "succeed"]), st.floats(0, 40)), max_size=60))
def test_it_does_what_is_written_of_it(events: list[str | float]) -> None:
    """Against the table in its docstring, followed by hand."""
    clock = Clock()
    breaker = CircuitBreaker(clock=clock)
    state, failures, since = "CLOSED", 0, 0.0
    for event in events:
        if isinstance(event, float):
            clock.pass_by(event)
        if state == "OPEN" and clock() - since >= 15:
            state, since = "HALF_OPEN", since + 15
        if state == "HALF_OPEN" and clock() - since >= 15:
            state, failures = "CLOSED", 0
        assert breaker.state == BreakerState(state)
        if state == "OPEN" or isinstance(event, float):
            continue
        if event == "fail":
            _fail(breaker)
            failures += 1
            if failures >= 3 or state == "HALF_OPEN":
                state, since = "OPEN", clock()
        else:
            _succeed(breaker)
            state, failures = "CLOSED", 0
        assert breaker.state == BreakerState(state)
