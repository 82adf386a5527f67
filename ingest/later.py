"""The stages after the text is in: page images, and OCR of what has no text. Both go on where they were stopped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

from ingest.jobs import DocumentDrawn, DocumentFailed, Job, PageFailed, PageOcred
from ingest.ocr.engines import choose_engine
from ingest.pool import Pool
from ingest.report import IngestSummary, Observer
from ingest.scan import stamp_of
from research.errors import DocumentError
from research.settings import Settings
from research.store import collections, images
from research.store.catalog import Catalog
from research.store.documents import document_at_path, get_document, unfinished
from research.store.page_writes import (
    ask_for_images,
    give_up_ocr,
    mark_drawn,
    pages_for_ocr,
    pages_given_up,
    write_ocr,
)
from research.store.stages import STAGE_IMAGES, STAGE_OCR

_LEAST_PAGES_A_JOB = 8  # each job reads its document once more, which costs about a tenth of one page's OCR


class LaterStages:
    """Works off the ledger with the same reading processes; a document whose file is gone keeps its entry."""

    def __init__(self, catalog: Catalog, settings: Settings, observer: Observer, summary: IngestSummary) -> None:
        # Files of this run by the text they are stored under, which for odd names is not the name on disk.
        self.files: dict[str, Path] = {}
        self._catalog = catalog
        self._settings = settings
        self._observer = observer
        self._summary = summary

    def draw(self, cores: int) -> None:
        """Page images and thumbnails, also of documents that were read by a run without images."""
        spool = self._catalog.paths.spool
        ask_for_images(self._catalog)
        jobs = [
            Job("draw", path, doc_id, spool / f"{doc_id}.images", skip=pages_given_up(self._catalog, doc_id))
            for doc_id, path in self._files(STAGE_IMAGES)
        ]
        if not jobs:
            return
        spool.mkdir(mode=0o700, exist_ok=True)
        generation = collections.current(self._catalog)
        published = generation.upto if generation else 0
        done = 0
        with Pool(min(len(jobs), cores)) as pool:
            for event in pool.read(jobs):
                if isinstance(event, DocumentDrawn | DocumentFailed) and not self._same_file(event.job):
                    continue  # what came of it belongs to another content; the ledger keeps it for the next run
                if isinstance(event, DocumentDrawn):
                    images.adopt(self._catalog.paths, event.job.doc_id, event.job.spool)
                    mark_drawn(self._catalog, event.job.doc_id, event.pages, published=published)
                elif isinstance(event, DocumentFailed):
                    mark_drawn(self._catalog, event.job.doc_id, [], published=published)
                else:
                    continue
                done += 1
                self._observer.drawing(done, len(jobs))

    def recognise(self, token_counter: Callable[[], str], cores: int) -> None:
        """OCR, page by page; each page is committed as it comes. Chunks are measured by `token_counter`."""
        if self._settings.ocr == "off":
            return
        jobs = list(self._ocr_jobs(token_counter, cores))
        if jobs or self._settings.ocr_engine != "auto":
            choose_engine(self._settings.ocr_engine)  # a missing engine is one error now, not one a document later
        total, done = sum(len(job.pages) for job in jobs), 0
        if not jobs:
            return
        self._observer.recognising(0, total)
        with Pool(min(len(jobs), cores)) as pool:
            for event in pool.read(jobs):
                if isinstance(event, PageOcred | PageFailed | DocumentFailed) and not self._same_file(event.job):
                    continue
                if isinstance(event, PageOcred):
                    write_ocr(self._catalog, event.job.doc_id, event.page, event.chunks, event.lines)
                    self._summary.ocr_pages += 1
                elif isinstance(event, PageFailed):
                    self._give_up(event.job, [event.page], event.reason)
                elif isinstance(event, DocumentFailed):
                    left = set(pages_for_ocr(self._catalog, event.job.doc_id)) & set(event.job.pages)
                    self._give_up(event.job, sorted(left), event.reason)
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
            skip = pages_given_up(self._catalog, doc_id)
            size = max(_LEAST_PAGES_A_JOB, math.ceil(len(pages) / cores))
            for start in range(0, len(pages), size):
                part = tuple(pages[start : start + size])
                engine = self._settings.ocr_engine
                yield Job("ocr", path, doc_id, Path(), counter, part, engine=engine, force=force, skip=skip)

    def _settle(self, jobs: list[Job]) -> None:
        """Pages that a finished job passed over need no OCR after all."""
        for job in filter(self._same_file, jobs):
            left = set(pages_for_ocr(self._catalog, job.doc_id)) & set(job.pages)
            give_up_ocr(self._catalog, job.doc_id, sorted(left), "")

    def _give_up(self, job: Job, pages: list[int], reason: str) -> None:
        give_up_ocr(self._catalog, job.doc_id, pages, f"OCR failed: {reason}")
        self._summary.ocr_failures.extend(f"{job.path.name}, page {page}: {reason}" for page in pages)

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
