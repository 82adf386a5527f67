"""The reading process: takes one job a line on stdin, reads, draws or recognises a PDF, reports on stdout.

It runs apart from the command so that a file which crashes, hangs or swells costs only itself. `ingest.jobs` has the
messages both ways.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ingest.chunks import chunk_page
from ingest.jobs import NO_SPACE, UNREADABLE, Fault, Job, attempt, encode_page, fault_of, fields_of
from ingest.ocr import choose_engine, ocr_need
from ingest.pdf.mupdf import raster
from ingest.pdf.reader import PdfReader
from research.encoders import TokenCounter, is_light, token_counter
from research.errors import CtxError, DocumentError, is_full
from research.lazy import switch_off
from research.process import die_with_parent
from research.records import Chunk, FailedPage, Line, Page
from research.store import image_name, ledger, thumbnail_name

if TYPE_CHECKING:
    from PIL import Image

    from ingest.ocr.engine import OcrEngine

# Bytes of address space. Reading needs a few hundred MB at most; OCR models map 1.6 GB and more, as do other encoders.
_MEMORY_LIMIT = 4 << 30
_READING_LIMIT = 2 << 30

_IMAGE, _THUMBNAIL = 1280, 256  # pixels of the longest side
_JPEG_QUALITY, _WEBP_QUALITY = 78, 60


class Worker:
    """Works on documents one after another; keeps the tokenizer and the OCR engine between them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._counter: TokenCounter | None = None
        self._engine: OcrEngine | None = None

    def run(self, job: Job) -> None:
        tasks = {"read": self._read, "render": self._render, "ocr": self._ocr, "code": self._code}
        self._send("started")
        try:
            tasks[job.task](job)
        except DocumentError as error:
            self._fail(ledger.WHOLE, error.code, error.message)
        except MemoryError:
            self._fail(ledger.WHOLE, "too_large", "needs more memory than a document may take")
        except CtxError as error:
            self._fail(ledger.WHOLE, "failed", error.message)
        except OSError as error:
            self._fail(ledger.WHOLE, NO_SPACE if is_full(error) else UNREADABLE, error.strerror or str(error))
        except Exception as error:  # noqa: BLE001  the edge of the process: a mistake of ours is told as one
            self._fail_by_bug(ledger.WHOLE, error)

    def _read(self, job: Job) -> None:
        warnings: list[str] = []
        without_text = 0
        with PdfReader(job.path) as document, job.output.open("w", encoding="utf-8") as output:
            for page in document.pages(skip=job.skip_pages, progress=self._progress(document)):
                line, error = self._encode(page, document, job)
                output.write(line + "\n")
                without_text += not page.markdown and not error
                if error:
                    warnings.append(f"page {page.number}: {error}")
            warnings += document.warnings
            fields = {"title": document.title, "pages": document.num_pages, "without_text": without_text}
        self._send("read", **fields, warnings=warnings)

    def _encode(self, page: Page, document: PdfReader, job: Job) -> tuple[str, str]:
        """Return a page as it is written, and why it has no text; what our own code failed on is told."""
        fault, line = document.faults.get(page.number), attempt(self._line, page, document.title, job)
        if isinstance(line, Fault):
            fault, page = line, Page(page.number, "", error=line.reason)
            line = encode_page(page, [])
        if fault is not None:
            self._fail_by_bug(page.number, fault)
        return line, page.error

    def _line(self, page: Page, title: str, job: Job) -> str:
        noted = replace(page, needs_ocr=ocr_need(page, force=job.force) is not None)
        return encode_page(noted, self._chunks(noted, title, job))

    def _render(self, job: Job) -> None:
        shutil.rmtree(job.output, ignore_errors=True)  # from a try that was cut short
        job.output.mkdir(parents=True)
        drawn = []
        with PdfReader(job.path) as document:
            progress = self._progress(document)
            for number in range(1, document.num_pages + 1):
                progress(number)
                written = number not in job.skip_pages and attempt(_write_images, document, number, job.output)
                if isinstance(written, Fault):
                    self._fail_by_bug(number, written)
                elif written:
                    drawn.append(number)
        self._send("done", pages=drawn)

    def _ocr(self, job: Job) -> None:
        """Read page by page, so that each can be stored before the next is begun."""
        from ingest.ocr.page import ocr_page

        if self._engine is None:
            self._engine = choose_engine(job.engine, language=job.language)
        wanted = set(job.pages).difference(job.skip_pages)
        with PdfReader(job.path) as document:
            progress = self._progress(document)
            for page in document.pages(skip=job.skip_pages, progress=progress):
                need = ocr_need(page, force=job.force) if page.number in wanted else None
                if need is None:
                    continue
                result = attempt(ocr_page, page, need, document.raw_page(page.number), self._engine, progress)
                if isinstance(result, Fault):
                    self._fail_by_bug(page.number, result)
                elif isinstance(result, FailedPage):
                    self._fail(result.page, result.code, result.reason, tries=result.tries)
                else:
                    read = replace(result.page, needs_ocr=False, ocr_engine=result.engine if result.lines else "")
                    chunks = self._chunks(read, document.title, job)
                    self._send("ocr", page=read, chunks=chunks, lines=[Line(ln.text, ln.box) for ln in result.lines])
        self._send("done", pages=())

    def _code(self, job: Job) -> None:
        from ingest.code.units import read_code

        self._send("code", file=read_code(job.path))

    def _chunks(self, page: Page, title: str, job: Job) -> list[Chunk]:
        self._counter = self._counter or token_counter(job.encoder)
        return chunk_page(page, title=title, count=self._counter.count_tokens, window=self._counter.max_tokens)

    def _progress(self, document: PdfReader) -> Callable[[int], None]:
        """Reports every page before it is touched: the last one named is the one that crashed or hangs."""
        return lambda number: self._send("page", page=number, pages=document.num_pages)

    def _fail_by_bug(self, page: int, error: Exception) -> None:
        """Tell that our own code failed: on a page, which the document goes on without, or on all of it."""
        fault = fault_of(error)
        self._fail(page, ledger.INTERNAL, fault.reason, trace=fault.trace)

    def _fail(self, page: int, code: str, reason: str, *, tries: int = 1, trace: str = "") -> None:
        self._send("failed", page=page, code=code, reason=reason, tries=tries, trace=trace)

    def _send(self, event: str, **message: object) -> None:
        self._out.write(json.dumps({"event": event, **message}, default=fields_of) + "\n")
        self._out.flush()


