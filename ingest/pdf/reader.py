"""A PDF file to a stream of `Page` records, and the document's title.

Two passes: the first reads every page once, gathers bounded statistics and buffers the lines in a temporary file, so
that memory does not grow; the second writes the pages from there, one at a time.
"""

from __future__ import annotations

import marshal
import re
import tempfile
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from ingest.jobs import Fault, attempt
from ingest.pdf.compose import Composer, read_outline
from ingest.pdf.document import DocumentStats, join_lines
from ingest.pdf.lines import Line, RawPage, clean_text
from ingest.pdf.mupdf import (
    MAX_CHARACTERS,
    MupdfError,
    extract_page,
    is_full,
    load_page,
    mupdf_errors,
    open_document,
    pymupdf,
)
from research.errors import DocumentError
from research.records import PAGE_GIVEN_UP, Page

_SHRINK_EVERY = 20  # pages; MuPDF's store of fonts and images otherwise grows to 256 MB
_DAMAGED = "the page is damaged"
_HOPELESS = 200  # pages failing in a row from the start of a document that claims absurdly many
_BUFFER_IN_MEMORY = 4 << 20
_MAX_TITLE = 150
# Titles that programs write by themselves: their own name, a file's name, a placeholder.
_NO_TITLE = re.compile(
    r"(?:microsoft (?:office )?(?:word|powerpoint|excel)\b.*|untitled.*|unknown|title|none|null|print|cover|index"
    r"|(?:unbenannt|ohne titel|sans titre|sin t[íi]tulo|senza titolo|sem t[íi]tulo|naamloos|无标题|無題|名称未設定).*"
    r"|(?:dokument|documento|présentation|präsentation|presentación|presentazione|book|mappe|classeur)\s*\d*"
    r"|(?:table of )?contents|(?:new )?document\s*\d*|presentation\s*\d*|powerpoint[ -]presentation"
    r"|(?:slide|page|layout) \d+|.*[\\/].*\.\w{2,5}|[^ ]+\.[a-z]{2,5}|[\W\d_]*|[0-9a-f-]{16,}"
    r"|.*\.(?:docx?|pptx?|xlsx?|pdf|indd|qxd|html?|tex|dvi|ps|eps|fm|pmd|pub|rtf|txt|ai|cdr|psd))",
    re.IGNORECASE,
)


