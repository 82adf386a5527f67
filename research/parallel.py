"""Work in threads that nobody has to wait for: the only place that starts threads for sources, legs and services.

    workers = Workers("ctx-source")
    outcomes = workers.run_all({"memories": search_memories, "code": search_code}, seconds=10)
    outcomes["code"].value, outcomes["code"].error, outcomes["code"].late

A call that takes longer than its time is given up and goes on alone; while too many of one name hang, further calls of
that name fail at once. `await workers.call(function, …)` does the same beside an event loop, and `SingleFlight` lets
the first of several callers do the work for all.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

_MOST_HANGING = 8  # calls of one name; more would only add threads that nobody hears of
_LOOK_SECONDS = 0.1  # a Ctrl-C that comes just before a wait begins is heard only when it ends

_flying: ContextVar[bool] = ContextVar("flying", default=False)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What one task came to: its value, or why there is none. `late`: it was not there in time."""

    value: T | None = None
    error: Exception | None = None
    late: bool = False

    def result(self) -> T:
        """Return the value or raise the error."""
        if self.error is not None:
            raise self.error
        return cast("T", self.value)


class Workers:
    """Runs functions in daemon threads and counts those that were given up. May be used from many threads and loops."""

    def __init__(self, name: str, most_hanging: int = _MOST_HANGING) -> None:
        self._name = name
        self._most_hanging = most_hanging
        self._lock = threading.Lock()
        self._hanging: dict[str, int] = {}

    def run_all(self, tasks: Mapping[str, Callable[[], T]], seconds: float | None = None) -> dict[str, Outcome[T]]:
        """Run the tasks side by side, in the order given, and return what each came to within `seconds`.

        Without a time limit the first of them runs in the caller's own thread.
        """
        own = next(iter(tasks), None) if seconds is None else None
        running = {name: self.start(task, name) for name, task in tasks.items() if name != own}
        outcomes: dict[str, Outcome[T]] = {}
        if own is not None:
            try:
                outcomes[own] = Outcome(tasks[own]())
            except Exception as error:  # noqa: BLE001  whoever waits gets it
                outcomes[own] = Outcome(error=error)
        return outcomes | {name: call.wait(seconds) for name, call in running.items()}

    def start(self, task: Callable[[], T], name: str = "") -> Call[T]:
        """Begin a task; `wait` on what is returned gives its outcome."""
        call: Call[T] = Call(lambda change: self._count(name, change))
        hanging = self._count(name, 0)
        if hanging >= self._most_hanging:
            call.finish(Outcome(error=TimeoutError(f"{hanging} earlier calls still hang"), late=True))
            return call
        context = copy_context()  # a recorder finds the question's trace in it

        def work() -> None:
            call.finish(context.run(_thread_outcome, task))

        try:
            threading.Thread(target=work, name=f"{self._name}-{name}" if name else self._name, daemon=True).start()
        except RuntimeError as error:  # the system has no more, or the program ends
            call.finish(Outcome(error=error))
        return call

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function that blocks, or a coroutine function, gives in the end."""
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        given = await self.run(function, *args)
        return await given if inspect.isawaitable(given) else given

    async def run(self, function: Callable[..., T], *args: Any, name: str = "") -> T:
        """Return what the function gives or raise what it raises. Raise TimeoutError where too many calls hang already;
        a call that is cancelled is left to itself."""
        return (await self.start(lambda: function(*args), name).outcome()).result()

    def _count(self, name: str, change: int) -> int:
        with self._lock:
            hanging = self._hanging[name] = self._hanging.get(name, 0) + change
            return hanging


class Call(Generic[T]):
    """A task that runs. `hanging` hears of it (1) if it is given up, and again (-1) when it ends nevertheless."""

    def __init__(self, hanging: Callable[[int], object] = lambda change: None) -> None:
        self._hanging = hanging
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._outcome: Outcome[T] | None = None
        self._given_up = False
        self._tells: list[Callable[[], object]] = []

    def wait(self, seconds: float | None = None) -> Outcome[T]:
        """Return its outcome; `seconds` after it began it is late, is given up, and goes on alone."""
        while not self._done.wait(_LOOK_SECONDS if seconds is None else min(_LOOK_SECONDS, self._left(seconds))):
            if seconds is not None and not self._left(seconds):
                self._give_up()
                break
        return self._outcome or _late(seconds)

    async def outcome(self, seconds: float | None = None) -> Outcome[T]:
        """`wait` beside an event loop. Whoever is cancelled while waiting has given it up, too."""
        import asyncio  # a question at a prompt needs none of it

        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self.when_done(lambda: loop.call_soon_threadsafe(done.set_result, None))
        try:
            await asyncio.wait([done], timeout=None if seconds is None else self._left(seconds))
        finally:
            self._give_up()
        return self._outcome or _late(seconds)

    def when_done(self, tell: Callable[[], object]) -> None:
        """Call `tell` once there is an outcome."""
        with self._lock:
            if self._outcome is None:
                self._tells.append(tell)
                return
        tell()

    def finish(self, outcome: Outcome[T]) -> None:
        """Keep the outcome and wake whoever waits for it."""
        with self._lock:
            self._outcome = outcome
        if self._given_up:
            self._hanging(-1)
        self._done.set()
        for tell in self._tells:
            with suppress(RuntimeError):  # an event loop that is closed: nobody waits any more
                tell()

    def _give_up(self) -> None:
        """Count it as hanging until it ends."""
        with self._lock:
            if self._outcome is None and not self._given_up:
                self._given_up = True
                self._hanging(1)

    def _left(self, seconds: float) -> float:
        return max(0.0, self._began + seconds - time.monotonic())


class SingleFlight(Generic[T]):
    """Lets the first of several callers with one key do the work for all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Hashable, Call[T]] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` gives, or what it gave to whoever asked with the same key a moment before."""
        if _flying.get():  # whoever does such work waits for none of it: two could wait for each other
            return make()
        with self._lock:
            other = self._flights.get(key)
            if other is None:
                mine = self._flights[key] = Call()
        if other is not None:
            return other.wait().result()
        outcome: Outcome[T] = Outcome(error=RuntimeError("whoever did this for all was interrupted"))
        token = _flying.set(True)
        try:
            outcome = _outcome(make)
        finally:
            _flying.reset(token)
            with self._lock:
                del self._flights[key]
            mine.finish(outcome)
        return outcome.result()


def _outcome(task: Callable[[], T]) -> Outcome[T]:
    try:
        return Outcome(task())
    except Exception as error:  # noqa: BLE001  whoever waits gets it
        return Outcome(error=error)


def _thread_outcome(task: Callable[[], T]) -> Outcome[T]:
    try:
        return _outcome(task)
    except BaseException as error:  # noqa: BLE001  an exit of a thread is none of the program's
        return Outcome(error=RuntimeError(f"it ended with {type(error).__name__}"))


def _late(seconds: float | None) -> Outcome[Any]:
    return Outcome(error=TimeoutError(f"timed out after {seconds:g} s"), late=True)
