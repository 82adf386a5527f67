"""Ingests that a server runs: one at a time, each in a process of its own; the others stand in line.

The index has one writer, so more at once would only wait for each other. Jobs live in memory; what must outlast the
server (a file that was uploaded) lies on disk, and whoever answers for it hears how its job ends.
Used from any thread. Nothing here knows the package `ingest`: the command line hands in what starts its process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import threading
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Literal

from research.errors import NothingFoundError
from research.observe import NAME, in_full, log_failure, logger_of
from research.service.problems import Problem, refused
from research.text import one_line

State = Literal["queued", "running", "done", "failed", "interrupted", "cancelled"]
Message = dict[str, Any]

ADDRESS = "/api/ingest"

_KEPT_EVENTS = 200  # for readers that are slow
_SHOWN = ("result", "code", "reason")

log = logger_of("service")


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file of a job. `doc_id`: the id its document will have, and the name of the folder it lies in."""

    name: str
    size: int
    doc_id: str


def place_below(text: str, roots: Sequence[Path]) -> Path:
    """Find the file or folder that a path means below one of these roots, with every link followed; an absolute one
    stays what it is when it is joined. Of what lies outside nobody learns whether it exists."""
    hint = f"Allowed folders: {', '.join(one_line(str(root)) for root in roots)}"
    if not roots:
        hint = "start the server with: ctx serve --allow-ingest --root DIR; or send the files"
    inside = []
    for root in map(os.path.realpath, roots):
        with suppress(OSError, RuntimeError, ValueError):  # no such home, a loop of links, no path at all
            place = Path(os.path.realpath(Path(root) / Path(text).expanduser()))
            if place.is_relative_to(root):
                inside.append(place)
    if not inside:
        raise refused(Problem(403, "This may not be ingested", "it is not in a folder that may be added", hint))
    there = next((place for place in inside if os.path.exists(place)), None)  # noqa: PTH110  exists() raises for some
    if there is None:
        raise NothingFoundError("there is no file or folder of that name below the roots", hint=hint)
    return there


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(eq=False)
class Job:
    """An ingest of some paths, which its runner alone changes, under its lock. `on_end` is for whoever answers
    for the files: they must outlast this process, a job does not."""

    paths: tuple[Path, ...]
    files: tuple[JobFile, ...] = ()
    folder: str = ""
    on_end: Callable[[Job, State], None] = lambda job, state: None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)  # not to be guessed
    created_at: str = field(default_factory=now)
    state: State = "queued"
    ended_at: str = ""
    progress: Message = field(default_factory=lambda: {"stage": "", "done": 0, "total": 0})
    note: str = ""
    outcomes: dict[str, Message] = field(default_factory=dict)  # of `files`, by their document's id
    summary: Message | None = None
    problem: Message | None = None
    cancelled: bool = False
    version: int = 0  # counts what happened
    events: deque[tuple[int, str, Message]] = field(default_factory=lambda: deque(maxlen=_KEPT_EVENTS))

    @property
    def ended(self) -> bool:
        return self.state not in ("queued", "running")

    def to_dict(self) -> dict[str, Any]:
        url = f"{ADDRESS}/{self.id}"
        return {
            "id": self.id,
            "state": self.state,
            "created_at": self.created_at,
            "ended_at": self.ended_at,
            "folder": self.folder,
            "files": [asdict(file) | self._outcome(file) for file in self.files],
            "progress": self.progress,
            "note": self.note,
            "summary": self.summary,
            "problem": self.problem,
            "url": url,
            "events_url": f"{url}/events",
        }

    def _outcome(self, file: JobFile) -> dict[str, Any]:
        """What became of a file, once that is known."""
        outcome = self.outcomes.get(file.doc_id, {})
        return {name: outcome[name] for name in _SHOWN if outcome.get(name)}

    def hear(self, line: bytes) -> None:
        """Take in a message of its process; `ingest.server_job` has what they are."""
        try:
            message = json.loads(line)
            self._take(message.pop("event"), message)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log_failure("service", "a message of an ingest", error)

    def _take(self, event: str, message: Message) -> None:
        if event == "progress":
            self.progress = message
            self.tell(event, {"state": self.state, **message})
        elif event == "file":
            folder = PurePath(message["source_path"]).parent.name
            if any(file.doc_id == folder for file in self.files):
                self.outcomes[folder] = message
            self.tell(event, message)
        elif event in ("note", "page"):
            self.note = message.get("message", self.note)
            self.tell(event, message)
        elif event == "done":
            self.summary = message["summary"]
        elif event == "failed":
            self.problem = _problem(message)
        elif event == "log":
            _log(message)

    def tell(self, event: str, data: Message) -> None:
        self.version += 1
        self.events.append((self.version, event, data))

    def since(self, version: int) -> list[tuple[str, Message]]:
        """What happened after a version; of progress the last alone."""
        new = [(name, data) for number, name, data in self.events if number > version]
        last = max((place for place, (name, _) in enumerate(new) if name == "progress"), default=-1)
        return [event for place, event in enumerate(new) if event[0] != "progress" or place == last]

    def verdict(self, code: int, *, stopping: bool) -> State:
        """How it ended, once its process has, with this exit code."""
        stopped: State = "cancelled" if self.cancelled else "interrupted"
        if self.problem is not None:
            return "failed"
        if self.summary is not None:
            return stopped if self.summary["interrupted"] else "done"
        if self.cancelled or stopping:  # it was killed for that, or had not begun
            return stopped
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        log.error("the process of an ingest %s", how)
        hint = "what it had finished is kept; start it again and it goes on there"
        self.problem = Problem(500, "The ingest broke off", f"its process {how}", hint, "ingest-broken").to_dict()
        return "failed"


