"""Threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from research.parallel import Outcome, SingleFlight, Workers

SAID: ContextVar[str] = ContextVar("said")


@pytest.fixture
def let_go() -> Iterator[threading.Event]:
    """What hangs waits for this, a minute at most, and is let go when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_tasks_run_side_by_side_each_with_its_own_end(let_go: threading.Event) -> None:
    meeting = threading.Barrier(2, timeout=60)

    def fail() -> int:
        meeting.wait()
        raise KeyError("gone")

    def exit_() -> int:
        raise SystemExit(3)

    tasks = {"met": meeting.wait, "failed": fail, "ended": exit_, "slow": lambda: let_go.wait(60)}
    found = Workers("test").run_all(tasks, seconds=0.3)
    assert list(found) == list(tasks)
    assert found["met"].result() in (0, 1)
    assert isinstance(found["failed"].error, KeyError)
    assert str(found["ended"].error) == "it ended with SystemExit"
    assert found["slow"].late
    with pytest.raises(TimeoutError, match=r"timed out after 0\.3 s"):
        found["slow"].result()


def test_without_a_limit_the_first_runs_here_and_a_ctrl_c_in_it_is_no_outcome() -> None:
    here = threading.current_thread()
    found = Workers("test").run_all({"a": threading.current_thread, "b": threading.current_thread})
    assert found["a"].value is here
    assert found["b"].value is not here
    assert found["b"].result().daemon

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Workers("test").run_all({"a": interrupted})
    assert Workers("test").run_all({}) == {}


def test_a_ctrl_c_ends_the_waiting_at_once(let_go: threading.Event) -> None:
    threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Workers("test").run_all({"a": lambda: let_go.wait(60)}, seconds=60)
    assert time.monotonic() - began < 10


def test_tasks_start_tasks_and_see_what_their_caller_says() -> None:
    workers = Workers("test", most_hanging=1)
    SAID.set("the trace")

    def nested(depth: int) -> list[str]:
        if depth == 0:
            return [SAID.get()]
        found = workers.run_all({"left": lambda: nested(depth - 1), "right": lambda: nested(depth - 1)}, seconds=60)
        return [*found["left"].result(), *found["right"].result()]

    assert nested(4) == ["the trace"] * 16


def test_what_hangs_too_often_is_not_started_again_until_one_comes_back(let_go: threading.Event) -> None:
    workers = Workers("test", most_hanging=2)
    calls = [workers.start(lambda: let_go.wait(60), "slow") for _ in range(2)]
    assert all(call.wait(0.01).late for call in calls)
    assert calls[0].wait(0.01).late, "and is counted once"
    assert str(workers.start(lambda: True, "slow").wait().error) == "2 earlier calls still hang"
    assert workers.start(lambda: 7, "other").wait() == Outcome(7)
    let_go.set()
    assert [call.wait().value for call in calls] == [True, True]
    assert workers.start(lambda: 7, "slow").wait().result() == 7


def test_beside_an_event_loop_nothing_waits_for_what_was_given_up(let_go: threading.Event) -> None:
    workers = Workers("test", most_hanging=2)

    async def given_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await workers.run(let_go.wait, 60)
        assert (await workers.start(lambda: let_go.wait(60)).outcome(0.02)).late
        with pytest.raises(TimeoutError, match="2 earlier calls still hang"):
            await workers.run(time.sleep, 0)

    asyncio.run(given_up())  # which would wait for asyncio's own threads
    let_go.set()
    for thread in [thread for thread in threading.enumerate() if thread.name == "test"]:
        thread.join()  # and says nothing of a loop that is closed
    assert asyncio.run(workers.run(lambda: 7)) == 7


@pytest.mark.parametrize("raised", [KeyError("x"), StopIteration(), SystemExit(3)])
def test_what_a_thread_raises_arrives_beside_an_event_loop(raised: BaseException) -> None:
    def work() -> None:
        raise raised

    with pytest.raises(KeyError if isinstance(raised, KeyError) else RuntimeError):
        asyncio.run(Workers("test").run(work))


def test_the_first_does_the_work_for_all() -> None:
    flight: SingleFlight[int] = SingleFlight()
    made, others = [], threading.Barrier(4, timeout=60)

    def make() -> int:
        made.append(1)
        time.sleep(0.3)  # the others come while it works; were they too late, they would make their own
        return len(made)

    def ask() -> int:
        others.wait()
        return flight.once(("a", "b"), make)

    asked = Workers("test").run_all({str(number): ask for number in range(4)})
    assert [outcome.result() for outcome in asked.values()] == [1] * 4
    assert flight.once(("a", "b"), make) == 2, "and later it is done anew"
    with pytest.raises(KeyError):
        flight.once(("c",), lambda: {}["c"])
    assert flight.once(("c",), lambda: 3) == 3


def test_work_for_all_may_need_other_such_work_and_its_own() -> None:
    """Two that wait for each other would wait for ever."""
    flight: SingleFlight[int] = SingleFlight()
    meeting = threading.Barrier(2, timeout=60)

    def crossing(other: str) -> int:
        meeting.wait()
        return flight.once((other,), lambda: 1) + 1

    tasks = {
        "a": lambda: flight.once(("a",), lambda: crossing("b")),
        "b": lambda: flight.once(("b",), lambda: crossing("a")),
    }
    assert [each.result() for each in Workers("test").run_all(tasks, seconds=60).values()] == [2, 2]
    assert flight.once(("a",), lambda: flight.once(("a",), lambda: 1)) == 1
    inside = Workers("test")
    assert flight.once(("a",), lambda: inside.start(lambda: flight.once(("a",), lambda: 5)).wait().result()) == 5


def test_whoever_waits_hears_that_the_first_was_interrupted() -> None:
    flight: SingleFlight[int] = SingleFlight()
    begun, waiting = threading.Event(), threading.Event()

    def interrupted() -> int:
        begun.set()
        waiting.wait(60)
        time.sleep(0.3)
        raise KeyboardInterrupt

    first = Workers("test").start(lambda: flight.once(("a",), interrupted))
    begun.wait(60)
    waiting.set()
    with pytest.raises(RuntimeError, match="interrupted"):
        flight.once(("a",), lambda: 1)
    assert first.wait().error is not None
