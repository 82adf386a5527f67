"""One ingest that a server runs: what was asked for, how it stands, and what its process says on the way."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Literal

from research.observe import NAME, in_full, log_failure, logger_of
from research.service.problems import Problem

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


class Follower:
    """Somebody who reads the events of a job. A slow one is not waited for: it is woken, and looks for itself."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.woken = asyncio.Event()

    def wake(self) -> None:
        with suppress(RuntimeError):  # its loop is closed
            self._loop.call_soon_threadsafe(self.woken.set)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def new_id() -> str:
    """Not to be guessed."""
    return uuid.uuid4().hex


@dataclass(eq=False)
class Job:
    """An ingest of some paths. Its runner alone changes it, under the runner's lock.

    `on_begin` and `on_end` are for whoever answers for the files: they must outlast this process, a job does not.
    """

    paths: tuple[Path, ...]
    files: tuple[JobFile, ...] = ()
    folder: str = ""
    on_begin: Callable[[], None] = lambda: None
    on_end: Callable[[Job, State], None] = lambda job, state: None
    id: str = field(default_factory=new_id)
    created_at: str = field(default_factory=now)
    state: State = "queued"
    ended_at: str = ""
    progress: Message = field(default_factory=lambda: {"stage": "", "done": 0, "total": 0})
    note: str = ""
    outcomes: dict[str, Message] = field(default_factory=dict)  # of `files`, by their document's id
    summary: Message | None = None
    problem: Message | None = None
    cancelled: bool = False
    broken: bool = False  # its process ended without a word
    version: int = 0  # counts what happened
    events: deque[tuple[int, str, Message]] = field(default_factory=lambda: deque(maxlen=_KEPT_EVENTS))
    followers: set[Follower] = field(default_factory=set)

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
            "files": [self._file(file) for file in self.files],
            "progress": self.progress,
            "note": self.note,
            "summary": self.summary,
            "problem": self.problem,
            "url": url,
            "events_url": f"{url}/events",
        }

    def _file(self, file: JobFile) -> dict[str, Any]:
        """With what became of it, once that is known."""
        outcome = self.outcomes.get(file.doc_id, {})
        told = {name: outcome[name] for name in _SHOWN if outcome.get(name)}
        return {"name": file.name, "size": file.size, "doc_id": file.doc_id, **told}

    def hear(self, line: bytes) -> None:
        """A message of its process; `ingest.server_job` has what they are."""
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
        self.wake()

    def wake(self) -> None:
        for follower in self.followers:
            follower.wake()

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
        self.broken = True
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