def _write_images(document: PdfReader, number: int, folder: Path) -> bool:
    """Draw a page into its two files. False if it cannot be drawn."""
    from PIL import Image

    page = document.raw_page(number)
    if page is None:
        return False
    picture = raster(page, longest=_IMAGE)
    if picture is None or min(picture.size) < 1:
        return False
    _write_image(picture, folder / image_name(number), "JPEG", quality=_JPEG_QUALITY)
    picture.thumbnail((_THUMBNAIL, _THUMBNAIL), Image.Resampling.BILINEAR, reducing_gap=2.0)
    _write_image(picture, folder / thumbnail_name(number), "WEBP", quality=_WEBP_QUALITY, method=2)
    return True


def _write_image(picture: Image.Image, path: Path, kind: str, **options: int) -> None:
    # Through memory: Pillow's own writing does not say that the disk is full.
    data = io.BytesIO()
    picture.save(data, kind, **options)
    path.write_bytes(data.getvalue())


def main() -> None:
    switch_off()
    os.umask(0o077)  # pages and images lie in the index, and Pillow asks for no rights of its own
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the command's, which ends this process when it has to
    if len(sys.argv) > 1:
        die_with_parent(int(sys.argv[1]))
    # Whatever a library prints must not be taken for a message.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    worker = Worker(out)
    for line in sys.stdin:
        job = Job.from_json(line)
        _limit_memory(job)
        worker.run(job)


def _limit_memory(job: Job) -> None:
    small = job.task != "ocr" and is_light(job.encoder)
    limit = _READING_LIMIT if small else _MEMORY_LIMIT
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    main()
