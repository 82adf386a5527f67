"""Reading processes at work: hands out jobs, watches the clock, replaces a process that died and tells how it ended.

A process that dies is first of all a process that died: its page is tried again in a fresh one. Only a page on which
two processes ended in the same way is given up, and the rest of its document is read without it.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import IO

from ingest.jobs import A_BUG, NO_SPACE, Event, Failed, Job, PageOcrDone, PageStarted, Task, event_of
from research.errors import FREE_SPACE, RUN_AGAIN, IndexUnusableError
from research.observe import in_full, logger_of
from research.process import start_helper
from research.store import ledger

_TRIES = 2  # of a page that a process ended on, before it is given up
_PAGES_GIVEN_UP = 3  # pages of one document that may be given up before the document is
_MAX_FAILED_ATTEMPTS = _TRIES * (_PAGES_GIVEN_UP + 1)  # of processes on one document, on whichever pages
_TICK = 0.25
_SECONDS_TO_END = 10.0  # for a process that has closed its output; writing a core file can take long
_KEPT = 8192  # bytes of what a process said last on stderr
# Ticks come several times a second. A longer gap is time in which nobody watched: the whole command was stopped
# (Ctrl-Z), or whoever takes the pages was busy, and the process watched may have been stopped or kept waiting too.
_LONGEST_TICK = 1.0
# What a process does to itself by a mistake in its machine code; every other signal was sent by somebody.
_CRASHES = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS"}

log = logger_of("ingest")


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a process may take: to start, for a page, for a document."""

    start: float
    page: float
    document: float


LIMITS: Mapping[Task, Limits] = {
    "read": Limits(60.0, 30.0, 600.0),
    "render": Limits(60.0, 30.0, 900.0),
    "ocr": Limits(60.0, 90.0, 7200.0),
    "code": Limits(60.0, 60.0, 30.0),
}


@dataclass
class _Process:
    handle: subprocess.Popen[bytes]
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    job: Job | None = None
    started: bool = False  # whether it has taken up the job it was given
    page: int = 0
    page_since: float = 0.0
    job_since: float = 0.0
    buffer: bytes = field(default=b"")
    stderr_tail: bytes = field(default=b"")  # the end of its stderr


