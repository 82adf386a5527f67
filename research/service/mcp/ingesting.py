"""ingest: documents are added by a process of its own, which says on the way how far it is.

What starts it is handed in, for this package knows nothing of `ingest`. Only what lies under a folder that was allowed
at the start can be added, wherever links lead; of anything else nobody learns whether it exists.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.errors import BusyError, CtxError, IndexUnusableError, NothingFoundError, UsageError
from research.parameters import shown
from research.service.mcp.budget import Budget, Reply, longest
from research.text import one_line

StartIngest = Callable[[Sequence[Path]], "subprocess.Popen[bytes]"]
"""Starts the process of one ingest; `ingest.server_job` has what it says. It dies with the thread that started it."""

Tell = Callable[[str], None]

_MAX_TOKENS = 2000
_STAGES = {
    "wait": "waiting for another ingest to end",
    "read": "reading",
    "embed": "embedding",
    "render": "drawing pages",
    "ocr": "reading scans",
    "visual": "looking at pages",
    "publish": "publishing",
}


@dataclass(frozen=True, slots=True)
class IngestDoor:
    """What may be added, and how."""

    start: StartIngest
    roots: tuple[Path, ...]

    @property
    def words(self) -> str:
        """Which folders are allowed, for whoever has to name a path."""
        return f"Allowed folders: {', '.join(one_line(str(root)) for root in self.roots)}"


class Ingest:
    """One run. `stop` may come from any thread, also before it begins."""

    def __init__(self, door: IngestDoor, paths: Sequence[Path]) -> None:
        self._door = door
        self._paths = paths
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        self.ended = threading.Event()

    @property
    def over(self) -> bool:
        """It has ended, or will not begin."""
        return self.ended.is_set() or (self._stopped and self._process is None)

    def stop(self) -> None:
        """End it in good order: what is committed stays, and the next run goes on there."""
        with self._lock:
            self._stopped = True
            if self._process is not None and not self.ended.is_set():
                self._process.terminate()

    def run(self, tell: Tell) -> Mapping[str, Any]:
        """The summary of the run; `tell` hears how far it is. Blocks until it is over."""
        try:
            with self._lock:
                if self._stopped:
                    return {"interrupted": True}
                self._process = process = self._door.start(self._paths)
            with process:
                return self._listen(process, tell)
        finally:
            self.ended.set()

    def _listen(self, process: subprocess.Popen[bytes], tell: Tell) -> Mapping[str, Any]:
        assert process.stdout is not None
        summary: Mapping[str, Any] | None = None
        for line in process.stdout:
            with suppress(ValueError, KeyError, TypeError):
                message = json.loads(line)
                if message["event"] == "progress":
                    tell(_progress(message))
                elif message["event"] == "done":
                    summary = message["summary"]
                elif message["event"] == "failed":
                    raise _failure(message)
        if summary is not None:
            return summary
        if self._stopped:
            return {"interrupted": True}
        raise CtxError("the ingest ended without a word", hint="call ingest again; it goes on where it was")


def ingest_reply(summary: Mapping[str, Any]) -> Reply:
    """What became of the files, the failed ones by name as far as there is room."""
    counts = {name: int(summary.get(name, 0)) for name in ("added", "replaced", "renamed", "copy", "unchanged")}
    failed = [file for file in summary.get("files", ()) if file.get("result") == "failed"]
    number = int(summary.get("failed", len(failed)))
    told = [f"{count} {name}" for name, count in {**counts, "failed": number}.items() if count]
    notes = [f"{', '.join(told) or 'nothing to do'}; {int(summary.get('pages', 0))} pages read."]
    if summary.get("interrupted"):
        notes.append("Interrupted: call ingest again with the same paths, and it goes on where it was.")
    if number:
        notes.append("Failed files are not in the index:")
    fields = {
        "added": counts["added"],
        "replaced": counts["replaced"],
        "unchanged": counts["unchanged"] + counts["renamed"] + counts["copy"],
        "failed": number,
        "pages": int(summary.get("pages", 0)),
        "interrupted": bool(summary.get("interrupted")),
    }

    def render(count: int) -> Reply:
        lines = [f"- {one_line(str(file['filename']))}: {one_line(str(file['reason']))}" for file in failed[:count]]
        more = [f"- and {number - count} more"] if count < number else []
        return Reply("\n".join([*notes, *lines, *more]), fields)

    return longest(render, len(failed), Budget(_MAX_TOKENS))


def allowed_paths(given: Sequence[str], door: IngestDoor) -> list[Path]:
    """The files and folders that are meant, links followed. Raises for what lies outside, there or not."""
    if not given:
        raise UsageError("paths is empty", hint=door.words)
    roots = [Path(os.path.realpath(root)) for root in door.roots]
    found = []
    for text in given:
        places = [_place(root, text) for root in roots] if "\0" not in text else []
        inside = [place for place in places if any(place.is_relative_to(root) for root in roots)]
        if not inside:
            raise UsageError(f"{shown(text)} is not in a folder that may be added", hint=door.words)
        there = [place for place in inside if place.exists()]
        if not there:
            raise NothingFoundError(f"there is no file or folder {shown(text)}", hint=door.words)
        found.append(there[0])
    return found


def _place(root: Path, text: str) -> Path:
    try:
        return Path(os.path.realpath(root / Path(text).expanduser()))
    except (OSError, RuntimeError, ValueError):  # no such home, a loop of links, no path at all
        return Path("/")


def _progress(message: Mapping[str, Any]) -> str:
    stage = _STAGES.get(str(message["stage"]), str(message["stage"]))
    done, total = int(message["done"]), int(message["total"])
    said = f"{stage}, {done} of {total}" if total > 1 else stage
    if message.get("file") and message.get("page"):
        said += f": {one_line(str(message['file']))}, page {int(message['page'])} of {int(message['pages'])}"
    return said


def _failure(message: Mapping[str, Any]) -> CtxError:
    kinds: dict[str, type[CtxError]] = {
        kind.__name__: kind for kind in (BusyError, IndexUnusableError, NothingFoundError, UsageError)
    }
    kind = kinds.get(str(message.get("kind")), CtxError)
    return kind(str(message.get("error")), hint=str(message.get("hint", "")))
