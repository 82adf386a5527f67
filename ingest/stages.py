"""What happens to documents after they were read: stages of one shape, and what the stages of a run share.

A stage works off what the catalog's ledger says is unfinished, and commits as it goes: stopped anywhere, the next run
goes on there. The stage of the visual side stands in `ingest.visual`.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

from ingest.encoder import RunEncoder, embed_items
from ingest.jobs import UNREADABLE, DocumentDone, Failed, Job, PageOcrDone, Task
from ingest.ocr import choose_engine
from ingest.pool import Limits, Pool
from ingest.report import IngestSummary, Observer, PageOutcome
from ingest.scan import stamp_of
from research.encoders import OpenAIEncoder, TextEncoder, usable_cores
from research.errors import CtxError, DocumentError
from research.graph import is_behind, update_graph
from research.observe import log_failure
from research.records import FailedPage
from research.settings import Settings
from research.store import (
    INTERNAL,
    KINDS,
    STAGE_IMAGES,
    STAGE_OCR,
    STAGE_READ,
    STAGE_VECTORS,
    Catalog,
    chunk_vectors,
    close_ledger,
    count_items,
    count_pending,
    document_at_path,
    failures_of,
    generations,
    get_document,
    give_up_ocr,
    images,
    make_folder,
    mark_drawn,
    needs_no_ocr,
    numbers_without_vectors,
    pages_for_ocr,
    publish_in_subprocess,
    unfinished,
    waits,
    write_ocr,
)

_BATCH = 128  # chunks a commit: a few seconds of work, all that a kill can cost
_LEAST_PAGES_A_JOB = 8  # each job reads its document once more, which costs about a tenth of one page's OCR


@dataclass
class Work:
    """One run: what it works with, and what it has to tell."""

    catalog: Catalog
    settings: Settings
    observer: Observer
    limits: Mapping[Task, Limits]
    # Files of this run by the text they are stored under, which for odd names is not the name on disk.
    files: Mapping[str, Path]
    # The processes that read and then render: to start one takes longer than most documents do. OCR has its own, which
    # hold a model and end with it.
    pool: Pool
    summary: IngestSummary = field(default_factory=IngestSummary)
    encoder: RunEncoder = field(default_factory=RunEncoder)
    visual: str = ""  # the visual encoder; empty where none can work
    embedded: array[int] = field(default_factory=lambda: array("q"))  # chunks that were given a vector


class Stage(Protocol):
    """One kind of work on documents that were read."""

    def pending(self, work: Work) -> bool:
        """Whether there is something for it to do."""

    def run(self, work: Work) -> None:
        """Do it. A document or page that fails is noted in the catalog and told, and the rest goes on."""


def _has_unfinished(work: Work, stage: str) -> bool:
    return bool(unfinished(work.catalog).get(stage))


def _unfinished_files(work: Work, stage: str) -> Iterator[tuple[str, Path]]:
    """Documents of a stage whose file is still the one that was read; one whose file is gone keeps its entry."""
    for doc_id in unfinished(work.catalog).get(stage, []):
        info = get_document(work.catalog, doc_id)
        if info is None:
            continue
        path = work.files.get(info.source_path, Path(info.source_path))
        if _is_current(work.catalog, doc_id, path, info.source_path):
            yield doc_id, path


def _is_same_file(work: Work, job: Job) -> bool:
    """Whether the file is still the one that the job began with. If not, what came of it belongs to another content,
    and the ledger keeps the document for the next run."""
    info = get_document(work.catalog, job.doc_id)
    return info is not None and _is_current(work.catalog, job.doc_id, job.path, info.source_path)


def _pages_to_skip(work: Work, doc_id: str, stage: str) -> tuple[int, ...]:
    """Pages that a stage does not touch: those that broke the reader, and those that wait in this stage.

    A page that only our own code failed on can still be rendered.
    """
    failed = failures_of(work.catalog, doc_id)
    broken = {f.page for f in failed if f.stage == STAGE_READ and (f.code != INTERNAL or stage == STAGE_OCR)}
    return tuple(sorted(broken | {f.page for f in failed if f.stage == stage and waits(f)}))


def report_failure(work: Work, path: str, failed: FailedPage) -> None:
    outcome = PageOutcome(path, failed.page, failed.stage, failed.code, failed.reason)
    work.summary.failed_pages.append(outcome)
    work.observer.on_failed_page(outcome)


def _report_failures(work: Work, doc_id: str, failed: Sequence[FailedPage]) -> None:
    info = get_document(work.catalog, doc_id)
    for page in failed:
        report_failure(work, info.source_path if info else "", page)


def _is_current(catalog: Catalog, doc_id: str, path: Path, source_path: str) -> bool:
    known = document_at_path(catalog, source_path)
    try:
        return known is not None and known[0] == doc_id and stamp_of(path) == known[1]
    except DocumentError:
        return False


class EmbedStage:
    """A vector for every chunk, in batches, each batch a commit."""

    def pending(self, work: Work) -> bool:
        return _has_unfinished(work, STAGE_VECTORS) or work.encoder.is_other_than(work.catalog)

    def run(self, work: Work) -> None:
        if count_pending(work.catalog) or work.encoder.is_other_than(work.catalog):
            encoder = work.encoder.load()
            _check_window(work.catalog, encoder)
            if work.encoder.declare(work.catalog):
                work.observer.on_note(f"another model answers as {encoder.name} now; all documents are embedded anew")
            total = count_pending(work.catalog)
            if total:
                _embed_chunks(work, encoder, total)
            if isinstance(encoder, OpenAIEncoder) and encoder.halved:
                _tell_halved(work, encoder)
        close_ledger(work.catalog)


def _embed_chunks(work: Work, encoder: TextEncoder, total: int) -> None:
    done = 0
    work.observer.on_embed(done, total)
    chunks = chunk_vectors.pending_chunks(work.catalog)
    while batch := list(islice(chunks, _BATCH)):
        matrix = encoder.embed([chunk.text for chunk in batch])
        chunk_vectors.write_vectors(work.catalog, [chunk.chunk_id for chunk in batch], matrix)
        work.embedded.extend(chunk.chunk_id for chunk in batch)
        done += len(batch)
        work.observer.on_embed(done, total)


def _tell_halved(work: Work, encoder: OpenAIEncoder) -> None:
    texts, encoder.halved = encoder.halved, 0
    work.observer.on_note(
        f"passages longer than {encoder.name} takes: {texts}; the vector of each is the mean of its parts"
    )


def _check_window(catalog: Catalog, encoder: TextEncoder) -> None:
    """Chunks were cut for the encoder that first filled the index; one with a smaller window cannot take them."""
    longest = chunk_vectors.longest_chunk(catalog)
    if longest > encoder.max_tokens:
        raise CtxError(
            f"chunks of this index have up to {longest} tokens, and {encoder.name} takes {encoder.max_tokens}",
            hint="ingest into an index of its own: ctx ingest PATH --index DIR",
        )


class RenderStage:
    """Page images and thumbnails, drawn by the reading processes into folders that are then put in place whole."""

    def pending(self, work: Work) -> bool:
        return work.settings.images and _has_unfinished(work, STAGE_IMAGES)

    def run(self, work: Work) -> None:
        spool = work.catalog.paths.spool
        jobs = [
            Job(
                "render",
                path,
                doc_id,
                spool / f"{doc_id}.images",
                skip_pages=_pages_to_skip(work, doc_id, STAGE_IMAGES),
            )
            for doc_id, path in _unfinished_files(work, STAGE_IMAGES)
        ]
        if not jobs:
            return
        make_folder(spool)
        generation = generations.current(work.catalog)
        published = generation.through_seq if generation else 0
        done = 0
        failed: dict[str, dict[int, FailedPage]] = {}
        for event in work.pool.run(jobs):
            doc_id = event.job.doc_id
            if isinstance(event, Failed) and event.page:
                failed.setdefault(doc_id, {})[event.page] = event.at(STAGE_IMAGES)
            elif isinstance(event, DocumentDone | Failed) and _is_same_file(work, event.job):
                _put_in_place(work, event, list(failed.get(doc_id, {}).values()), published)
                done += 1
                work.observer.on_render(done, len(jobs))


def _put_in_place(work: Work, event: DocumentDone | Failed, failed: list[FailedPage], published: int) -> None:
    """Put a document's images in place, or note why it has none. A file that cannot be opened just now keeps its
    entry in the ledger, and is tried again by the next run; what else fails as a whole would do so again."""
    doc_id = event.job.doc_id
    if isinstance(event, DocumentDone):
        images.adopt(work.catalog.paths, doc_id, event.job.output)
        mark_drawn(work.catalog, doc_id, event.pages, published=published, failed=failed)
    else:
        failed = [event.at(STAGE_IMAGES)]
        if event.code != UNREADABLE:
            mark_drawn(work.catalog, doc_id, [], published=published, failed=failed)
    _report_failures(work, doc_id, failed)


class OcrStage:
    """OCR of what has no text, page by page; each page is committed as it comes."""

    def pending(self, work: Work) -> bool:
        """Also where an engine was named: that it is missing is told, whether there is something to read or not."""
        named = work.settings.ocr_engine != "auto" or bool(work.settings.ocr_language)
        return work.settings.ocr != "off" and (named or _has_unfinished(work, STAGE_OCR))

    def run(self, work: Work) -> None:
        jobs = list(_ocr_jobs(work))
        # What is missing, an engine or its language, is one error now, not one a document later.
        choose_engine(work.settings.ocr_engine, language=work.settings.ocr_language)
        if not jobs:
            return
        total, done = sum(len(job.pages) for job in jobs), 0
        read: Counter[str] = Counter()  # pages of each document
        work.observer.on_ocr(0, total)
        with Pool(min(len(jobs), usable_cores()), work.limits) as pool:
            for event in pool.run(jobs):
                if not isinstance(event, PageOcrDone | Failed) or not _is_same_file(work, event.job):
                    continue
                if isinstance(event, PageOcrDone):
                    write_ocr(work.catalog, event.job.doc_id, event.page, event.chunks, event.lines)
                    work.summary.ocr_pages += 1
                    read[event.job.doc_id] += 1
                elif event.page:
                    if event.page not in event.job.pages:  # it has its text; OCR only passed over it
                        continue
                    _give_up_pages(work, event, [event.page])
                else:
                    left = set(pages_for_ocr(work.catalog, event.job.doc_id)) & set(event.job.pages)
                    _give_up_pages(work, event, sorted(left))
                    done += len(left) - 1
                done += 1
                work.observer.on_ocr(done, total)
        _settle_ocr(work, jobs)
        _warn_of_unread(work, jobs, read)


def _ocr_jobs(work: Work) -> Iterator[Job]:
    force = work.settings.ocr == "force"
    counter = ""
    for doc_id, path in _unfinished_files(work, STAGE_OCR):
        counter = counter or work.encoder.token_counter(work.catalog.paths.spool)
        pages = pages_for_ocr(work.catalog, doc_id)
        skip = _pages_to_skip(work, doc_id, STAGE_OCR)
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


def _settle_ocr(work: Work, jobs: list[Job]) -> None:
    """Pages that a finished job passed over need no OCR after all."""
    for job in jobs:
        if _is_same_file(work, job):
            left = set(pages_for_ocr(work.catalog, job.doc_id)) & set(job.pages)
            needs_no_ocr(work.catalog, job.doc_id, sorted(left))


def _warn_of_unread(work: Work, jobs: list[Job], read: Counter[str]) -> None:
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


def _give_up_pages(work: Work, event: Failed, pages: list[int]) -> None:
    failed = [replace(event.at(STAGE_OCR), page=page) for page in pages]
    give_up_ocr(work.catalog, event.job.doc_id, failed)
    work.summary.ocr_failures.extend(f"{event.job.path.name}, page {page}: {event.reason}" for page in pages)
    _report_failures(work, event.job.doc_id, failed)


class ItemsStage:
    """A vector for every item that has none: what an earlier run left, and everything once another encoder has taken
    over."""

    def pending(self, work: Work) -> bool:
        return bool(self._kinds(work))

    def run(self, work: Work) -> None:
        for kind in self._kinds(work):
            embed_items(work.catalog, kind, work.encoder, work.observer.on_embed)

    @staticmethod
    def _kinds(work: Work) -> list[str]:
        there = count_items(work.catalog)
        return [
            kind for kind in KINDS if kind in there and numbers_without_vectors(work.catalog, kind, work.encoder.name)
        ]


class GraphStage:
    """The graph, brought up to the catalog: what documents, code and commits say of each other."""

    def pending(self, work: Work) -> bool:
        return is_behind(work.catalog)

    def run(self, work: Work) -> None:
        update_graph_of(work.catalog)


def update_graph_of(catalog: Catalog) -> None:
    """What is left to do, or fails, is left to the first question that needs the graph: no run fails for it."""
    try:
        update_graph(catalog)
    except Exception as error:  # noqa: BLE001  the documents are there, and that is what a run is for
        log_failure("graph", "bringing it up to date", error)


class PublishStage:
    """The collections, brought up to the catalog."""

    def pending(self, work: Work) -> bool:
        return generations.state_of(work.catalog).behind

    def run(self, work: Work) -> None:
        work.observer.on_publish()
        publish_in_subprocess(work.catalog.paths)
