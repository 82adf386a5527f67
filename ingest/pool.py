"""Reading processes at work: hands out jobs, watches the clock, replaces a process that died."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import ingest
from ingest.jobs import NO_SPACE, DocumentFailed, Event, Job, PageFailed, PageOcred, PageStarted, Task, event_of
from research.errors import IndexUnusableError
from research.store.trouble import FREE_SPACE, RUN_AGAIN

_SECONDS_A_PAGE: dict[Task, float] = {"read": 30.0, "draw": 30.0, "ocr": 90.0}
_SECONDS_A_DOCUMENT: dict[Task, float] = {"read": 600.0, "draw": 900.0, "ocr": 7200.0}
_PAGES_GIVEN_UP = 3  # pages of one document that may hang before the document is given up
_TICK = 0.25


@dataclass
class _Process:
    handle: subprocess.Popen[bytes]
    job: Job | None = None
    page: int = 0
    page_since: float = 0.0
    job_since: float = 0.0
    buffer: bytes = field(default=b"")


class Pool:
    """A few reading processes, started once and kept. Use as a context manager; leaving it ends them."""

    def __init__(self, size: int) -> None:
        self._size = max(1, size)
        self._processes: list[_Process] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for process in list(self._processes):
            self._end(process)
        self._selector.close()

    def read(self, jobs: Iterable[Job]) -> Iterator[Event]:
        """Work through the jobs; events of different documents come mixed."""
        waiting = deque(jobs)
        while waiting or any(process.job for process in self._processes):
            self._hand_out(waiting)
            for key, _ in self._selector.select(timeout=_TICK):
                yield from self._hear(key.data, waiting)
            yield from self._watch(waiting)

    def _hand_out(self, waiting: deque[Job]) -> None:
        while waiting:
            idle = next((process for process in self._processes if process.job is None), None)
            if idle is None:
                if len(self._processes) >= self._size:
                    return
                idle = self._start()
            self._give(idle, waiting.popleft())

    def _give(self, process: _Process, job: Job) -> None:
        now = time.monotonic()
        process.job, process.page, process.page_since, process.job_since = job, 0, now, now
        stdin = process.handle.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(job.message()).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            return  # it died while idle; _hear sees the end of its output and says so

    def _hear(self, process: _Process, waiting: deque[Job]) -> Iterator[Event]:
        stdout = process.handle.stdout
        assert stdout is not None
        data = os.read(stdout.fileno(), 1 << 16)
        if not data:
            yield from self._died(process, waiting)
            return
        *lines, process.buffer = (process.buffer + data).split(b"\n")
        for line in lines:
            if process.job is not None:
                yield self._note(process, _with_cause(event_of(process.job, json.loads(line))))

    def _note(self, process: _Process, event: Event) -> Event:
        """Keep track of the page in work, and of when the job is over."""
        if isinstance(event, PageStarted):
            process.page, process.page_since = event.page, time.monotonic()
        elif not isinstance(event, PageOcred | PageFailed):
            process.job = None
        if isinstance(event, DocumentFailed):
            _check_index(event)
        return event

    def _died(self, process: _Process, waiting: deque[Job]) -> Iterator[Event]:
        job, page = process.job, process.page
        self._end(process)
        if job is not None:
            yield from self._retry(job, page, "crashed", "the PDF library crashed on it", waiting)

    def _watch(self, waiting: deque[Job]) -> Iterator[Event]:
        now = time.monotonic()
        for process in list(self._processes):
            job = process.job
            if job is None:
                continue
            whole, one = _SECONDS_A_DOCUMENT[job.task], _SECONDS_A_PAGE[job.task]
            if now - process.job_since > whole:
                self._end(process)
                yield DocumentFailed(job, "timeout", f"reading it took more than {int(whole)} seconds")
            elif now - process.page_since > one:
                page = process.page
                self._end(process)
                reason = f"a page took more than {int(one)} seconds"
                yield from self._retry(job, page, "timeout", reason, waiting)

    def _retry(self, job: Job, page: int, code: str, reason: str, waiting: deque[Job]) -> Iterator[DocumentFailed]:
        """Leave out the page that broke the reader and try the rest; give up after a few such pages.

        Page 0 stands for a process that died before any page, perhaps while it was idle: that is tried once more.
        """
        hopeless = page == 0 and code == "timeout"
        if hopeless or page in job.skip or len(job.skip) >= _PAGES_GIVEN_UP:
            yield DocumentFailed(job, code, reason)
        else:
            waiting.appendleft(replace(job, skip=(*job.skip, page), trouble=(code, reason)))

    def _start(self) -> _Process:
        # -P keeps the folder the user stands in off the module path: it may hold anything, a json.py too.
        home = str(Path(ingest.__file__).parent.parent)
        environment = {**os.environ, "PYTHONPATH": home, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        handle = subprocess.Popen(
            [sys.executable, "-P", "-m", "ingest.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        process = _Process(handle)
        self._processes.append(process)
        assert handle.stdout is not None
        self._selector.register(handle.stdout, selectors.EVENT_READ, process)
        return process

    def _end(self, process: _Process) -> None:
        stdin, stdout = process.handle.stdin, process.handle.stdout
        assert stdin is not None
        assert stdout is not None
        self._selector.unregister(stdout)
        process.handle.kill()
        process.handle.wait()
        try:
            stdin.close()
        except BrokenPipeError:
            process.buffer = b""  # an unsent job went down with it
        stdout.close()
        self._processes.remove(process)


def _with_cause(event: Event) -> Event:
    """A document of which nothing is left without the pages that hung is not damaged: it hung."""
    if isinstance(event, DocumentFailed) and event.code == "damaged" and event.job.trouble[0]:
        code, reason = event.job.trouble
        return replace(event, code=code, reason=reason)
    return event


def _check_index(event: DocumentFailed) -> None:
    """Raise if it was not the document's fault: the next would fail like it."""
    if event.code == NO_SPACE:
        raise IndexUnusableError(f"the index cannot be written: {event.reason}", hint=FREE_SPACE)
    if event.job.task != "ocr" and not event.job.spool.parent.is_dir():
        raise IndexUnusableError("the index folder was removed while it was written", hint=RUN_AGAIN)
