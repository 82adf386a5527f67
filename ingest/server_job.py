"""The process of one ingest that a server runs: a request on stdin, what happens on stdout, one JSON object a line.

    {"event": "progress", "stage": "read", "done": 3, "total": 12, "file": "a.pdf", "page": 5, "pages": 40}
    {"event": "file", "source_path": "/docs/a.pdf", "result": "added", …}
    {"event": "note", "message": "…"}
    {"event": "done", "summary": {…}}   or   {"event": "failed", "error": "…", "hint": "…", "kind": "…"}

Apart from the server, because a run takes all cores and much memory, and because what happens to it must not happen to
the server. SIGTERM ends it in good order: what is committed stays, and the next run goes on there. Killed, it says
nothing, and the same holds. It dies with the server.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from types import FrameType
from typing import Any, TextIO

from ingest.report import FileOutcome, IngestSummary, Observer, PageOutcome, Stage
from research.errors import BusyError, CtxError
from research.lazy import switch_off
from research.observe import NAME, frames_of, full_text, logger_of
from research.process import die_with_parent, start_helper
from research.secret import ENCODER_KEYS
from research.settings import Settings
from research.store import IndexPaths

# What a run looks at. The rest is about questions, and some of that names a model's server.
_SETTINGS = (
    "text_encoder", "images", "ocr", "ocr_engine", "ocr_language", "visual", "device", "allowed_encoders",
    "request_timeout",
)  # fmt: skip
_SECONDS_BETWEEN = 0.25  # two messages of progress in one stage
_MOST_ENTRIES = 1000  # of any list in a summary: a server keeps many of them
_FOR_EVER = -1.0
_GONE = "it was removed before it was read"


def start_job(index: Path, settings: Settings, paths: Sequence[Path]) -> subprocess.Popen[bytes]:
    """Start the process; its stdout is to be read to the end. The thread that calls this must live as long as the
    process: on Linux that is whom it dies with."""
    request = {
        "index": str(index),
        "paths": [str(path) for path in paths],  # JSON escapes what is no valid text
        "settings": {name: getattr(settings, name) for name in _SETTINGS},
    }
    # It asks the encoder, perhaps one elsewhere; the processes that open files are started by it, without these keys.
    keys = {name: os.environ[name] for name in ENCODER_KEYS if name in os.environ}
    process = start_helper("ingest.server_job", stdin=subprocess.PIPE, environment=keys, hears_ctrl_c=False)
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it died at once, as its reader will see
        process.stdin.write(json.dumps(request).encode())
    with suppress(BrokenPipeError):
        process.stdin.close()
    return process


class Reporter(Observer):
    """Tells of progress, a few times a second at most; of everything else as it happens."""

    def __init__(self, send: Callable[..., None], clock: Callable[[], float] = time.monotonic) -> None:
        self._send = send
        self._clock = clock
        self._stage = ""
        self._told = 0.0
        self._files = 0
        self._done = 0

    def on_plan(self, files: int, size_bytes: int) -> None:
        self._files = files
        self._progress("read", 0, files)

    def on_page(self, path: str, page: int, pages: int) -> None:
        self._progress("read", self._done, self._files, file=PurePath(path).name, page=page, pages=pages)

    def on_file(self, outcome: FileOutcome) -> None:
        self._send("file", **outcome.to_dict())
        if self._files:  # those before the plan were settled without reading
            self._done = min(self._done + 1, self._files)
            self._progress("read", self._done, self._files, file=PurePath(outcome.path).name)

    def on_warning(self, path: str, message: str) -> None:
        self._send("note", message=f"{PurePath(path).name}: {message}")

    def on_failed_page(self, page: PageOutcome) -> None:
        self._send("page", **page.to_dict())

    def on_progress(self, stage: Stage, done: int, total: int) -> None:
        self._progress(stage, done, total)

    def on_note(self, message: str) -> None:
        self._send("note", message=message)

    def on_wait(self, error: BusyError) -> None:
        """Another process writes the index, and is waited for."""
        self._progress("wait", 0, 1)
        self._send("note", message=f"{error.message}; this ingest waits for it to end")

    def _progress(self, stage: str, done: int, total: int, **more: object) -> None:
        now = self._clock()
        if stage == self._stage and done < total and now - self._told < _SECONDS_BETWEEN:
            return
        self._stage, self._told = stage, now
        self._send("progress", stage=stage, done=done, total=total, **more)


class _LogLines(logging.Handler):
    """What a run logs, for the log of the server."""

    def __init__(self, send: Callable[..., None]) -> None:
        super().__init__(logging.WARNING)
        self._message = send

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        trace = f"\n{frames_of(error)}" if error is not None else ""
        message, full = f"{record.getMessage()}{trace}", f"{full_text(record)}{trace}"
        self._message("log", logger=record.name, level=record.levelno, message=message, full=full)


def run(request: Mapping[str, Any], send: Callable[..., None]) -> None:
    """Run one ingest, told by `send(event, …)`. The last event is `done` or `failed`."""
    summary = IngestSummary()
    try:
        paths = [Path(each) for each in request["paths"]]
        summary = _ingest(IndexPaths(Path(request["index"])), paths, _settings(request["settings"]), send)
    except KeyboardInterrupt:  # before the run began, or while it waited
        summary.interrupted = True
    except CtxError as error:
        send("failed", error=error.message, hint=error.hint, kind=type(error).__name__)
        return
    except Exception as error:  # noqa: BLE001  the edge of the process: a mistake of ours is told as one
        logger_of("ingest").exception("an ingest ended unexpectedly")
        hint = "this is a bug in ctx; the server's log says where"
        send("failed", error=f"an unexpected error: {type(error).__name__}", hint=hint, kind="internal")
        return
    send("done", summary=bounded(summary.to_dict()))


def _ingest(index: IndexPaths, paths: Sequence[Path], settings: Settings, send: Callable[..., None]) -> IngestSummary:
    from ingest.run import ingest  # a server imports this file for `start_job` alone
    from ingest.scan import to_utf8

    reporter = Reporter(send)
    there = [path for path in paths if os.path.lexists(path)]
    gone = [FileOutcome(to_utf8(path), "failed", code="gone", reason=_GONE) for path in paths if path not in there]
    for outcome in gone:
        reporter.on_file(outcome)
    summary = IngestSummary()
    if there:
        try:
            summary = ingest(index, there, settings=settings, observer=reporter)
        except BusyError as error:
            reporter.on_wait(error)
            summary = ingest(index, there, settings=settings, observer=reporter, wait=_FOR_EVER)
    summary.files = [*gone, *summary.files]
    return summary


def bounded(summary: dict[str, Any]) -> dict[str, Any]:
    """Cut a summary to what can be kept: of a long list the first entries, of files the failed ones before others.
    `cut` says of which list, and how many there were."""
    cut = {
        name: len(value) for name, value in summary.items() if isinstance(value, list) and len(value) > _MOST_ENTRIES
    }
    if not cut:
        return summary
    files = sorted(summary["files"], key=lambda file: file["result"] != "failed")
    whole = summary | {"files": files}
    return whole | {name: whole[name][:_MOST_ENTRIES] for name in cut} | {"cut": cut}


def _settings(given: Mapping[str, Any]) -> Settings:
    """JSON knows no tuples."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return Settings(**values)


def main() -> None:
    switch_off()
    os.umask(0o077)  # what it makes lies in the index
    die_with_parent(int(sys.argv[1]))
    _end_in_good_order()
    send = _sender(_message_stream())
    logging.getLogger(NAME).addHandler(_LogLines(send))
    with suppress(KeyboardInterrupt):  # before there is a request, or when nobody listens any more
        run(json.loads(sys.stdin.buffer.read()), send)
    # At once: a thread that a stopped run left loading a model would be taken down by C++, with a noise.
    os._exit(0)


def _message_stream() -> TextIO:
    """stdout, for our messages alone: whatever a library prints must not be taken for one."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")  # half a character is none
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return stream


def _sender(stream: TextIO) -> Callable[..., None]:
    def send(event: str, **message: object) -> None:
        try:
            stream.write(json.dumps({"event": event, **message}, ensure_ascii=False) + "\n")
            stream.flush()
        except BrokenPipeError:  # nobody listens: the server closed it and does not want more
            raise KeyboardInterrupt from None

    return send


def _end_in_good_order() -> None:
    """The first signal is an interruption, the second the end."""

    def end(number: int, frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)


if __name__ == "__main__":
    main()
