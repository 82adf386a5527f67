"""OCR of what has no text, page by page; each page is committed as it comes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ingest.jobs import DocumentFailed, Job, PageFailed, PageOcrDone
from ingest.ocr.choose import choose_engine
from ingest.pool import Pool
from ingest.stages.base import Work, has_unfinished, is_same_file, pages_to_skip, report_failures, unfinished_files
from research.encoders import usable_cores
from research.records import FailedPage
from research.store.catalog.document_writes import give_up_ocr, needs_no_ocr, write_ocr
from research.store.catalog.documents import get_document
from research.store.catalog.ledger import STAGE_OCR, pages_for_ocr

_LEAST_PAGES_A_JOB = 8  # each job reads its document once more, which costs about a tenth of one page's OCR


class OcrStage:
    name = "ocr"

    def pending(self, work: Work) -> bool:
        """Also where an engine was named: that it is missing is told, whether there is something to read or not."""
        named = work.settings.ocr_engine != "auto" or bool(work.settings.ocr_language)
        return work.settings.ocr != "off" and (named or has_unfinished(work, STAGE_OCR))

    def run(self, work: Work) -> None:
        jobs = list(_jobs(work))
        # What is missing, an engine or its language, is one error now, not one a document later.
        choose_engine(work.settings.ocr_engine, language=work.settings.ocr_language)
        if not jobs:
            return
        total, done = sum(len(job.pages) for job in jobs), 0
        read: Counter[str] = Counter()  # pages of each document
        work.observer.on_ocr(0, total)
        with Pool(min(len(jobs), usable_cores()), work.limits) as pool:
            for event in pool.run(jobs):
                if not isinstance(event, PageOcrDone | PageFailed | DocumentFailed):
                    continue
                if not is_same_file(work, event.job):
                    continue
                if isinstance(event, PageOcrDone):
                    write_ocr(work.catalog, event.job.doc_id, event.page, event.chunks, event.lines)
                    work.summary.ocr_pages += 1
                    read[event.job.doc_id] += 1
                elif isinstance(event, PageFailed):
                    if event.page not in event.job.pages:  # it has its text; OCR only passed over it
                        continue
                    _give_up(work, event, [event.page])
                else:
                    left = set(pages_for_ocr(work.catalog, event.job.doc_id)) & set(event.job.pages)
                    _give_up(work, event, sorted(left))
                    done += len(left) - 1
                done += 1
                work.observer.on_ocr(done, total)
        _settle(work, jobs)
        _warn(work, jobs, read)


def _jobs(work: Work) -> Iterator[Job]:
    force = work.settings.ocr == "force"
    counter = ""
    for doc_id, path in unfinished_files(work, STAGE_OCR):
        counter = counter or work.encoder.token_counter(work.catalog.paths.spool)
        pages = pages_for_ocr(work.catalog, doc_id)
        skip = pages_to_skip(work, doc_id, STAGE_OCR)
        size = max(_LEAST_PAGES_A_JOB, math.ceil(len(pages) / usable_cores()))
        for start in range(0, len(pages), size):
            part = tuple(pages[start : start + size])
            yield Job(
                "ocr",
                path,
                doc_id,
                Path(),
                counter,
                part,
                engine=work.settings.ocr_engine,
                language=work.settings.ocr_language,
                force=force,
                skip_pages=skip,
            )


def _settle(work: Work, jobs: list[Job]) -> None:
    """Pages that a finished job passed over need no OCR after all."""
    for job in jobs:
        if is_same_file(work, job):
            left = set(pages_for_ocr(work.catalog, job.doc_id)) & set(job.pages)
            needs_no_ocr(work.catalog, job.doc_id, sorted(left))


def _warn(work: Work, jobs: list[Job], read: Counter[str]) -> None:
    """Say of each document that OCR failed on how much of it was read after all."""
    wanted: Counter[str] = Counter()
    for job in jobs:
        wanted[job.doc_id] += len(job.pages)
    failed = {page.path for page in work.summary.failed_pages if page.stage == STAGE_OCR}
    for doc_id, pages in wanted.items():
        info = get_document(work.catalog, doc_id)
        if info is not None and info.source_path in failed:
            message = f"pages that need OCR: {pages}, of which it read {read[doc_id]}"
            work.summary.warn(info.source_path, message)
            work.observer.on_warning(info.source_path, message)


def _give_up(work: Work, event: PageFailed | DocumentFailed, pages: list[int]) -> None:
    failed = [FailedPage(page, STAGE_OCR, event.code, event.reason, event.tries) for page in pages]
    give_up_ocr(work.catalog, event.job.doc_id, failed)
    work.summary.ocr_failures.extend(f"{event.job.path.name}, page {page}: {event.reason}" for page in pages)
    report_failures(work, event.job.doc_id, failed)
