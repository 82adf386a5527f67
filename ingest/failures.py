"""Pages that a run gives up: telling of them, and carrying along what earlier runs gave up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ingest.jobs import DocumentFailed, Job
from ingest.report import IngestSummary, Observer, PageOutcome
from ingest.serialize import PageWithChunks
from research.records import FailedPage
from research.store.catalog.document_writes import ocr_error
from research.store.catalog.failures import waits
from research.store.catalog.ledger import STAGE_IMAGES, STAGE_OCR, STAGE_READ, WHOLE


def report_failure(summary: IngestSummary, observer: Observer, path: str, failed: FailedPage) -> None:
    outcome = PageOutcome(path, failed.page, failed.stage, failed.code, failed.reason)
    summary.failed_pages.append(outcome)
    observer.on_failed_page(outcome)


def document_failure(event: DocumentFailed, stage: str) -> FailedPage:
    """A stage's failure on a document as a whole."""
    return FailedPage(WHOLE, stage, event.code, event.reason, event.tries)


def kept_failures(earlier: Iterable[FailedPage], job: Job) -> list[FailedPage]:
    """What stays given up of a document that was read again: the pages left out, and what would only hang later."""
    return [
        page
        for page in earlier
        if waits(page)
        and (page.page in job.skip_pages if page.stage == STAGE_READ else page.stage in (STAGE_OCR, STAGE_IMAGES))
    ]


def skip_failed_ocr(pages: Iterable[PageWithChunks], kept: Sequence[FailedPage]) -> Iterator[PageWithChunks]:
    """The pages, of which those that OCR gave up do not ask for it again."""
    given_up = {page.page: page.reason for page in kept if page.stage == STAGE_OCR}
    for page, chunks in pages:
        if page.needs_ocr and page.number in given_up:
            yield replace(page, needs_ocr=False, error=ocr_error(given_up[page.number])), chunks
        else:
            yield page, chunks
