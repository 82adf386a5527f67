"""Blocking functions beside an event loop, in threads that nobody has to wait for.

asyncio's own threads are few, are waited for when the program ends, and are lost to everybody once something hangs in
them. Here a call that was given up goes on alone; when too many of them hang, further calls fail at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

_MOST_HANGING = 8


class Workers:
    def __init__(self, name: str, most_hanging: int = _MOST_HANGING) -> None:
        self._name = name
        self._most = most_hanging
        self._lock = threading.Lock()
        self._hanging = 0

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """A function that blocks, or a coroutine's: what it gives in the end."""
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        given = await self.run(function, *args)
        return await given if inspect.isawaitable(given) else given

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """What the function gives or raises. Raises TimeoutError if too many hang already; cancelled, it is left to
        itself."""
        if self._hanging >= self._most:
            raise TimeoutError(f"{self._hanging} earlier calls still hang")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        call = _Call()

        def work() -> None:
            try:
                result = function(*args)
            except BaseException as error:  # noqa: BLE001  whoever waits gets it
                self._finish(loop, call, done.set_exception, _raised(error), done)
            else:
                self._finish(loop, call, done.set_result, result, done)

        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(work,), name=self._name, daemon=True).start()
        try:
            return await done
        except asyncio.CancelledError:
            with self._lock:
                if not call.over:
                    call.given_up = True
                    self._hanging += 1
            raise

    def _finish(
        self,
        loop: asyncio.AbstractEventLoop,
        call: _Call,
        tell: Callable[[Any], None],
        what: Any,
        done: asyncio.Future[Any],
    ) -> None:
        with self._lock:
            call.over = True
            self._hanging -= call.given_up
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(lambda: None if done.done() else tell(what))


class _Call:
    __slots__ = ("given_up", "over")

    def __init__(self) -> None:
        self.over = self.given_up = False


def _raised(error: BaseException) -> BaseException:
    """A future takes no StopIteration; and an exit of a thread is not one of the program."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"it ended with {type(error).__name__}")
