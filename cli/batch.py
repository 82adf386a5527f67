"""ctx ask --batch: a question a line in, a JSON document a line out, in one warm process.

Every line gets exactly one document, in order, as soon as it and those before it are done: an answer, or an error that
costs only that line.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from queue import Queue
from typing import TYPE_CHECKING, Any

from cli.batch_lines import Line, open_lines, read_lines
from cli.output import complain, say, write
from research.errors import CtxError, NothingFoundError, SomeFilesFailedError, StoppedError
from research.parallel import Call, Workers

if TYPE_CHECKING:
    from cli.options import Common
    from research.answer.answering import CheckedAnswer
    from research.index import Index
    from research.models import ResearchContext
    from research.request import AskRequest

Answer = Callable[["Line"], "ResearchContext"]

_MOST_WORKERS = 4


@dataclass(slots=True)
class _Tally:
    lines: int = 0
    failed: int = 0
    found: int = 0

    def count(self, outcome: ResearchContext | CtxError) -> None:
        self.lines += 1
        if isinstance(outcome, CtxError):
            self.failed += 1
        else:
            self.found += bool(outcome.sources or outcome.dropped)


def answer_batch(index: Index, name: str, given: Common, request: AskRequest) -> int:
    """Answer the questions of a file. What a line says wins over `request`, which is for all of them."""
    from cli.options import check_legs, make_ready

    def answer(line: Line) -> ResearchContext:
        assert line.request is not None
        context = index.ask(line.request, highlights=True)
        if request.types is None or not (context.sources or context.dropped):
            check_legs(context.coverage)
        return context

    make_ready(index, given, request.types)
    return answer_all(read_lines(open_lines(name, quiet=given.quiet), request), answer, quiet=given.quiet)


def answer_document(context: ResearchContext, answer: CheckedAnswer | None = None) -> dict[str, Any]:
    """The fields of `ctx.ask/2`. A page's text is in them once, in `formatted_text`."""
    document = {**context.to_dict(), "answer": None if answer is None else answer.to_dict()}
    for source in document["sources"]:
        del source["markdown_content"]
    return document


def answer_all(lines: Iterator[Line], answer: Answer, *, quiet: bool) -> int:
    """Answer each line, write its document, and give the exit code.

    Several are worked on side by side: a good half of a question is spent in SQLite, the encoder and Chroma, which let
    other threads run. No more are read ahead than are being worked on, so memory stays that of a few answers.
    """
    from cli.signals import held_signals, orderly_end

    tally = _Tally()
    try:
        with orderly_end():
            for line, outcome in _side_by_side(lines, answer):
                document = _document(line, outcome)
                with held_signals():  # no line is left half written, and none is told that was not
                    if not write(json.dumps(document) + "\n"):
                        break  # nobody reads any more
                    tally.count(outcome)
    except KeyboardInterrupt:
        stopped = StoppedError(f"interrupted; lines answered, each whole: {tally.lines}")
        complain(stopped, as_json=False)
        return stopped.exit_code
    return _verdict(tally, quiet=quiet)


def _document(line: Line, outcome: ResearchContext | CtxError) -> dict[str, Any]:
    named = {"id": line.id, "line": line.number}
    if isinstance(outcome, CtxError):
        fields = {"error": outcome.message, "hint": outcome.hint, "exit_code": outcome.exit_code}
        return {"schema": "ctx.error/1", **named, **fields}
    return {"schema": "ctx.ask/2", **named, **answer_document(outcome)}


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
    most, workers, over = min(_MOST_WORKERS, _processors()), Workers("ctx-batch"), threading.Event()
    free = threading.Semaphore(most)
    running: Queue[tuple[Line, Call[ResearchContext | CtxError]] | Exception | None] = Queue(most)

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
        from research.observe import log_failure

        log_failure("batch", f"line {line.number} failed", error)
        return CtxError(f"unexpected error: {type(error).__name__}: {error}", hint="see where with --log-file FILE")