class Pool:
    """A few reading processes, started once and kept. Use as a context manager; leaving it ends them."""

    def __init__(
        self, size: int, limits: Mapping[Task, Limits] = LIMITS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._size = max(1, size)
        self._limits = limits
        # A limit shorter than a tick is looked at in time, too.
        self._tick = min(_TICK, *(min(each.start, each.page, each.document) for each in limits.values()))
        self._processes: list[_Process] = []
        self._selector = selectors.DefaultSelector()
        self._clock = _Stopwatch(clock)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for process in list(self._processes):
            self._kill(process)
        self._selector.close()

    def run(self, jobs: Iterable[Job]) -> Iterator[Event]:
        """Work through the jobs; events of different documents come mixed."""
        waiting = deque(jobs)
        self._clock.tick()  # what passed since the jobs before is not the time of these
        while waiting or any(process.job for process in self._processes):
            self._assign_waiting(waiting)
            for key, _ in self._selector.select(timeout=self._tick):
                process, on_data = key.data
                if process in self._processes:  # it may have ended with an event before this one
                    yield from on_data(process, waiting)
            self._clock.tick()
            yield from self._check_timeouts(waiting)

    def _assign_waiting(self, waiting: deque[Job]) -> None:
        while waiting:
            idle = next((process for process in self._processes if process.job is None), None)
            if idle is None:
                if len(self._processes) >= self._size:
                    return
                idle = self._start()
            self._assign(idle, waiting.popleft())

    def _assign(self, process: _Process, job: Job) -> None:
        now = self._clock.seconds
        process.job, process.started, process.page, process.page_since, process.job_since = job, False, 0, now, now
        try:
            process.stdin.write(job.to_json().encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return  # it died while idle; _on_output sees the end of its output and says so

    def _on_output(self, process: _Process, waiting: deque[Job]) -> Iterator[Event]:
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            yield from self._on_exit(process, waiting)
            return
        *lines, process.buffer = (process.buffer + data).split(b"\n")
        for line in lines:
            if process.job is None:
                continue
            message = json.loads(line)
            if message["event"] == "started":
                process.started, process.page_since = True, self._clock.seconds
            else:
                yield self._track(process, _with_cause(event_of(process.job, message)))

    def _on_stderr(self, process: _Process, _: deque[Job]) -> tuple[()]:
        """Keep the end of what it says: a library that crashes sometimes says why."""
        data = os.read(process.stderr.fileno(), 1 << 16)
        if data:
            process.stderr_tail = (process.stderr_tail + data)[-_KEPT:]
        else:
            self._selector.unregister(process.stderr)
        return ()

    def _track(self, process: _Process, event: Event) -> Event:
        """Keep track of the page in work, and of when the job is over."""
        if isinstance(event, PageStarted):
            process.page, process.page_since = event.page, self._clock.seconds
        elif isinstance(event, PageOcrDone | Failed) and event.page:
            number = event.page.number if isinstance(event, PageOcrDone) else event.page
            left = tuple(page for page in event.job.pages if page != number)
            process.job = replace(event.job, pages=left)  # a second try begins where this one ended
        else:
            process.job = None
        if isinstance(event, Failed):
            if not event.page:
                _check_index(event)
            _log(event, event.trace)
        return event

    def _on_exit(self, process: _Process, waiting: deque[Job]) -> Iterator[Event]:
        job, page = process.job, process.page
        try:
            code: int | None = process.handle.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            code = None
        self._kill(process)
        if job is not None:
            yield from self._retry_or_give_up(job, page, _exit_reason(code, job.task, process.stderr_tail), waiting)

    def _check_timeouts(self, waiting: deque[Job]) -> Iterator[Event]:
        now = self._clock.seconds
        for process in list(self._processes):
            job, page = process.job, process.page
            if job is None:
                continue
            limits = self._limits[job.task]
            seconds = limits.page if process.started else limits.start
            if now - process.job_since > limits.document:
                self._kill(process)
                reason = f"reading it took more than {limits.document:g} seconds"
                yield _log(Failed(job, ledger.WHOLE, ledger.TIMEOUT, reason))
            elif now - process.page_since > seconds:
                self._kill(process)
                yield from self._retry_or_give_up(job, page, _page_timeout(seconds, started=process.started), waiting)

    def _retry_or_give_up(self, job: Job, page: int, why: _ExitReason, waiting: deque[Job]) -> Iterator[Failed]:
        """Try the same page once more; after a second end of the same kind leave it out and try the rest.

        Page 0 stands for a process that ended before any page, perhaps while it was idle. It cannot be left out.
        """
        job = replace(job, failed_attempts=(*job.failed_attempts, (page, why.code)))
        tries = job.failed_attempts.count((page, why.code))
        hopeless = len(job.failed_attempts) >= _MAX_FAILED_ATTEMPTS
        if tries < _TRIES and not hopeless:
            full = f"{job.path}, page {page}: {why.reason}; trying again{_trace_below(why.trace)}"
            log.warning("%s, page %d: %s; trying again", job.path, page, why.code, extra=in_full(full))
            waiting.appendleft(job)
        elif page == 0 or page in job.skip_pages or job.given_up >= _PAGES_GIVEN_UP or hopeless:
            yield _log(Failed(job, ledger.WHOLE, why.code, why.reason, tries, why.trace))
        else:
            yield _log(Failed(job, page, why.code, why.reason, tries, why.trace))
            left = tuple(number for number in job.pages if number != page)
            without = replace(job, skip_pages=(*job.skip_pages, page), pages=left, given_up=job.given_up + 1)
            waiting.appendleft(replace(without, last_failure=(why.code, why.reason)))

    def _start(self) -> _Process:
        handle = start_helper(
            "ingest.worker",
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            environment={"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        )
        assert handle.stdin is not None
        assert handle.stdout is not None
        assert handle.stderr is not None
        process = _Process(handle, handle.stdin, handle.stdout, handle.stderr)
        self._processes.append(process)
        self._selector.register(process.stdout, selectors.EVENT_READ, (process, self._on_output))
        self._selector.register(process.stderr, selectors.EVENT_READ, (process, self._on_stderr))
        return process

    def _kill(self, process: _Process) -> None:
        process.handle.kill()
        process.handle.wait()
        process.stderr_tail = (process.stderr_tail + _drain(process.stderr.fileno()))[-_KEPT:]
        for stream in (process.stdout, process.stderr):
            if stream in self._selector.get_map():
                self._selector.unregister(stream)
            stream.close()
        try:
            process.stdin.close()
        except BrokenPipeError:
            process.buffer = b""  # an unsent job went down with it
        self._processes.remove(process)


def _drain(descriptor: int) -> bytes:
    """What is left in a pipe whose writer has ended, without waiting for others that may hold it open."""
    os.set_blocking(descriptor, False)
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""


def _log(event: Failed, frames: str = "") -> Failed:
    """Log a failure. `frames` of its trace may be told; what a process that ended said last may quote the document."""
    where = f"{event.job.path}, page {event.page}" if event.page else str(event.job.path)
    full = f"{where}: {event.reason}{_trace_below(event.trace)}"
    log.error("%s: given up: %s%s", where, event.code, _trace_below(frames), extra=in_full(full))
    return event


def _trace_below(trace: str) -> str:
    return f"\n{trace.rstrip()}" if trace else ""


def _with_cause(event: Event) -> Event:
    """A document of which nothing is left without the pages that hung is not damaged: it hung."""
    if isinstance(event, Failed) and event.code == "damaged" and event.job.last_failure[0]:
        code, reason = event.job.last_failure
        return replace(event, code=code, reason=reason, tries=_TRIES)
    return event


def _check_index(event: Failed) -> None:
    """Raise if it was not the document's fault: the next would fail like it."""
    if event.code == NO_SPACE:
        raise IndexUnusableError(f"the index cannot be written: {event.reason}", hint=FREE_SPACE)
    if event.job.task != "ocr" and not event.job.output.parent.is_dir():
        raise IndexUnusableError("the index folder was removed while it was written", hint=RUN_AGAIN)


class _Stopwatch:
    """Goes on with every tick, by the time since the last one or by a second, whichever is less."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._last = clock()

    def tick(self) -> None:
        now = self._clock()
        self.seconds += min(now - self._last, _LONGEST_TICK)
        self._last = now


@dataclass(frozen=True, slots=True)
class _ExitReason:
    """`code` as in store.catalog.failures; `trace`: what the process said last, where it may tell the cause."""

    code: str
    reason: str
    trace: str = ""


def _exit_reason(returncode: int | None, task: Task, said: bytes) -> _ExitReason:
    """Of a process that ended by itself or by a signal; None if it could not even end."""
    trace = said.decode("utf-8", "replace").strip()
    if returncode is not None and returncode >= 0:
        reason = f"{A_BUG}: the reading process ended with exit code {returncode}"
        return _ExitReason(ledger.INTERNAL, reason, trace)
    name = _signal_name(-returncode) if returncode is not None else "it hung while ending"
    if returncode is None or name in _CRASHES:
        library = {"ocr": "OCR engine", "code": "parser"}.get(task, "PDF library")
        return _ExitReason(ledger.CRASHED, f"the {library} crashed on it ({name})", trace)
    return _ExitReason(ledger.KILLED, f"the reading process was killed ({name})")


def _page_timeout(seconds: float, *, started: bool) -> _ExitReason:
    if not started:  # nothing of the document has been touched
        return _ExitReason(ledger.KILLED, f"the reading process did not start within {seconds:g} seconds")
    return _ExitReason(ledger.TIMEOUT, f"a page took more than {seconds:g} seconds")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
