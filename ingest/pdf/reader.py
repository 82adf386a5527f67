"""A PDF file to a stream of `Page` records.

Two passes: the first reads every page once, gathers bounded statistics and buffers the lines in a temporary file; the
second writes the pages from there, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ingest.faults import NOT_OURS, Fault, FaultError, fault_of
from ingest.pdf.compose import Composer
from ingest.pdf.document_stats import DocumentStats
from ingest.pdf.extract import MAX_CHARACTERS, extract_page, is_full
from ingest.pdf.lines import RawPage
from ingest.pdf.mupdf import MupdfError, load_page, open_document, pymupdf
from ingest.pdf.outline import read_outline
from ingest.pdf.page_buffer import PageBuffer
from ingest.pdf.title import largest_text, metadata_title
from research.errors import DocumentError
from research.records import PAGE_GIVEN_UP, Page

_SHRINK_EVERY = 20  # pages; MuPDF's store of fonts and images otherwise grows to 256 MB
_DAMAGED = "the page is damaged"
_HOPELESS = 200  # pages failing in a row from the start of a document that claims absurdly many


class PdfReader:
    """An open PDF. Use as a context manager; `pages()` may be called once or again."""

    def __init__(self, path: Path) -> None:
        self._document = open_document(path)
        self.warnings: list[str] = []
        self.faults: dict[int, Fault] = {}  # pages that our own code failed on
        self.num_pages = self._believable_count()
        self._title: str | None = metadata_title(self._document) or None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def title(self) -> str:
        """The document's title; without one in its metadata, the largest words of its first page."""
        if self._title is None:
            raw = self._read(1)
            self._title = "" if raw.error else largest_text(raw)
        return self._title

    def raw_page(self, number: int) -> Any:
        """PyMuPDF's own page, 1-based, for drawing; None if it cannot be had."""
        try:
            return load_page(self._document, number)
        except MupdfError:
            return None

    def close(self) -> None:
        """Close the file. Harmless when done twice."""
        if not self._document.is_closed:
            self._document.close()

    def pages(self, *, skip: Container[int] = (), progress: Callable[[int], None] | None = None) -> Iterator[Page]:
        """Every page in physical order, numbered from 1.

        A page that cannot be read, or stands in `skip`, comes without text and with an `error`. `progress` is a
        callback: it gets the number of each page before it is touched, in both passes, so that a watcher knows which
        one hangs.
        """
        on_page = progress or (lambda number: None)
        buffer = PageBuffer()
        try:
            stats = self._first_pass(buffer, skip, on_page)
            outline = read_outline(self._document, self.num_pages)
            composer = Composer(stats, stats.fonts(), outline)
            for raw in buffer:
                on_page(raw.number)
                yield self._second_pass(composer, raw)
        finally:
            buffer.close()

    def _first_pass(self, buffer: PageBuffer, skip: Container[int], on_page: Callable[[int], None]) -> DocumentStats:
        stats = DocumentStats()
        good = 0
        for number in range(1, self.num_pages + 1):
            on_page(number)
            raw = _failed(number, PAGE_GIVEN_UP) if number in skip else self._read(number)
            raw = self._count(stats, raw)
            good += not raw.error
            if not good and number >= _HOPELESS:
                break
            buffer.append(raw)
            if number % _SHRINK_EVERY == 0:
                pymupdf.TOOLS.store_shrink(100)
        if not good and self.faults:
            raise FaultError(next(iter(self.faults.values())))
        if not good:
            raise DocumentError("damaged", "no page of the PDF can be read")
        return stats

    def _read(self, number: int) -> RawPage:
        try:
            return extract_page(load_page(self._document, number), number)
        except MupdfError:
            return _failed(number, _DAMAGED)
        except NOT_OURS:
            raise
        except Exception as error:  # noqa: BLE001  a mistake of ours costs one page, and is told
            return _failed(number, self._keep_fault(number, error))

    def _count(self, stats: DocumentStats, raw: RawPage) -> RawPage:
        """Take a page into the statistics; a page they fail on is left out."""
        try:
            self._note(raw)
            stats.add(raw)
        except NOT_OURS:
            raise
        except Exception as error:  # noqa: BLE001  as above
            return _failed(raw.number, self._keep_fault(raw.number, error))
        return raw

    def _keep_fault(self, number: int, error: Exception) -> str:
        """Why a page has no text, where the reason is a mistake of ours; it is kept to be told."""
        self.faults[number] = fault_of(error)
        return self.faults[number].reason

    def _second_pass(self, composer: Composer, raw: RawPage) -> Page:
        if raw.error:
            return Page(number=raw.number, markdown="", error=raw.error)
        try:
            return self._compose(composer, raw)
        except NOT_OURS:
            raise
        except Exception as error:  # noqa: BLE001  as above
            return Page(number=raw.number, markdown="", error=self._keep_fault(raw.number, error))

    def _compose(self, composer: Composer, raw: RawPage) -> Page:
        return composer.compose(raw, self.raw_page(raw.number) if raw.ruled else None)

    def _believable_count(self) -> int:
        """The number of pages, as far as there are objects for them: a broken file may claim two billions."""
        claimed = int(self._document.page_count)
        objects = max(1, int(self._document.xref_length()))
        if claimed > objects:
            self.warnings.append(f"the PDF claims {claimed} pages but holds only {objects} objects")
        if self._document.is_repaired:
            self.warnings.append("the PDF was damaged and has been repaired")
        return min(claimed, objects)

    def _note(self, raw: RawPage) -> None:
        """Take from a page what concerns the whole document."""
        if raw.number == 1 and self._title is None:
            # Not read apart: a first page that hangs must be known as the one that does.
            self._title = "" if raw.error else largest_text(raw)
        if is_full(raw):
            self.warnings.append(f"page {raw.number}: text beyond {MAX_CHARACTERS:,} characters is left out")


def open_pdf(path: Path) -> PdfReader:
    """Open a PDF, or raise `DocumentError` with a code: encrypted, damaged, not_a_pdf, empty, no_pages, unreadable."""
    return PdfReader(path)


def _failed(number: int, reason: str) -> RawPage:
    return RawPage(number, 0.0, 0.0, "", rotated=False, lines=(), pictures=(), ruled=False, error=reason)
