"""How a server was started: where it listens, whom it lets in, and what it does at most.

Turns: so many questions are in work at once, so many wait, and the rest are told to come again.

Work runs in threads, of which there are as many as places: more would only take the cores from each other. A question
that takes too long is answered with a time-out; its place is free again when its thread is through, not before, so
that a hundred hopeless questions never run at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import TypeVar

from research.encoders import usable_cores
from research.errors import ProblemError
from research.parallel import Workers
from research.service.problems import Problem, refused

_KIB, _MIB = 1024, 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What is done and kept at most; beyond it a request is refused with a status that says so."""

    questions: int = field(default_factory=lambda: max(2, usable_cores()))  # in work at once: more would only wait
    waiting: int = 64  # questions that wait for their turn
    wait_seconds: float = 30.0  # and how long
    question_seconds: float = 60.0  # from its turn to its answer; one that a model writes has the model's own time
    body_bytes: int = 1 * _MIB  # of a request that is no upload
    body_seconds: float = 30.0  # for all of such a body
    idle_body_seconds: float = 20.0  # for the next piece of any body
    upload_bytes: int = 512 * _MIB  # of one request
    upload_files: int = 100
    upload_seconds: float = 3600.0
    header_bytes: int = 32 * _KIB
    header_seconds: float = 10.0  # from the connection to the end of the headers
    connections: int = 512
    jobs: int = 20  # ingests that wait for their turn
    stop_seconds: float = 10.0  # from the signal to the end


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the command line says of a server. It listens on this machine's loopback or a socket file, never wider."""

    port: int = 0  # 0: any free one
    socket: Path | None = None  # instead of a port
    token_file: Path | None = None  # None: the default in the user's state folder
    token_needed: bool = True
    allow_ingest: bool = False
    roots: tuple[Path, ...] = ()  # folders that may be ingested
    hosts: tuple[str, ...] = ()  # names beside those of loopback: of a proxy that stands before it
    cors_origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)


T = TypeVar("T")


class Turnstile:
    """Lets questions through in the order in which they came. Of one event loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._places = asyncio.Semaphore(limits.questions)
        self._workers = Workers("ctx-question", limits.questions)  # what hangs keeps its place
        self._closed = False
        self.waiting = 0
        self.working = 0

    async def run(self, work: Callable[[], T], seconds: float | None = None) -> T:
        """What `work` gives, in a thread of its own turn. Raises ProblemError if there is no room, or no time."""
        if self.waiting >= self._limits.waiting and self._places.locked():
            raise self._come_again("too many questions wait already")
        self.waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                await self._places.acquire()
        except TimeoutError:
            raise self._come_again("no question before this one has ended in time") from None
        finally:
            self.waiting -= 1
        return await self._in_thread(work, self._limits.question_seconds if seconds is None else seconds)

    def close(self) -> None:
        """Nothing more begins. What runs is not waited for: a thread cannot be stopped."""
        self._closed = True

    async def _in_thread(self, work: Callable[[], T], seconds: float) -> T:
        self.working += 1
        if self._closed:
            self._leave()
            raise refused(Problem(503, "The server is stopping"))
        loop = asyncio.get_running_loop()
        call = self._workers.start(work)
        call.when_done(lambda: loop.call_soon_threadsafe(self._leave))
        outcome = await call.outcome(seconds)
        if outcome.late:
            raise refused(
                Problem(
                    504,
                    "The question took too long",
                    f"it had no answer after {seconds:g} seconds",
                    "ask for fewer results, or restrict it to some documents",
                )
            )
        return outcome.result()

    def _leave(self) -> None:
        self.working -= 1
        self._places.release()

    def _come_again(self, why: str) -> ProblemError:
        seconds = ceil(1 + self.waiting / (2 * self._limits.questions))
        headers = {"Retry-After": str(seconds)}
        return refused(
            Problem(429, "Too many questions at once", why, f"try again in {seconds} seconds", headers=headers)
        )
