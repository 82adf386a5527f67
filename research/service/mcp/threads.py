"""The index behind `ctx mcp`: warmed beside everything else, then asked by several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from anyio import CapacityLimiter

    from research.governance.access import Principal
    from research.index import Index

T = TypeVar("T")

_MORE_THAN_CORES = 2  # what waits for the disk does not keep the others


class Threads:
    """Runs work on an index in threads. A request that is cancelled is let go of at once; its thread ends by itself.

    Loading begins when this is made, while the client still says hello. A question waits for it: it would only load the
    same once more.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self._warm = threading.Event()
        self._places: list[CapacityLimiter] = []  # one at most, of the loop that runs
        threading.Thread(target=self._warm_up, name="ctx-warm-up", daemon=True).start()

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        self.index.close(collections=False)

    def acting_as(self, principal: Principal) -> Threads:
        """The same threads, on the index as this principal may see it."""
        view = copy(self)
        view.index = self.index.acting_as(principal)
        return view

    async def asked(self, work: Callable[[Index], T]) -> T:
        """A question to the index."""
        return await self._run(partial(self._question, work))

    async def look(self, work: Callable[[Index], T]) -> T:
        """Something short about it."""
        return await self._run(partial(self._present, work))

    async def anyway(self, work: Callable[[Index], T], *, question: bool) -> T:
        """Also where there is no index yet: something may be told before any document is added."""
        return await self._run(partial(self._warmed if question else self._at_once, work))

    async def _run(self, work: Callable[[], T]) -> T:
        from anyio import CapacityLimiter, to_thread

        from research.encoders.base import usable_cores

        if not self._places:
            self._places.append(CapacityLimiter(usable_cores() + _MORE_THAN_CORES))
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._places[0])

    def _question(self, work: Callable[[Index], T]) -> T:
        self._warm.wait()
        return self._present(work)

    def _warmed(self, work: Callable[[Index], T]) -> T:
        self._warm.wait()
        return work(self.index)

    def _at_once(self, work: Callable[[Index], T]) -> T:
        return work(self.index)

    def _present(self, work: Callable[[Index], T]) -> T:
        """An index that was removed is gone, though its open file would go on answering."""
        if not self.index.exists:
            raise self.index.nothing_found()
        return work(self.index)

    def _warm_up(self) -> None:
        """Load what the first question would wait for. What goes wrong is told by the request that meets it."""
        try:
            if self.index.exists and self.index.totals()[1]:
                self.index.prepare()
                self.index.search("warm up", num_results=1)
        except Exception as error:  # noqa: BLE001  a damaged index is told to whoever asks it
            from research.observe.log import log_failure

            log_failure("mcp", "warming up", error)
        finally:
            self._warm.set()
