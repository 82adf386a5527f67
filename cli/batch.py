"""ctx ask --batch: a question a line in, a JSON document a line out, in one warm process.

Every line gets exactly one document, in order, as soon as it and those before it are done: an answer, or an error that
costs only that line. `cli/JSON.md` has the rules of the lines.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any, BinaryIO

from cli.output import complain, say, write
from research.errors import CtxError, NothingFoundError, SomeFilesFailedError, StoppedError, UsageError
from research.settings import check

if TYPE_CHECKING:
    from research.models import ResearchContext

Answer = Callable[["Line"], "ResearchContext"]
Render = Callable[["ResearchContext"], dict[str, Any]]

FILTERS = ("doc", "not_doc", "under", "pages", "since", "until", "tag")
SETTINGS = ("max_tokens", "max_sources", "num_results", "mode", "min_score", "min_confidence")
KEYS = ("question", "query", "id", *SETTINGS, *FILTERS)

_MOST_BYTES = 1 << 20  # of a line; a longer one is no question
_MOST_WORKERS = 4
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """What one line asks. `options` are the settings it names, `filters` the filters: they win over the command's."""

    number: int
    question: str = ""
    id: str | int | float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, Any] = field(default_factory=dict)
    error: CtxError | None = None  # why it cannot be asked


@dataclass(slots=True)
class _Tally:
    lines: int = 0
    failed: int = 0
    found: int = 0


@contextmanager
def opened_lines(name: str, *, quiet: bool) -> Iterator[BinaryIO]:
    """The file, or stdin for `-`."""
    if name == "-":
        if sys.stdin.isatty() and not quiet:
            say('ctx: type a question a line, or {"question": "…", "id": 1, "max_tokens": 500}; Ctrl-D ends')
        yield sys.stdin.buffer
        return
    try:
        stream = Path(name).open("rb")  # noqa: SIM115  closed below, where an error of reading is not one of opening
    except OSError as error:
        raise UsageError(
            f"cannot read {name}: {error.strerror or error}", hint="name a file with a question a line, or - for stdin"
        ) from error
    with stream:
        yield stream


def read_lines(stream: BinaryIO) -> Iterator[Line]:
    """Each line as it comes, so that whoever writes them may wait for an answer before the next."""
    for number in count(1):
        try:
            raw = stream.readline(_MOST_BYTES + 2)
            if not raw:
                return
            too_long = len(raw.rstrip(b"\r\n")) > _MOST_BYTES
            while too_long and raw and not raw.endswith(b"\n"):
                raw = stream.readline(_MOST_BYTES)
        except OSError as error:
            raise UsageError(f"cannot read the questions: {error.strerror or error}") from error
        if too_long:
            yield Line(number, error=UsageError(f"the line is longer than {_MOST_BYTES:,} bytes"))
        else:
            yield parse_line(number, raw.removeprefix(_BOM) if number == 1 else raw)


