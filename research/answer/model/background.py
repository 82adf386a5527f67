"""Reading that cannot hang: a blocking iterator runs in a thread of its own, and each of its items is waited for only
so long.

An HTTP library's own time-out begins anew with every byte, does not cover the look-up of a name, and cannot be another
one before the first token than between two. Here the caller says for each item how long it may take.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

_AHEAD = 64  # items that are read before they are wanted; more would fill the memory
_LOOK_SECONDS = 0.1
_CLOSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _Ended:
    """The last thing a thread says: why it ended."""

    error: BaseException | None = None


class BackgroundReader(Generic[T]):
    """Items of a generator that runs in a thread. `abort` is called by `close` to wake it where it waits."""

    def __init__(self, items: Generator[T, None, None], abort: Callable[[], None]) -> None:
        self._items = items
        self._abort = abort
        self._queue: queue.Queue[T | _Ended] = queue.Queue(_AHEAD)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ctx-model", daemon=True)
        self._thread.start()

    def next(self, seconds: float) -> T | None:
        """The next item; None after the last. Raises what the generator raised, and TimeoutError."""
        item = self._wait(time.monotonic() + seconds)
        if not isinstance(item, _Ended):
            return item
        self._queue.put(item)
        if item.error is not None:
            raise item.error
        return None

    def close(self) -> None:
        """Stop reading. A thread that hangs where nothing wakes it is left to its own time-outs."""
        self._closed.set()
        self._abort()
        self._thread.join(_CLOSE_SECONDS)

    def _wait(self, deadline: float) -> T | _Ended:
        """Not in one go: a Ctrl-C that comes just before a wait begins is heard only when it ends."""
        while (left := deadline - time.monotonic()) > 0:
            with suppress(queue.Empty):
                return self._queue.get(timeout=min(left, _LOOK_SECONDS))
        raise TimeoutError

    def _run(self) -> None:
        ended = _Ended()
        try:
            for item in self._items:
                if not self._put(item):
                    break
        except BaseException as error:  # noqa: BLE001  the caller gets it
            ended = _Ended(error)
        finally:
            self._items.close()
        self._put(ended)

    def _put(self, item: T | _Ended) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(item, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return True
        return False
