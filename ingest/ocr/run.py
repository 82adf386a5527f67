"""OCR of one document, page by page, so that each page can be stored before the next is begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest.faults import NOT_OURS, fault_of
from ingest.ocr.assemble import OcrResult, read_page
from ingest.ocr.detect import OcrNeed
from ingest.ocr.engine import OCR_FAILED, OcrEngine, OcrError
from ingest.ocr.images import page_render
from ingest.pdf.mupdf import open_document, pymupdf
from research.records import Page
from research.store.catalog.failures import INTERNAL

_SHRINK_EVERY = 10  # pages; MuPDF keeps what it decoded


@dataclass(frozen=True, slots=True)
class OcrTask:
    """A page as the reader gave it, and what OCR should read of it."""

    page: Page
    need: OcrNeed


@dataclass(frozen=True, slots=True)
class OcrFailure:
    """A page that OCR could not read, and why. Its text is as it was."""

    page: int
    code: str
    reason: str
    tries: int = 1
    trace: str = ""  # where our own code failed


def ocr_document(
    path: Path, tasks: Iterable[OcrTask], engine: OcrEngine, *, progress: Callable[[int], None] | None = None
) -> Iterator[OcrResult | OcrFailure]:
    """Read the pages asked for, one after the other. A page that fails costs only itself.

    `progress` is a callback: it gets a page's number before it is touched. Raises `DocumentError` where the file cannot
    be opened.
    """
    on_page = progress or (lambda number: None)
    document = open_document(path)
    try:
        for done, task in enumerate(tasks, start=1):
            yield _read(task, document, engine, on_page)
            if done % _SHRINK_EVERY == 0:
                pymupdf.TOOLS.store_shrink(100)
    finally:
        document.close()


def _read(task: OcrTask, document: Any, engine: OcrEngine, on_page: Callable[[int], None]) -> OcrResult | OcrFailure:
    """One page. An engine that was killed, or took too long, is given a second try."""
    number, tries = task.page.number, 0
    while True:
        tries += 1
        on_page(number)
        try:
            return read_page(task.page, task.need, page_render(document, number), engine)
        except OcrError as error:
            if error.code == OCR_FAILED or tries == 2:
                return OcrFailure(number, error.code, error.message, tries)
        except NOT_OURS:
            raise
        except Exception as error:  # noqa: BLE001  one page's fault costs one page
            fault = fault_of(error)
            return OcrFailure(number, INTERNAL, fault.reason, tries, fault.trace)