def parse_line(number: int, raw: bytes) -> Line:
    """An object if it begins with a brace, else the question itself. Bytes that are no text are replaced."""
    text = raw.decode("utf-8", "replace").strip()
    try:
        fields = _object(text)
    except CtxError as error:
        return Line(number, error=error)
    if fields is None:
        return Line(number, text, error=None if text else _empty())
    given = fields.get("id")
    known_id = given if isinstance(given, str | int | float) and not isinstance(given, bool) else None
    try:
        question, options = _request(fields)
    except CtxError as error:
        return Line(number, id=known_id, error=error)
    filters = {name: fields[name] for name in FILTERS if fields.get(name) is not None}
    return Line(number, question, known_id, options, filters)


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object of a line; None if it is plain text."""
    if not text.startswith(("{", "[")):
        return None
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.startswith("["):  # a question may begin so
            return None
        reason = "it is nested too deeply"
        if isinstance(error, json.JSONDecodeError):
            reason = f"{error.msg} at character {error.pos + 1}"
        elif isinstance(error, ValueError):  # a number of thousands of digits
            reason = "a number in it is too long"
        raise UsageError(f"the line begins with {{ but is no JSON: {reason}", hint=_EXAMPLE) from error
    if not isinstance(read, dict):
        raise UsageError("the line is a JSON array", hint=_EXAMPLE)
    return read


_EXAMPLE = 'a line is a question, or an object: {"question": "…", "id": 1, "max_tokens": 500}'


def _empty() -> UsageError:
    return UsageError("the question is empty", hint=_EXAMPLE)


def _request(fields: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    unknown = [name for name in fields if name not in KEYS]
    if unknown:
        raise UsageError(f"unknown key {unknown[0][:60]!r}", hint=f"known keys: {', '.join(KEYS)}")
    if "question" in fields and "query" in fields:
        raise UsageError("question and query are the same key; give one of them", hint=_EXAMPLE)
    if not isinstance(fields.get("id"), str | int | float | None) or isinstance(fields.get("id"), bool):
        raise UsageError("id must be a text or a number", hint=_EXAMPLE)
    text = fields.get("question", fields.get("query", ""))
    if not isinstance(text, str):
        raise UsageError("the question must be a text", hint=_EXAMPLE)
    question = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").strip()
    if not question:
        raise _empty()
    options = {name: check(name, fields[name], name) for name in SETTINGS if fields.get(name) is not None}
    return question, options


def answer_all(lines: Iterator[Line], answer: Answer, render: Render, *, quiet: bool) -> int:
    """Answer each line, write its document, and give the exit code.

    Several are worked on side by side: a good half of a question is spent in SQLite, the encoder and Chroma, which let
    other threads run. No more are read ahead than are being worked on, so memory stays that of a few answers.
    """
    from cli.signals import held_signals, orderly_end

    tally = _Tally()
    try:
        with orderly_end():
            for line, outcome in _side_by_side(lines, answer):
                document = _document(line, outcome, render, tally)
                with held_signals():  # no line is left half written
                    if not write(json.dumps(document) + "\n"):
                        break  # nobody reads any more
    except KeyboardInterrupt:
        stopped = StoppedError(f"interrupted; the first {tally.lines} lines were answered, each whole")
        complain(stopped, as_json=False)
        return stopped.exit_code
    return _verdict(tally, quiet=quiet)


def _document(line: Line, outcome: ResearchContext | CtxError, render: Render, tally: _Tally) -> dict[str, Any]:
    tally.lines += 1
    named = {"id": line.id, "line": line.number}
    if isinstance(outcome, CtxError):
        tally.failed += 1
        fields = {"error": outcome.message, "hint": outcome.hint, "exit_code": outcome.exit_code}
        return {"schema": "ctx.error/1", **named, **fields}
    tally.found += bool(outcome.sources or outcome.dropped)
    rendered = render(outcome)
    return {"schema": rendered.pop("schema"), **named, **rendered}


def _verdict(tally: _Tally, *, quiet: bool) -> int:
    error: CtxError | None = None
    if tally.failed:
        others = "the others were answered" if tally.failed < tally.lines else "none was answered"
        error = SomeFilesFailedError(
            f"{tally.failed} of {tally.lines} lines failed; {others}",
            hint="their documents say why: those with the schema ctx.error/1",
        )
    elif tally.lines and not tally.found:
        error = NothingFoundError("nothing found for any of the questions", hint="try other words, or see: ctx list")
    if error is not None:
        complain(error, as_json=False)
        return error.exit_code
    if not tally.lines and not quiet:
        say("ctx: note: there was no line to answer")
    return 0


def _side_by_side(lines: Iterator[Line], answer: Answer) -> Iterator[tuple[Line, ResearchContext | CtxError]]:
    """Each line with its outcome, in order. The lines are read in a thread, because reading may wait for ever for the
    next one while the last answer is due."""
    workers = min(_MOST_WORKERS, _processors())
    running: Queue[tuple[Line, Future[ResearchContext | CtxError]] | CtxError | None] = Queue(workers)
    with _pool(workers) as pool:

        def read() -> None:
            try:
                for line in lines:
                    running.put((line, pool.submit(_outcome, line, answer)))
                running.put(None)
            except CtxError as error:
                running.put(error)
            except RuntimeError:  # the pool is shut: nobody waits for answers any more
                return

        threading.Thread(target=read, daemon=True).start()
        while (next_one := running.get()) is not None:
            if isinstance(next_one, CtxError):
                raise next_one
            line, future = next_one
            yield line, future.result()


@contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Not waited for when nobody wants the rest any more."""
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _outcome(line: Line, answer: Answer) -> ResearchContext | CtxError:
    if line.error is not None:
        return line.error
    try:
        return answer(line)
    except CtxError as error:
        return error
    except Exception as error:  # noqa: BLE001  whatever it is, it costs this line and no other
        from research.observe.log import log_failure

        log_failure("batch", f"line {line.number} failed", error)
        return CtxError(f"unexpected error: {type(error).__name__}: {error}", hint="see where with --log-file FILE")