class PdfReader:
    """An open PDF. Use as a context manager; `pages()` may be called once or again. Raises `DocumentError` with a code:
    encrypted, damaged, not_a_pdf, empty, no_pages, unreadable."""

    def __init__(self, path: Path) -> None:
        self._document = open_document(path)
        self.warnings: list[str] = []
        self.faults: dict[int, Fault] = {}  # pages that our own code failed on
        self.num_pages = self._believable_count()
        self.title = _metadata_title(self._document)  # else the largest words of the first page, once that was read

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def raw_page(self, number: int) -> Any:
        """PyMuPDF's own page, 1-based, for drawing; None if it cannot be had."""
        try:
            return self._load(number)
        except MupdfError:
            return None

    def _load(self, number: int) -> Any:
        if number % _SHRINK_EVERY == 0:
            pymupdf.TOOLS.store_shrink(100)
        return load_page(self._document, number)

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
        buffer = _PageBuffer()
        try:
            stats = self._first_pass(buffer, skip, on_page)
            outline = read_outline(self._document, self.num_pages)
            composer = Composer(stats, stats.fonts(), outline)
            for raw in buffer:
                on_page(raw.number)
                yield self._second_pass(composer, raw)
        finally:
            buffer.close()

    def _first_pass(self, buffer: _PageBuffer, skip: Container[int], on_page: Callable[[int], None]) -> DocumentStats:
        stats = DocumentStats()
        good = 0
        for number in range(1, self.num_pages + 1):
            on_page(number)
            raw = attempt(self._read, number, stats, skipped=number in skip)
            if isinstance(raw, Fault):
                raw = _failed_page(number, self._keep(number, raw))
            good += not raw.error
            if not good and number >= _HOPELESS:
                break
            buffer.append(raw)
        if not good and self.faults:
            raise next(iter(self.faults.values()))
        if not good:
            raise DocumentError("no page of the PDF can be read", code="damaged")
        return stats

    def _read(self, number: int, stats: DocumentStats, *, skipped: bool) -> RawPage:
        """Read a page, and take from it what concerns the whole document."""
        try:
            raw = _failed_page(number, PAGE_GIVEN_UP) if skipped else extract_page(self._load(number), number)
        except MupdfError:
            raw = _failed_page(number, _DAMAGED)
        if number == 1 and not self.title and not raw.error:
            # Not read apart: a first page that hangs must be known as the one that does.
            self.title = _largest_text(raw)
        if is_full(raw):
            self.warnings.append(f"page {number}: text beyond {MAX_CHARACTERS:,} characters is left out")
        stats.add(raw)
        return raw

    def _keep(self, number: int, fault: Fault) -> str:
        """Keep why our own code failed on a page, to be told."""
        self.faults[number] = fault
        return fault.reason

    def _second_pass(self, composer: Composer, raw: RawPage) -> Page:
        if raw.error:
            return Page(number=raw.number, markdown="", error=raw.error)
        page = attempt(composer.compose, raw, self.raw_page(raw.number) if raw.ruled else None)
        return Page(raw.number, "", error=self._keep(raw.number, page)) if isinstance(page, Fault) else page

    def _believable_count(self) -> int:
        """The number of pages, as far as there are objects for them: a broken file may claim two billions."""
        claimed = int(self._document.page_count)
        objects = max(1, int(self._document.xref_length()))
        if claimed > objects:
            self.warnings.append(f"the PDF claims {claimed} pages but holds only {objects} objects")
        if self._document.is_repaired:
            self.warnings.append("the PDF was damaged and has been repaired")
        return min(claimed, objects)


def _failed_page(number: int, reason: str) -> RawPage:
    return RawPage(number, 0.0, 0.0, "", rotated=False, lines=(), pictures=(), ruled=False, error=reason)


class _PageBuffer:
    """Appends pages, then gives them back in order. The file vanishes when closed, or with the process."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_BUFFER_IN_MEMORY)  # noqa: SIM115 - closed by close()

    def append(self, page: RawPage) -> None:
        data = marshal.dumps(tuple(page._replace(lines=tuple(map(tuple, page.lines)))))  # type: ignore[arg-type]
        self._file.write(len(data).to_bytes(8, "big") + data)

    def __iter__(self) -> Iterator[RawPage]:
        position = 0
        while True:
            self._file.seek(position)
            size = int.from_bytes(self._file.read(8), "big")
            if not size:
                return
            position += 8 + size
            page = RawPage._make(marshal.loads(self._file.read(size)))
            yield page._replace(lines=tuple(map(Line._make, page.lines)))

    def close(self) -> None:
        self._file.close()


def _metadata_title(document: Any) -> str:
    """The title of the metadata, or nothing where it says nothing."""
    try:
        with mupdf_errors():
            metadata = document.metadata or {}
    except MupdfError:
        return ""
    title = clean_text(str(metadata.get("title") or "")[:500])
    readable = len(title) >= 3 and "\ufffd" not in title and not _NO_TITLE.fullmatch(title)
    return title[:_MAX_TITLE] if readable else ""


def _largest_text(page: RawPage) -> str:
    """The largest words of a page, if they are few enough to be a title and larger than the rest."""
    lines = [ln for ln in page.lines if ln.upright and sum(map(str.isalpha, ln.text)) > 1]
    if not lines:
        return ""
    size = max(line.size for line in lines)
    first = next(i for i, line in enumerate(lines) if line.size > 0.95 * size)
    run: list[Line] = []
    for line in lines[first:]:
        if line.size <= 0.95 * size:
            break
        run.append(line)
    if len(run) == len(lines) > 2:
        return ""  # one size throughout says nothing
    title = join_lines(line.text.strip() for line in run)
    return title if 3 <= len(title) <= _MAX_TITLE and not _NO_TITLE.fullmatch(title) else ""