def _problem(message: Message) -> dict[str, Any]:
    """What stopped an ingest, in its own words."""
    status, kind = {"NothingFoundError": (404, "nothing-found"), "internal": (500, "internal")}.get(
        message["kind"], (503, "ingest-failed")
    )
    return Problem(status, "The ingest failed", message["error"], message["hint"], kind).to_dict()


def _log(message: Message) -> None:
    """A record of the process, for the log of the server."""
    name = str(message["logger"])
    if name.startswith(f"{NAME}."):
        extra = in_full(str(message["full"]))
        logging.getLogger(name).log(int(message["level"]), "%s", message["message"], extra=extra)


StartJob = Callable[[Sequence[Path]], "subprocess.Popen[bytes]"]

_KEPT = 100  # jobs that are remembered
_LOOK_SECONDS = 0.1  # between a reader's looks at a job
_ALIVE_SECONDS = 15.0  # a sign of life for proxies
_SECONDS_TO_CANCEL = 30.0  # until a job that was cancelled is killed
_SECONDS_TO_DIE = 2.0  # of a process that was killed
_RETRY_SECONDS = 30


class JobRunner:
    """`start` begins the process of an ingest of these paths: `ingest.server_job.start_job`, bound to an index."""

    def __init__(self, start: StartJob, *, most_waiting: int = 20) -> None:
        self._start = start
        self._most_waiting = most_waiting
        self._changed = threading.Condition()
        self._jobs: dict[str, Job] = {}  # oldest first
        self._reserved = 0
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None  # of the job in work
        self._killer: threading.Timer | None = None  # of that process, once it was asked to end
        self._stopping = False

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep a place in the line while an upload comes in, so that nobody sends a gigabyte to be refused then."""
        with self._changed:
            self._check_room()
            self._reserved += 1
        try:
            yield
        finally:
            with self._changed:
                self._reserved -= 1

    def submit(self, job: Job, *, reserved: bool = False) -> Job:
        """Put a job in line. Raises ProblemError if the line is full, unless a place was `reserved`, or if the server
        stops."""
        with self._changed:
            if self._stopping or not reserved:
                self._check_room()
            self._jobs[job.id] = job
            ended = [each.id for each in self._jobs.values() if each.ended]
            for old in ended[: max(0, len(self._jobs) - _KEPT)]:
                del self._jobs[old]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="ctx-ingest", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return job

    def get(self, job_id: str) -> Job:
        with self._changed:
            job = self._jobs.get(job_id)
        if job is None:
            hint = f"GET {ADDRESS} lists the last {_KEPT}; a restart forgets them"
            raise refused(Problem(404, "There is no such job", hint=hint))
        return job

    def document(self, job: Job) -> dict[str, Any]:
        """Show a job as it stands at one moment."""
        with self._changed:
            return job.to_dict()

    def documents(self) -> list[dict[str, Any]]:
        """Show all that are remembered, the newest first."""
        with self._changed:
            return [job.to_dict() for job in reversed(self._jobs.values())]

    @contextmanager
    def unread(self, doc_id: str, besides: Job | None = None) -> Iterator[bool]:
        """Whether no other job will read this document's file or reads it; that stays so within the block."""
        with self._changed:
            jobs = (job for job in self._jobs.values() if not job.ended and job is not besides)
            yield all(file.doc_id != doc_id for job in jobs for file in job.files)

    def cancel(self, job_id: str) -> Job:
        """End a job in good order: what is committed stays. One that has ended stays as it is."""
        job = self.get(job_id)
        with self._changed:
            if job.ended or job.cancelled:
                return job
            job.cancelled = True
            if job.state == "running":
                self._end_process()
                return job
        self._end(job, "cancelled")
        return job

    async def follow(self, job_id: str) -> AsyncGenerator[tuple[str, Message] | None]:
        """The events of a job: `job` first, as it stands; `progress`, `file`, `page` and `note`; `done` last. None is a
        sign of life. A reader that is far behind misses old events, and of progress all but the latest. Ends without
        `done` if the server stops first."""
        job = self.get(job_id)
        with self._changed:
            seen, document = job.version, job.to_dict()
        yield "job", document
        silent = 0.0
        while True:
            with self._changed:
                new, seen, stopping = job.since(seen), job.version, self._stopping
                document = job.to_dict() if job.ended else {}
            for event in new:
                yield event
            if document:
                yield "done", document
            if document or stopping:
                return
            silent = 0.0 if new else silent + _LOOK_SECONDS
            if silent >= _ALIVE_SECONDS:
                silent = 0.0
                yield None
            await asyncio.sleep(_LOOK_SECONDS)

    def begin_stop(self) -> None:
        """Let nothing new begin, end streams, ask the job in work to end. Does not wait."""
        with self._changed:
            if self._stopping:
                return
            self._stopping = True
            self._end_process()
            self._changed.notify_all()
            waiting = self._waiting()
        for job in waiting:
            self._end(job, "interrupted")

    def stop(self, seconds: float) -> None:
        """Stop and wait; after this time the process is killed. What it has committed stays either way."""
        self.begin_stop()
        if self._thread is None:
            return
        self._thread.join(seconds)
        with self._changed:
            late = self._process
        if late is not None:
            late.kill()
            self._thread.join(_SECONDS_TO_DIE)

    def _waiting(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.state == "queued" and not job.cancelled]

    def _check_room(self) -> None:
        retry = {"Retry-After": str(_RETRY_SECONDS)}
        if self._stopping:
            raise refused(Problem(503, "The server is stopping", headers=retry))
        if len(self._waiting()) + self._reserved >= self._most_waiting:
            hint = f"try again in {_RETRY_SECONDS} seconds"
            why = "too many ingests wait already"
            raise refused(Problem(429, "Too many ingests at once", why, hint, headers=retry))

    def _work(self) -> None:
        """The thread of all jobs. It lives as long as they do: a process dies with the thread that started it."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting() or self._stopping)
                if self._stopping:
                    return
                job = self._waiting()[0]
                job.state = "running"
                job.tell("progress", {"state": job.state, **job.progress})
            try:
                state = self._run(job)
            except Exception as error:  # noqa: BLE001  the next job must not suffer from it
                log_failure("service", "an ingest", error)
                state = "failed"
                job.problem = Problem(500, "The ingest failed", hint="the server's log says where").to_dict()
            self._end(job, state)

    def _run(self, job: Job) -> State:
        try:
            process = self._start(job.paths)
        except OSError as error:
            hint = "see that the machine has memory and processes left, and try again"
            job.problem = Problem(503, "The ingest cannot start", error.strerror or "", hint).to_dict()
            return "failed"
        with self._changed:
            self._process = process
            if job.cancelled or self._stopping:
                self._end_process()
        assert process.stdout is not None
        with process.stdout as messages:
            for line in messages:
                with self._changed:
                    job.hear(line)
        code = process.wait()
        with self._changed:
            if self._killer is not None:
                self._killer.cancel()
            self._process = self._killer = None
            return job.verdict(code, stopping=self._stopping)

    def _end(self, job: Job, state: State) -> None:
        """Whoever answers for its files comes first: once a job is seen to have ended, all is in its place."""
        try:
            job.on_end(job, state)
        except Exception as error:  # noqa: BLE001  files that are not settled wait for the next start
            log_failure("service", "the end of an ingest", error)
        with self._changed:
            job.state, job.ended_at = state, now()

    def _end_process(self) -> None:
        """Under the lock: ask the process to end, once; a second time would end it at once. One that does not hear is
        killed later."""
        if self._process is not None and self._killer is None:
            self._process.terminate()
            self._killer = threading.Timer(_SECONDS_TO_CANCEL, self._process.kill)
            self._killer.daemon = True
            self._killer.start()
