"""The reading process: takes one job a line on stdin, reads, draws or recognises a PDF, reports on stdout.

It runs apart from the command so that a file which crashes, hangs or swells costs only itself. `ingest.jobs` has the
messages both ways.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ingest.chunks import chunk_page
from ingest.faults import NOT_OURS, Fault, fault_of
from ingest.jobs import NO_SPACE
from ingest.ocr.detect import OcrNeed, ocr_need
from ingest.pdf import PdfReader, open_pdf
from ingest.wire import lines_out, page_line
from research.encoders.base import TokenCounter
from research.encoders.counting import is_light, token_counter
from research.errors import CtxError, DocumentError
from research.records import Chunk, Line, Page
from research.store.catalog.failures import INTERNAL
from research.store.error_hints import is_full
from research.store.orphans import die_with_parent
from research.telemetry import switch_off

if TYPE_CHECKING:
    from ingest.ocr.engine import OcrEngine

# Bytes of address space. Reading needs a few hundred MB at most; OCR models map 1.6 GB and more, as do other encoders.
_MEMORY_LIMIT = 4 << 30
_READING_LIMIT = 2 << 30


class Worker:
    """Works on documents one after another; keeps the tokenizer and the OCR engine between them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._counter: TokenCounter | None = None
        self._engine: OcrEngine | None = None

    def run(self, job: dict[str, Any]) -> None:
        tasks = {"read": self._read, "draw": self._draw, "ocr": self._recognise}
        self._say(event="begun")
        try:
            report = tasks[job["task"]](Path(os.fsdecode(bytes.fromhex(job["path"]))), job)
            self._say(**report)
        except DocumentError as error:
            self._say(event="failed", code=error.code, reason=error.message)
        except MemoryError:
            self._say(event="failed", code="too_large", reason="needs more memory than a document may take")
        except CtxError as error:
            self._say(event="failed", code="failed", reason=error.message)
        except OSError as error:
            code = NO_SPACE if is_full(error) else "unreadable"
            self._say(event="failed", code=code, reason=error.strerror or str(error))
        except Exception as error:  # noqa: BLE001  the edge of the process: a mistake of ours is told as one
            fault = fault_of(error)
            self._say(event="failed", code=INTERNAL, reason=fault.reason, trace=fault.trace)

    def _read(self, path: Path, job: dict[str, Any]) -> dict[str, object]:
        warnings: list[str] = []
        wordless = 0
        with open_pdf(path) as document, Path(job["spool"]).open("w", encoding="utf-8") as spool:
            for page in document.pages(skip=set(job["skip"]), progress=self._watch(document.num_pages)):
                line, error = self._entry(page, document, job)
                spool.write(line + "\n")
                wordless += not page.markdown and not error
                if error:
                    warnings.append(f"page {page.number}: {error}")
            warnings += document.warnings
            pages, title = document.num_pages, document.title
        if wordless:
            warnings.append(f"{wordless} of {pages} pages have no text layer")
        return {"event": "read", "title": title, "pages": pages, "warnings": warnings}

    def _entry(self, page: Page, document: PdfReader, job: dict[str, Any]) -> tuple[str, str]:
        """A page as it is spooled, and why it has no text; what our own code failed on is told."""
        fault = document.faults.get(page.number)
        try:
            noted = replace(page, needs_ocr=self._need(page, force=job["force"]) is not None)
            line = page_line(noted, self._chunks(noted, document.title, job))
        except NOT_OURS:
            raise
        except Exception as error:  # noqa: BLE001  one page's fault costs one page
            fault = fault_of(error)
            page = Page(page.number, "", error=fault.reason)
            line = page_line(page, [])
        if fault is not None:
            self._fail(page.number, fault)
        return line, page.error

    def _draw(self, path: Path, job: dict[str, Any]) -> dict[str, object]:
        from ingest.images import write_images

        folder = Path(job["spool"])
        shutil.rmtree(folder, ignore_errors=True)  # from a try that was cut short
        folder.mkdir(parents=True)
        drawn = []
        with open_pdf(path) as document:
            watch = self._watch(document.num_pages)
            for number in range(1, document.num_pages + 1):
                watch(number)
                try:
                    if number not in job["skip"] and write_images(document.raw_page(number), number, folder):
                        drawn.append(number)
                except NOT_OURS:
                    raise
                except Exception as error:  # noqa: BLE001  one page's fault costs one page
                    self._fail(number, fault_of(error))
        return {"event": "drawn", "pages": drawn}

    def _recognise(self, path: Path, job: dict[str, Any]) -> dict[str, object]:
        from ingest.ocr.choose import choose_engine
        from ingest.ocr.run import OcrFailure, OcrTask, ocr_document

        if self._engine is None:
            self._engine = choose_engine(job["engine"], language=job["language"])
        wanted = set(job["pages"]) - set(job["skip"])
        with open_pdf(path) as document:
            watch = self._watch(document.num_pages)
            pages = (page for page in document.pages(skip=set(job["skip"]), progress=watch) if page.number in wanted)
            tasks = (
                OcrTask(page, need) for page in pages if (need := self._need(page, force=job["force"])) is not None
            )
            for result in ocr_document(path, tasks, self._engine, progress=watch):
                if isinstance(result, OcrFailure):
                    failure = {"code": result.code, "reason": result.reason, "tries": result.tries}
                    self._say(event="page_failed", page=result.page, **failure, trace=result.trace)
                    continue
                page = replace(result.page, needs_ocr=False, ocr_engine=result.engine if result.lines else "")
                line = page_line(page, self._chunks(page, document.title, job))
                self._say(event="ocr", line=line, lines=lines_out(Line(read.text, read.box) for read in result.lines))
        return {"event": "ocr_done"}

    def _fail(self, page: int, fault: Fault) -> None:
        self._say(event="page_failed", page=page, code=INTERNAL, reason=fault.reason, tries=1, trace=fault.trace)

    @staticmethod
    def _need(page: Page, *, force: bool) -> OcrNeed | None:
        return ocr_need(page, force=force)

    def _chunks(self, page: Page, title: str, job: dict[str, Any]) -> list[Chunk]:
        if self._counter is None:
            self._counter = token_counter(job["encoder"])
        counter = self._counter
        return chunk_page(page, title=title, count=counter.count_tokens, window=counter.max_tokens)

    def _watch(self, pages: int) -> Callable[[int], None]:
        """Reports every page before it is touched: the last one named is the one that crashed or hangs."""

        def hear(number: int) -> None:
            self._say(event="page", page=number, pages=pages)

        return hear

    def _say(self, **message: object) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def main() -> None:
    switch_off()
    _confine()
    if len(sys.argv) > 1:
        die_with_parent(int(sys.argv[1]))
    # Whatever a library prints must not be taken for a message.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    worker = Worker(out)
    for job in _jobs(sys.stdin):
        _bound_memory(job)
        worker.run(job)


def _jobs(stream: TextIO) -> Iterator[dict[str, Any]]:
    for line in stream:
        yield json.loads(line)


def _confine() -> None:
    """Leave Ctrl-C to the command, which ends this process when it has to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _bound_memory(job: dict[str, Any]) -> None:
    small = job["task"] != "ocr" and is_light(job["encoder"])
    limit = _READING_LIMIT if small else _MEMORY_LIMIT
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    main()
