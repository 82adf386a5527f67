"""The stages after the text is in: page images, and OCR of what has no text. Both go on where they were stopped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ingest.giving_up import report_failure, whole_document
from ingest.jobs import DocumentDrawn, DocumentFailed, Job, PageFailed, PageOcred, Task
from ingest.ocr.choose import choose_engine
from ingest.pool import Limits, Pool
from ingest.report import IngestSummary, Observer
from ingest.scan import stamp_of
from research.errors import DocumentError
from research.records import FailedPage
from research.settings import Settings
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import document_at_path, get_document, unfinished
from research.store.catalog.failures import INTERNAL, failures_of, waits
from research.store.catalog.ledger import STAGE_IMAGES, STAGE_OCR, STAGE_READ
from research.store.catalog.page_writes import (
    ask_for_images,
    give_up_ocr,
    mark_drawn,
    needs_no_ocr,
    pages_for_ocr,
    write_ocr,
)
from research.store.files import images
from research.store.files.own_files import make_folder
from research.store.vectors import sync_state

_LEAST_PAGES_A_JOB = 8  # each job reads its document once more, which costs about a tenth of one page's OCR


class LaterStages:
    """Works off the ledger with the same reading processes; a document whose file is gone keeps its entry."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        observer: Observer,
        summary: IngestSummary,
        limits: Mapping[Task, Limits],
    ) -> None:
        # Files of this run by the text they are stored under, which for odd names is not the name on disk.
        self.files: dict[str, Path] = {}
        self._catalog = catalog
        self._settings = settings
        self._observer = observer
        self._summary = summary
        self._limits = limits

    def draw(self, cores: int) -> None:
        """Page images and thumbnails, also of documents that were read by a run without images."""
        spool = self._catalog.paths.spool
        ask_for_images(self._catalog)
        jobs = [
            Job("draw", path, doc_id, spool / f"{doc_id}.images", skip=self._left_out(doc_id, STAGE_IMAGES))
            for doc_id, path in self._files(STAGE_IMAGES)
        ]
        if not jobs:
            return
        make_folder(spool)
        generation = sync_state.current(self._catalog)
        published = generation.upto if generation else 0
        done = 0
        failed: dict[str, dict[int, FailedPage]] = {}
        with Pool(min(len(jobs), cores), self._limits) as pool:
            for event in pool.read(jobs):
                doc_id = event.job.doc_id
                if isinstance(event, DocumentDrawn | DocumentFailed) and not self._same_file(event.job):
                    continue  # what came of it belongs to another content; the ledger keeps it for the next run
                if isinstance(event, PageFailed):
                    page = FailedPage(event.page, STAGE_IMAGES, event.code, event.reason, event.tries)
                    failed.setdefault(doc_id, {})[event.page] = page
                    continue
                if isinstance(event, DocumentDrawn):
                    images.adopt(self._catalog.paths, doc_id, event.job.spool)
                    given_up = list(failed.get(doc_id, {}).values())
                    mark_drawn(self._catalog, doc_id, event.pages, published=published, failed=given_up)
                    self._report(doc_id, given_up)
                elif isinstance(event, DocumentFailed):
                    given_up = whole_document(event, STAGE_IMAGES)
                    mark_drawn(self._catalog, doc_id, [], published=published, failed=given_up)
                    self._report(doc_id, given_up)
                else:
                    continue
                done += 1
                self._observer.drawing(done, len(jobs))

    def recognise(self, token_counter: Callable[[], str], cores: int) -> None:
        """OCR, page by page; each page is committed as it comes. Chunks are measured by `token_counter`."""
        if self._settings.ocr == "off":
            return
        jobs = list(self._ocr_jobs(token_counter, cores))
        engine, language = self._settings.ocr_engine, self._settings.ocr_language
        if jobs or engine != "auto" or language:
            choose_engine(engine, language=language)  # what is missing is one error now, not one a document later
        total, done = sum(len(job.pages) for job in jobs), 0
        if not jobs:
            return
        self._observer.recognising(0, total)
        with Pool(min(len(jobs), cores), self._limits) as pool:
            for event in pool.read(jobs):
                if isinstance(event, PageOcred | PageFailed | DocumentFailed) and not self._same_file(event.job):
                    continue
                if isinstance(event, PageOcred):
                    write_ocr(self._catalog, event.job.doc_id, event.page, event.chunks, event.lines)
                    self._summary.ocr_pages += 1
                elif isinstance(event, PageFailed):
                    if event.page not in event.job.pages:  # it has its text; OCR only passed over it
                        continue
                    self._give_up(event, [event.page])
                elif isinstance(event, DocumentFailed):
                    left = set(pages_for_ocr(self._catalog, event.job.doc_id)) & set(event.job.pages)
                    self._give_up(event, sorted(left))
                    done += len(left) - 1
                else:
                    continue
                done += 1
                self._observer.recognising(done, total)
        self._settle(jobs)

    def _ocr_jobs(self, token_counter: Callable[[], str], cores: int) -> Iterator[Job]:
        force = self._settings.ocr == "force"
        counter = ""
        for doc_id, path in self._files(STAGE_OCR):
            counter = counter or token_counter()
            pages = pages_for_ocr(self._catalog, doc_id)
            skip = self._left_out(doc_id, STAGE_OCR)
            size = max(_LEAST_PAGES_A_JOB, math.ceil(len(pages) / cores))
            for start in range(0, len(pages), size):
                part = tuple(pages[start : start + size])
                engine, language = self._settings.ocr_engine, self._settings.ocr_language
                yield Job("ocr", path, doc_id, Path(), counter, part, engine, language, force=force, skip=skip)

    def _settle(self, jobs: list[Job]) -> None:
        """Pages that a finished job passed over need no OCR after all."""
        for job in filter(self._same_file, jobs):
            left = set(pages_for_ocr(self._catalog, job.doc_id)) & set(job.pages)
            needs_no_ocr(self._catalog, job.doc_id, sorted(left))

    def _give_up(self, event: PageFailed | DocumentFailed, pages: list[int]) -> None:
        failed = [FailedPage(page, STAGE_OCR, event.code, event.reason, event.tries) for page in pages]
        give_up_ocr(self._catalog, event.job.doc_id, failed)
        self._summary.ocr_failures.extend(f"{event.job.path.name}, page {page}: {event.reason}" for page in pages)
        self._report(event.job.doc_id, failed)

    def _report(self, doc_id: str, failed: list[FailedPage]) -> None:
        info = get_document(self._catalog, doc_id)
        for page in failed:
            report_failure(self._summary, self._observer, info.source_path if info else "", page)

    def _left_out(self, doc_id: str, stage: str) -> tuple[int, ...]:
        """Pages that a stage does not touch: those that broke the reader, and those that wait in this stage.

        A page that only our own code failed on can still be drawn.
        """
        failed = failures_of(self._catalog, doc_id)
        broken = {f.page for f in failed if f.stage == STAGE_READ and (f.code != INTERNAL or stage == STAGE_OCR)}
        return tuple(sorted(broken | {f.page for f in failed if f.stage == stage and waits(f)}))

    def _files(self, stage: str) -> Iterator[tuple[str, Path]]:
        """Documents of a stage whose file is still the one that was read."""
        for doc_id in unfinished(self._catalog).get(stage, []):
            info = get_document(self._catalog, doc_id)
            if info is None:
                continue
            path = self.files.get(info.source_path, Path(info.source_path))
            if self._is_current(doc_id, path, info.source_path):
                yield doc_id, path

    def _same_file(self, job: Job) -> bool:
        info = get_document(self._catalog, job.doc_id)
        return info is not None and self._is_current(job.doc_id, job.path, info.source_path)

    def _is_current(self, doc_id: str, path: Path, source_path: str) -> bool:
        known = document_at_path(self._catalog, source_path)
        try:
            return known is not None and known[0] == doc_id and stamp_of(path) == known[1]
        except DocumentError:
            return False
