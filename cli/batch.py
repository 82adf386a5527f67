"""ctx ask --batch: a question a line in, a JSON document a line out, in one warm process.

Every line gets exactly one document, in order, as soon as it and those before it are done: an answer, or an error that
costs only that line. A line is a question, plain or a JSON object; `cli/JSON.md` has the rules for those who write
them.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import isfinite
from queue import Queue
from typing import TYPE_CHECKING, Any, BinaryIO

from cli.ask import answer_document
from cli.call import Call, held_signals, open_file, orderly_end
from cli.output import check_legs, complain, say, write
from research.errors import CtxError, NothingFoundError, SomeFilesFailedError, StoppedError, UsageError
from research.parallel import Call as Running
from research.parallel import Workers
from research.request import AskRequest, read_request

if TYPE_CHECKING:
    from research.index import Index
    from research.models import ResearchContext

_MOST_BYTES = 1 << 20  # of a line; a longer one is no question
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """What one line asks."""

    number: int
    request: AskRequest | None = None
    id: str | int | float | None = None
    error: CtxError | None = None  # why it cannot be asked


def read_lines(file: AbstractContextManager[BinaryIO], base: AskRequest) -> Iterator[Line]:
    """Each line as it comes, so that whoever writes them may wait for an answer before the next. `base` holds for all.

    The file is closed where it is read, at its end: to close a pipe that somebody reads from waits for the reader.
    """
    with file as stream:
        yield from _lines(stream, base)


def _lines(stream: BinaryIO, base: AskRequest) -> Iterator[Line]:
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
            yield parse_line(number, raw.removeprefix(_BOM) if number == 1 else raw, base)


def parse_line(number: int, raw: bytes, base: AskRequest) -> Line:
    """An object if it begins with a brace, else the question itself."""
    known_id = None
    try:
        text = _text(raw)
        given = _object(text)
        if given is None:
            return Line(number, replace(base, question=_not_empty(text)))
        given_id = given.pop("id", None)
        if not (given_id is None or _is_id(given_id)):
            raise UsageError("id must be a text or a number", hint=_EXAMPLE)
        known_id = given_id
        if "question" in given and "query" in given:
            raise UsageError("question and query are the same key; give one of them", hint=_EXAMPLE)
        said = {"question" if name == "query" else name: value for name, value in given.items()}
        _not_empty(said.get("question"))
        if empty := next((name for name, value in said.items() if value == []), ""):  # not "all", if it came out empty
            raise UsageError(f"{empty} is empty", hint=_EXAMPLE)
        return Line(number, read_request("batch", said, base), known_id)
    except CtxError as error:
        return Line(number, id=known_id, error=error)


def _text(raw: bytes) -> str:
    """Not replaced as the words of a command line are: a whole file in another encoding would be answered wrongly."""
    try:
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the line is not UTF-8: byte 0x{raw[error.start]:02x} at {error.start + 1}",
            hint="convert the file, with iconv -t utf-8 for example",
        ) from error


def _is_id(value: Any) -> bool:
    """Whether it can be given back as it came: an infinite number is none in JSON."""
    return isinstance(value, str) or (type(value) in (int, float) and isfinite(value))


def _not_empty(question: Any) -> Any:
    if question is None or (isinstance(question, str) and not question.strip()):
        raise UsageError("the question is empty", hint=_EXAMPLE)
    return question


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


Answer = Callable[["Line"], "ResearchContext"]

_MOST_WORKERS = 4


def answer_batch(call: Call, index: Index, name: str, request: AskRequest) -> int:
    """Answer the questions of a file. What a line says wins over `request`, which is for all of them."""

    def answer(line: Line) -> ResearchContext:
        assert line.request is not None
        context = index.ask(line.request, highlights=True)
        if request.types is None or not (context.sources or context.dropped):
            check_legs(context.coverage)
        return context

    call.prepare(index, request.types)
    if name == "-" and sys.stdin.isatty():
        call.say('type a question a line, or {"question": "…", "id": 1, "max_tokens": 500}; Ctrl-D ends')
    lines = read_lines(open_file(name, "name a file with a question a line, or - for stdin"), request)
    return answer_all(lines, answer, quiet=call.quiet)


def answer_all(lines: Iterator[Line], answer: Answer, *, quiet: bool) -> int:
    """Answer each line, write its document, and give the exit code.

    Several are worked on side by side: a good half of a question is spent in SQLite, the encoder and Chroma, which let
    other threads run. No more are read ahead than are being worked on, so memory stays that of a few answers.
    """
    lines_done = failed = found = 0
    try:
        with orderly_end():
            for line, outcome in _side_by_side(lines, answer):
                document = _document(line, outcome)
                with held_signals():  # no line is left half written, and none is told that was not
                    if not write(json.dumps(document) + "\n"):
                        break  # nobody reads any more
                    lines_done += 1
                    failed += isinstance(outcome, CtxError)
                    found += not isinstance(outcome, CtxError) and bool(outcome.sources or outcome.dropped)
    except KeyboardInterrupt:
        return _complained(StoppedError(f"interrupted; lines answered, each whole: {lines_done}"))
    if failed:
        others = "the others were answered" if failed < lines_done else "none was answered"
        hint = "their documents say why: those with the schema ctx.error/1"
        return _complained(SomeFilesFailedError(f"{failed} of {lines_done} lines failed; {others}", hint=hint))
    if lines_done and not found:
        hint = "try other words, or see: ctx list"
        return _complained(NothingFoundError("nothing found for any of the questions", hint=hint))
    if not lines_done and not quiet:
        say("ctx: note: there was no line to answer")
    return 0


def _complained(error: CtxError) -> int:
    complain(error, as_json=False)
    return error.exit_code


def _document(line: Line, outcome: ResearchContext | CtxError) -> dict[str, Any]:
    named = {"id": line.id, "line": line.number}
    if isinstance(outcome, CtxError):
        fields = {"error": outcome.message, "hint": outcome.hint, "exit_code": outcome.exit_code}
        return {"schema": "ctx.error/1", **named, **fields}
    return {"schema": "ctx.ask/2", **named, **answer_document(outcome)}


def _side_by_side(lines: Iterator[Line], answer: Answer) -> Iterator[tuple[Line, ResearchContext | CtxError]]:
    """Each line with its outcome, in order. The lines are read in a thread, because reading may wait for ever for the
    next one while the last answer is due."""
    most, workers, over = min(_MOST_WORKERS, len(os.sched_getaffinity(0))), Workers("ctx-batch"), threading.Event()
    free = threading.Semaphore(most)
    running: Queue[tuple[Line, Running[ResearchContext | CtxError]] | Exception | None] = Queue(most)

    def read() -> None:
        try:
            for line in lines:
                free.acquire()
                if over.is_set():
                    free.release()
                    return
                call = workers.start(partial(_outcome, line, answer))
                call.when_done(free.release)
                running.put((line, call))
            running.put(None)
        except (OSError, CtxError, MemoryError) as error:
            running.put(error)

    workers.start(read)
    try:
        while (next_one := running.get()) is not None:
            if isinstance(next_one, Exception):
                raise next_one
            line, call = next_one
            yield line, call.wait().result()
    finally:  # what is being worked on is waited for, also when nobody wants it: the index is closed after this
        over.set()
        for _ in range(most):
            free.acquire()


def _outcome(line: Line, answer: Answer) -> ResearchContext | CtxError:
    if line.error is not None:
        return line.error
    try:
        return answer(line)
    except CtxError as error:
        return error
    except Exception as error:  # noqa: BLE001  whatever it is, it costs this line and no other
        from research.observe import log_failure

        log_failure("batch", f"line {line.number} failed", error)
        return CtxError(f"unexpected error: {type(error).__name__}: {error}", hint="see where with --log-file FILE")
