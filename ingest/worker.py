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
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ingest.chunks import chunk_page
from ingest.faults import NOT_OURS, Fault, fault_of
from ingest.jobs import NO_SPACE, UNREADABLE, encode_lines, encode_page
from ingest.ocr.choose import OcrNeed, choose_engine, ocr_need
from ingest.pdf.mupdf import raster
from ingest.pdf.reader import PdfReader, open_pdf
from research.encoders import TokenCounter, is_light, token_counter
from research.errors import CtxError, DocumentError, is_full
from research.lazy import switch_off
from research.process import die_with_parent
from research.records import Chunk, Line, Page
from research.store import INTERNAL, image_name, thumbnail_name

if TYPE_CHECKING:
    from PIL import Image

    from ingest.ocr.engine import OcrEngine
    from ingest.ocr.page import OcrFailure

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

    def run(self, job: dict[str, Any]) -> None:
        tasks = {"read": self._read, "render": self._render, "ocr": self._ocr, "code": self._code}
        self._send(event="started")
        try:
            report = tasks[job["task"]](Path(os.fsdecode(bytes.fromhex(job["path"]))), job)
            self._send(**report)
        except DocumentError as error:
            self._send(event="failed", code=error.code, reason=error.message)
        except MemoryError:
            self._send(event="failed", code="too_large", reason="needs more memory than a document may take")
        except CtxError as error:
            self._send(event="failed", code="failed", reason=error.message)
        except OSError as error:
            code = NO_SPACE if is_full(error) else UNREADABLE
            self._send(event="failed", code=code, reason=error.strerror or str(error))
        except Exception as error:  # noqa: BLE001  the edge of the process: a mistake of ours is told as one
            self._send_bug(fault_of(error))

    def _read(self, path: Path, job: dict[str, Any]) -> dict[str, object]:
        warnings: list[str] = []
        without_text = 0
        with open_pdf(path) as document, Path(job["output"]).open("w", encoding="utf-8") as output:
            for page in document.pages(skip=set(job["skip_pages"]), progress=self._progress(document.num_pages)):
                line, error = self._encode(page, document, job)
                output.write(line + "\n")
                without_text += not page.markdown and not error
                if error:
                    warnings.append(f"page {page.number}: {error}")
            warnings += document.warnings
            pages, title = document.num_pages, document.title
        return {"event": "read", "title": title, "pages": pages, "without_text": without_text, "warnings": warnings}

    def _encode(self, page: Page, document: PdfReader, job: dict[str, Any]) -> tuple[str, str]:
        """A page as it is written, and why it has no text; what our own code failed on is told."""
        fault = document.faults.get(page.number)
        try:
            noted = replace(page, needs_ocr=self._need(page, force=job["force"]) is not None)
            line = encode_page(noted, self._chunks(noted, document.title, job))
        except NOT_OURS:
            raise
        except Exception as error:  # noqa: BLE001  one page's fault costs one page
            fault = fault_of(error)
            page = Page(page.number, "", error=fault.reason)
            line = encode_page(page, [])
        if fault is not None:
            self._send_bug(fault, page.number)
        return line, page.error

    def _render(self, path: Path, job: dict[str, Any]) -> dict[str, object]:

        folder = Path(job["output"])
        shutil.rmtree(folder, ignore_errors=True)  # from a try that was cut short
        folder.mkdir(parents=True)
        drawn = []
        with open_pdf(path) as document:
            progress = self._progress(document.num_pages)
            for number in range(1, document.num_pages + 1):
                progress(number)
                try:
                    if number not in job["skip_pages"] and _write_images(document.raw_page(number), number, folder):
                        drawn.append(number)
                except NOT_OURS:
                    raise
                except Exception as error:  # noqa: BLE001  one page's fault costs one page
                    self._send_bug(fault_of(error), number)
        return {"event": "rendered", "pages": drawn}

    def _ocr(self, path: Path, job: dict[str, Any]) -> dict[str, object]:
        from ingest.ocr.page import OcrFailure, OcrTask, ocr_document

        if self._engine is None:
            self._engine = choose_engine(job["engine"], language=job["language"])
        wanted = set(job["pages"]) - set(job["skip_pages"])
        with open_pdf(path) as document:
            progress = self._progress(document.num_pages)
            skip = set(job["skip_pages"])
            pages = (page for page in document.pages(skip=skip, progress=progress) if page.number in wanted)
            tasks = (
                OcrTask(page, need) for page in pages if (need := self._need(page, force=job["force"])) is not None
            )
            for result in ocr_document(path, tasks, self._engine, progress=progress):
                if isinstance(result, OcrFailure):
                    self._send_ocr_failure(result)
                    continue
                page = replace(result.page, needs_ocr=False, ocr_engine=result.engine if result.lines else "")
                line = encode_page(page, self._chunks(page, document.title, job))
                lines = encode_lines(Line(read.text, read.box) for read in result.lines)
                self._send(event="ocr", line=line, lines=lines)
        return {"event": "ocr_done"}

    def _code(self, path: Path, job: dict[str, Any]) -> dict[str, object]:
        from ingest.code.units import read_code

        return read_code(path).message()

    def _send_ocr_failure(self, failed: OcrFailure) -> None:
        if failed.code == INTERNAL:
            self._send_bug(Fault(failed.reason, failed.trace), failed.page)
        else:
            fields = {"code": failed.code, "reason": failed.reason, "tries": failed.tries}
            self._send(event="page_failed", page=failed.page, **fields)

    def _send_bug(self, fault: Fault, page: int | None = None) -> None:
        """Our own code failed: on a page, which the document goes on without, or on the document as a whole."""
        self._send(event="bug", page=page, reason=fault.reason, traceback=fault.trace)

    @staticmethod
    def _need(page: Page, *, force: bool) -> OcrNeed | None:
        return ocr_need(page, force=force)

    def _chunks(self, page: Page, title: str, job: dict[str, Any]) -> list[Chunk]:
        if self._counter is None:
            self._counter = token_counter(job["encoder"])
        counter = self._counter
        return chunk_page(page, title=title, count=counter.count_tokens, window=counter.max_tokens)

    def _progress(self, pages: int) -> Callable[[int], None]:
        """Reports every page before it is touched: the last one named is the one that crashed or hangs."""

        def report(number: int) -> None:
            self._send(event="page", page=number, pages=pages)

        return report

    def _send(self, **message: object) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def _write_images(page: Any, number: int, folder: Path) -> bool:
    """Draw a page, PyMuPDF's or None, into its two files. False if it cannot be drawn."""
    from PIL import Image

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
    for job in _jobs(sys.stdin):
        _limit_memory(job)
        worker.run(job)


def _jobs(stream: TextIO) -> Iterator[dict[str, Any]]:
    for line in stream:
        yield json.loads(line)


def _limit_memory(job: dict[str, Any]) -> None:
    small = job["task"] != "ocr" and is_light(job["encoder"])
    limit = _READING_LIMIT if small else _MEMORY_LIMIT
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    main()
