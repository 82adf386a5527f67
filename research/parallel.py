"""Work in threads that nobody has to wait for: the only place that starts threads for sources, legs and services.

    workers = Workers("ctx-source")
    outcomes = workers.run_all({"memories": search_memories, "code": search_code}, seconds=10)
    outcomes["code"].value, outcomes["code"].error, outcomes["code"].late

A call that takes longer than its time is given up and goes on alone; while too many of one name hang, further calls of
that name fail at once. `await workers.call(function, …)` does the same beside an event loop, and `SingleFlight` lets
the first of several callers do the work for all.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_MOST_HANGING = 8  # calls of one name; more would only add threads that nobody hears of


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What one task came to: its value, the exception it raised, or that it was not there in time."""

    value: T | None = None
    error: Exception | None = None
    late: bool = False


class Workers:
    """Runs functions in daemon threads and counts those that were given up. May be used from many threads and loops."""

    def __init__(self, name: str, most_hanging: int = _MOST_HANGING) -> None:
        self._name = name
        self._most_hanging = most_hanging
        self._lock = threading.Lock()
        self._hanging: dict[str, int] = {}

    def run_all(self, tasks: Mapping[str, Callable[[], T]], seconds: float | None = None) -> dict[str, Outcome[T]]:
        """Run the tasks side by side, in the order given, and return what each came to within `seconds`.

        A single task without a time limit runs in the caller's own thread.
        """
        if seconds is None and len(tasks) == 1:
            return {name: _outcome(task) for name, task in tasks.items()}
        deadline = None if seconds is None else time.monotonic() + seconds
        running = {name: self.start(task, name) for name, task in tasks.items()}
        return {
            name: call.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
            for name, call in running.items()
        }

    def start(self, task: Callable[[], T], name: str = "") -> Call[T]:
        """Begin a task; `wait` on what is returned gives its outcome."""
        call: Call[T] = Call(self, name)
        with self._lock:
            hanging = self._hanging.get(name, 0)
        if hanging >= self._most_hanging:
            call.finish(Outcome(error=TimeoutError(f"{hanging} earlier calls still hang"), late=True))
            return call
        context = copy_context()  # a recorder finds the question's trace in it
        named = f"{self._name}-{name}" if name else self._name
        threading.Thread(target=lambda: call.finish(context.run(_outcome, task)), name=named, daemon=True).start()
        return call

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function that blocks, or a coroutine function, gives in the end."""
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        given = await self.run(function, *args)
        return await given if inspect.isawaitable(given) else given

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Return what the function gives or raise what it raises. Raise TimeoutError where too many calls hang already;
        a call that is cancelled is left to itself."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Outcome[T]] = loop.create_future()
        call = self.start(lambda: function(*args))

        def tell(outcome: Outcome[T]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(lambda: None if done.done() else done.set_result(outcome))

        call.when_done(tell)
        try:
            outcome = await done
        except asyncio.CancelledError:
            call.give_up()
            raise
        if outcome.error is not None:
            raise outcome.error
        return outcome.value  # type: ignore[return-value]

    def _count(self, name: str, change: int) -> None:
        with self._lock:
            self._hanging[name] = self._hanging.get(name, 0) + change


class Call(Generic[T]):
    """A task that runs."""

    def __init__(self, workers: Workers, name: str) -> None:
        self._workers = workers
        self._name = name
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._outcome: Outcome[T] | None = None
        self._given_up = False
        self._tell: Callable[[Outcome[T]], None] | None = None

    def wait(self, seconds: float | None = None) -> Outcome[T]:
        """Return its outcome; after `seconds` it is late, is given up, and goes on alone."""
        if not self._done.wait(seconds):
            self.give_up()
        return self._outcome or Outcome(late=True)

    def give_up(self) -> None:
        """Count the task as hanging until it ends."""
        with self._lock:
            if self._outcome is None and not self._given_up:
                self._given_up = True
                self._workers._count(self._name, 1)

    def when_done(self, tell: Callable[[Outcome[T]], None]) -> None:
        """Call `tell` with the outcome once there is one."""
        with self._lock:
            self._tell = tell
            outcome = self._outcome
        if outcome is not None:
            tell(outcome)

    def finish(self, outcome: Outcome[T]) -> None:
        """Keep the outcome and wake whoever waits for it."""
        with self._lock:
            self._outcome = outcome
            tell, given_up = self._tell, self._given_up
        self._done.set()
        if given_up:
            self._workers._count(self._name, -1)
        if tell is not None:
            tell(outcome)


class SingleFlight(Generic[T]):
    """Lets the first of several callers with one key do the work for all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[tuple[str, ...], Future[T]] = {}

    def once(self, key: tuple[str, ...], make: Callable[[], T]) -> T:
        """Return what `make` gives, or what it gave to whoever asked with the same key a moment before."""
        with self._lock:
            flight = self._flights.get(key)
            first = flight is None
            if flight is None:
                flight = self._flights[key] = Future()
        if not first:
            return flight.result()
        try:
            flight.set_result(make())
        except BaseException as error:
            flight.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._flights[key]
        return flight.result()


def _outcome(task: Callable[[], T]) -> Outcome[T]:
    try:
        return Outcome(task())
    except StopIteration as error:  # a future takes none
        return Outcome(error=RuntimeError(f"it ended with {type(error).__name__}"))
    except Exception as error:  # noqa: BLE001  whoever waits gets it
        return Outcome(error=error)
    except BaseException as error:  # noqa: BLE001  an exit of a thread is none of the program's
        return Outcome(error=RuntimeError(f"it ended with {type(error).__name__}"))
