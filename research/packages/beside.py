"""Something that must be done before a package is released, and may be done while it is still built: writes that wait
for the disk, for the most part."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context


class Beside:
    """A function that runs in a thread of its own from now on."""

    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), name=name, daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Wait for it. Raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            self._error = error
