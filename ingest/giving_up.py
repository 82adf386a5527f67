"""Pages that a run gives up: telling of them, and carrying along what earlier runs gave up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ingest.jobs import DocumentFailed, Job
from ingest.report import IngestSummary, Observer, PageOutcome
from ingest.wire import PageWithChunks
from research.records import FailedPage
from research.store.catalog.failures import CRASHED, INTERNAL, KILLED, TIMEOUT, WHOLE, waits
from research.store.catalog.ledger import STAGE_IMAGES, STAGE_OCR, STAGE_READ
from research.store.catalog.page_writes import ocr_error


def report_failure(summary: IngestSummary, observer: Observer, path: str, failed: FailedPage) -> None:
    outcome = PageOutcome(path, failed.page, failed.stage, failed.code, failed.reason)
    summary.failed_pages.append(outcome)
    observer.gave_up(outcome)


def whole_document(event: DocumentFailed, stage: str) -> list[FailedPage]:
    """A stage's failure on a document as a whole, where it was a death; a file that cannot be opened just now is
    tried again without being noted."""
    if event.code not in (KILLED, CRASHED, TIMEOUT, INTERNAL):
        return []
    return [FailedPage(WHOLE, stage, event.code, event.reason, event.tries)]


def kept_failures(earlier: Iterable[FailedPage], job: Job) -> list[FailedPage]:
    """What stays given up of a document that was read again: the pages left out, and what would only hang later."""
    return [
        page
        for page in earlier
        if waits(page)
        and (page.page in job.skip if page.stage == STAGE_READ else page.stage in (STAGE_OCR, STAGE_IMAGES))
    ]


def without_hopeless_ocr(pages: Iterable[PageWithChunks], kept: Sequence[FailedPage]) -> Iterator[PageWithChunks]:
    """The pages, of which those that OCR gave up do not ask for it again."""
    given_up = {page.page: page.reason for page in kept if page.stage == STAGE_OCR}
    for page, chunks in pages:
        if page.needs_ocr and page.number in given_up:
            yield replace(page, needs_ocr=False, error=ocr_error(given_up[page.number])), chunks
        else:
            yield page, chunks
