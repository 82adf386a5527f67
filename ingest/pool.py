"""Reading processes at work: hands out jobs, watches the clock, replaces a process that died.

A process that dies is first of all a process that died: its page is tried again in a fresh one. Only a page on which
two processes ended in the same way is given up, and the rest of its document is read without it.
"""

from __future__ import annotations

import json
import logging
import os
import selectors
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import ingest
from ingest.endings import Ending, ending_of, out_of_time, too_long
from ingest.jobs import NO_SPACE, DocumentFailed, Event, Job, PageFailed, PageOcred, PageStarted, Task, event_of
from ingest.stopwatch import Stopwatch
from research.errors import IndexUnusableError
from research.store.error_hints import FREE_SPACE, RUN_AGAIN

_TRIES = 2  # of a page that a process ended on, before it is given up
_PAGES_GIVEN_UP = 3  # pages of one document that may be given up before the document is
_DEATHS = _TRIES * (_PAGES_GIVEN_UP + 1)  # of processes on one document, on whichever pages
_TICK = 0.25
_SECONDS_TO_END = 10.0  # for a process that has closed its output; writing a core file can take long
_KEPT = 8192  # bytes of what a process said last on stderr

log = logging.getLogger("ctx.ingest")
log.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a process may take: to start, for a page, for a document."""

    start: float
    page: float
    document: float


LIMITS: Mapping[Task, Limits] = {
    "read": Limits(60.0, 30.0, 600.0),
    "draw": Limits(60.0, 30.0, 900.0),
    "ocr": Limits(60.0, 90.0, 7200.0),
}


@dataclass
class _Process:
    handle: subprocess.Popen[bytes]
    job: Job | None = None
    begun: bool = False  # whether it has taken up the job it was given
    page: int = 0
    page_since: float = 0.0
    job_since: float = 0.0
    buffer: bytes = field(default=b"")
    said: bytes = field(default=b"")  # the end of its stderr


class Pool:
    """A few reading processes, started once and kept. Use as a context manager; leaving it ends them."""

    def __init__(self, size: int, limits: Mapping[Task, Limits] = LIMITS) -> None:
        self._size = max(1, size)
        self._limits = limits
        # A limit shorter than a tick is looked at in time, too.
        self._tick = min(_TICK, *(min(each.start, each.page, each.document) for each in limits.values()))
        self._processes: list[_Process] = []
        self._selector = selectors.DefaultSelector()
        self._watch = Stopwatch()

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
            for key, _ in self._selector.select(timeout=self._tick):
                process, stream = key.data
                if process not in self._processes:  # it ended with an event before this one
                    continue
                if stream == "stderr":
                    self._overhear(process)
                else:
                    yield from self._hear(process, waiting)
            self._watch.tick()
            yield from self._check_times(waiting)

    def _hand_out(self, waiting: deque[Job]) -> None:
        while waiting:
            idle = next((process for process in self._processes if process.job is None), None)
            if idle is None:
                if len(self._processes) >= self._size:
                    return
                idle = self._start()
            self._give(idle, waiting.popleft())

    def _give(self, process: _Process, job: Job) -> None:
        now = self._watch.seconds
        process.job, process.begun, process.page, process.page_since, process.job_since = job, False, 0, now, now
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
            if process.job is None:
                continue
            message = json.loads(line)
            if message["event"] == "begun":
                process.begun, process.page_since = True, self._watch.seconds
            else:
                yield self._note(process, _with_cause(event_of(process.job, message)))

    def _overhear(self, process: _Process) -> None:
        """Keep the end of what it says: a library that crashes sometimes says why."""
        stderr = process.handle.stderr
        assert stderr is not None
        data = os.read(stderr.fileno(), 1 << 16)
        if data:
            process.said = (process.said + data)[-_KEPT:]
        else:
            self._selector.unregister(stderr)

    def _note(self, process: _Process, event: Event) -> Event:
        """Keep track of the page in work, and of when the job is over."""
        if isinstance(event, PageStarted):
            process.page, process.page_since = event.page, self._watch.seconds
        elif isinstance(event, PageOcred | PageFailed):
            _log(event)
            number = event.page.number if isinstance(event, PageOcred) else event.page
            left = tuple(page for page in event.job.pages if page != number)
            process.job = replace(event.job, pages=left)  # a second try begins where this one ended
        else:
            process.job = None
        if isinstance(event, DocumentFailed):
            _check_index(event)
            _log(event)
        return event

    def _died(self, process: _Process, waiting: deque[Job]) -> Iterator[Event]:
        job, page = process.job, process.page
        try:
            code: int | None = process.handle.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            code = None
        self._end(process)
        if job is not None:
            yield from self._again(job, page, ending_of(code, job.task, process.said), waiting)

    def _check_times(self, waiting: deque[Job]) -> Iterator[Event]:
        now = self._watch.seconds
        for process in list(self._processes):
            job, page = process.job, process.page
            if job is None:
                continue
            limits = self._limits[job.task]
            if now - process.job_since > limits.document:
                self._end(process)
                ending = too_long(limits.document)
                yield _logged(DocumentFailed(job, ending.code, ending.reason))
            elif now - process.page_since > (limits.page if process.begun else limits.start):
                self._end(process)
                ending = out_of_time(limits.page if process.begun else limits.start, begun=process.begun)
                yield from self._again(job, page, ending, waiting)

    def _again(self, job: Job, page: int, ending: Ending, waiting: deque[Job]) -> Iterator[PageFailed | DocumentFailed]:
        """Try the same page once more; after a second end of the same kind leave it out and try the rest.

        Page 0 stands for a process that ended before any page, perhaps while it was idle. It cannot be left out.
        """
        job = replace(job, deaths=(*job.deaths, (page, ending.code)))
        tries = job.deaths.count((page, ending.code))
        if tries < _TRIES and len(job.deaths) < _DEATHS:
            log.warning("%s, page %d: %s; trying again%s", job.path, page, ending.reason, _below(ending.trace))
            waiting.appendleft(job)
        elif page == 0 or page in job.skip or job.given_up >= _PAGES_GIVEN_UP or len(job.deaths) >= _DEATHS:
            yield _logged(DocumentFailed(job, ending.code, ending.reason, tries, ending.trace))
        else:
            yield _logged(PageFailed(job, page, ending.code, ending.reason, tries, ending.trace))
            left = tuple(number for number in job.pages if number != page)
            without = replace(job, skip=(*job.skip, page), pages=left, given_up=job.given_up + 1)
            waiting.appendleft(replace(without, trouble=(ending.code, ending.reason)))

    def _start(self) -> _Process:
        # -P keeps the folder the user stands in off the module path: it may hold anything, a json.py too.
        home = str(Path(ingest.__file__).parent.parent)
        environment = {**os.environ, "PYTHONPATH": home, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        handle = subprocess.Popen(
            [sys.executable, "-P", "-X", "faulthandler", "-m", "ingest.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        process = _Process(handle)
        self._processes.append(process)
        assert handle.stdout is not None
        assert handle.stderr is not None
        self._selector.register(handle.stdout, selectors.EVENT_READ, (process, "stdout"))
        self._selector.register(handle.stderr, selectors.EVENT_READ, (process, "stderr"))
        return process

    def _end(self, process: _Process) -> None:
        stdin, stdout, stderr = process.handle.stdin, process.handle.stdout, process.handle.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        process.handle.kill()
        process.handle.wait()
        process.said = (process.said + _rest(stderr.fileno()))[-_KEPT:]
        for stream in (stdout, stderr):
            if stream in self._selector.get_map():
                self._selector.unregister(stream)
            stream.close()
        try:
            stdin.close()
        except BrokenPipeError:
            process.buffer = b""  # an unsent job went down with it
        self._processes.remove(process)


def _rest(descriptor: int) -> bytes:
    """What is left in a pipe whose writer has ended, without waiting for others that may hold it open."""
    os.set_blocking(descriptor, False)
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""


def _logged(event: PageFailed | DocumentFailed) -> PageFailed | DocumentFailed:
    _log(event)
    return event


def _log(event: Event) -> None:
    if isinstance(event, PageFailed):
        log.error("%s, page %d: %s%s", event.job.path, event.page, event.reason, _below(event.trace))
    elif isinstance(event, DocumentFailed):
        log.error("%s: %s%s", event.job.path, event.reason, _below(event.trace))


def _below(trace: str) -> str:
    return f"\n{trace.rstrip()}" if trace else ""


def _with_cause(event: Event) -> Event:
    """A document of which nothing is left without the pages that hung is not damaged: it hung."""
    if isinstance(event, DocumentFailed) and event.code == "damaged" and event.job.trouble[0]:
        code, reason = event.job.trouble
        return replace(event, code=code, reason=reason, tries=_TRIES)
    return event


def _check_index(event: DocumentFailed) -> None:
    """Raise if it was not the document's fault: the next would fail like it."""
    if event.code == NO_SPACE:
        raise IndexUnusableError(f"the index cannot be written: {event.reason}", hint=FREE_SPACE)
    if event.job.task != "ocr" and not event.job.spool.parent.is_dir():
        raise IndexUnusableError("the index folder was removed while it was written", hint=RUN_AGAIN)
