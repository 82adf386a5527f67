"""Work that several ask for at once, done by the first of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Flights(Generic[T]):
    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._flights: dict[tuple[str, ...], Future[T]] = {}

    def once(self, key: tuple[str, ...], make: Callable[[], T]) -> T:
        """What `make` gives or raises, or what that of another one gives who asked for the same a moment before."""
        with self._turn:
            flight = self._flights.get(key)
            mine = flight is None
            if flight is None:
                flight = self._flights[key] = Future()
        if not mine:
            return flight.result()
        try:
            flight.set_result(make())
        except BaseException as error:
            flight.set_exception(error)
            raise
        finally:
            with self._turn:
                del self._flights[key]
        return flight.result()
