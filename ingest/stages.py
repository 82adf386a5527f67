"""What happens to documents after they were read, and what the stages of a run share.

A stage is a function that works off what the catalog's ledger says is unfinished, and returns at once where there is
nothing. It commits as it goes: stopped anywhere, the next run goes on there. A document or page that fails is noted in
the catalog and told, and the rest goes on. The visual side stands in `ingest.encoder`.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from ingest.encoder import RunEncoder, embed_items
from ingest.jobs import UNREADABLE, DocumentDone, Failed, Job, PageOcrDone, Task
from ingest.ocr import choose_engine
from ingest.pool import Limits, Pool
from ingest.report import IngestSummary, Observer, report_failure
from ingest.scan import stamp_of
from research.encoders import TextEncoder, usable_cores
from research.errors import CtxError, DocumentError
from research.graph import is_behind, update_graph
from research.observe import log_failure
from research.records import FailedPage
from research.settings import Settings
from research.store import KINDS, Catalog, files, generations, ledger, make_folder, publish_in_subprocess

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


def _unfinished_files(work: Work, stage: str) -> Iterator[tuple[str, Path]]:
    """Documents of a stage whose file is still the one that was read; one whose file is gone keeps its entry."""
    for doc_id in work.catalog.ledger.unfinished().get(stage, []):
        info = work.catalog.documents.get(doc_id)
        if info is None:
            continue
        path = work.files.get(info.source_path, Path(info.source_path))
        if _is_current(work.catalog, doc_id, path, info.source_path):
            yield doc_id, path


def _is_same_file(work: Work, job: Job) -> bool:
    """Whether the file is still the one that the job began with. If not, what came of it belongs to another content,
    and the ledger keeps the document for the next run."""
    info = work.catalog.documents.get(job.doc_id)
    return info is not None and _is_current(work.catalog, job.doc_id, job.path, info.source_path)


def _pages_to_skip(work: Work, doc_id: str, stage: str) -> tuple[int, ...]:
    """Pages that a stage does not touch: those that broke the reader, and those that wait in this stage.

    A page that only our own code failed on can still be rendered.
    """
    failed = work.catalog.ledger.failures(doc_id)
    broken = {
        f.page
        for f in failed
        if f.stage == ledger.STAGE_READ and (f.code != ledger.INTERNAL or stage == ledger.STAGE_OCR)
    }
    return tuple(sorted(broken | {f.page for f in failed if f.stage == stage and ledger.waits(f)}))


def _report_failures(work: Work, doc_id: str, failed: Sequence[FailedPage]) -> None:
    info = work.catalog.documents.get(doc_id)
    for page in failed:
        report_failure(work, info.source_path if info else "", page)


def _is_current(catalog: Catalog, doc_id: str, path: Path, source_path: str) -> bool:
    known = catalog.documents.at_path(source_path)
    try:
        return known is not None and known[0] == doc_id and stamp_of(path) == known[1]
    except DocumentError:
        return False


def embed(work: Work) -> None:
    """Give every chunk a vector, in batches, each batch a commit."""
    other = work.encoder.is_other_than(work.catalog)
    if not other and not work.catalog.ledger.unfinished().get(ledger.STAGE_VECTORS):
        return
    if other or work.catalog.ledger.count_pending():
        encoder = work.encoder.load()
        before = getattr(encoder, "halved", 0)  # of an encoder at an address
        _check_window(work.catalog, encoder)
        if work.encoder.declare(work.catalog):
            work.observer.on_note(f"another model answers as {encoder.name} now; all documents are embedded anew")
        if total := work.catalog.ledger.count_pending():
            _embed_chunks(work, encoder, total)
        if halved := getattr(encoder, "halved", 0) - before:
            work.observer.on_note(
                f"passages longer than {encoder.name} takes: {halved}; the vector of each is the mean of its parts"
            )
    work.catalog.ledger.close()


def _embed_chunks(work: Work, encoder: TextEncoder, total: int) -> None:
    done = 0
    work.observer.on_progress("embed", done, total)
    chunks = work.catalog.chunks.pending()
    while batch := list(islice(chunks, _BATCH)):
        matrix = encoder.embed([chunk.text for chunk in batch])
        work.catalog.chunks.write([chunk.chunk_id for chunk in batch], matrix)
        work.embedded.extend(chunk.chunk_id for chunk in batch)
        done += len(batch)
        work.observer.on_progress("embed", done, total)


def _check_window(catalog: Catalog, encoder: TextEncoder) -> None:
    """Chunks were cut for the encoder that first filled the index; one with a smaller window cannot take them."""
    longest = catalog.chunks.longest()
    if longest > encoder.max_tokens:
        raise CtxError(
            f"chunks of this index have up to {longest} tokens, and {encoder.name} takes {encoder.max_tokens}",
            hint="ingest into an index of its own: ctx ingest PATH --index DIR",
        )


def render(work: Work) -> None:
    """Have page images and thumbnails drawn by the reading processes, into folders that are then put in place whole."""
    if not work.settings.images:
        return
    spool = work.catalog.paths.spool
    jobs = [
        Job(
            "render",
            path,
            doc_id,
            spool / f"{doc_id}.images",
            skip_pages=_pages_to_skip(work, doc_id, ledger.STAGE_IMAGES),
        )
        for doc_id, path in _unfinished_files(work, ledger.STAGE_IMAGES)
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
            failed.setdefault(doc_id, {})[event.page] = event.at(ledger.STAGE_IMAGES)
        elif isinstance(event, DocumentDone | Failed) and _is_same_file(work, event.job):
            _put_in_place(work, event, list(failed.get(doc_id, {}).values()), published)
            done += 1
            work.observer.on_progress("render", done, len(jobs))


def _put_in_place(work: Work, event: DocumentDone | Failed, failed: list[FailedPage], published: int) -> None:
    """Put a document's images in place, or note why it has none. A file that cannot be opened just now keeps its
    entry in the ledger, and is tried again by the next run; what else fails as a whole would do so again."""
    doc_id = event.job.doc_id
    if isinstance(event, DocumentDone):
        files.adopt_images(work.catalog.paths, doc_id, event.job.output)
        work.catalog.documents.mark_drawn(doc_id, event.pages, published=published, failed=failed)
    else:
        failed = [event.at(ledger.STAGE_IMAGES)]
        if event.code != UNREADABLE:
            work.catalog.documents.mark_drawn(doc_id, [], published=published, failed=failed)
    _report_failures(work, doc_id, failed)


def read_by_ocr(work: Work) -> None:
    """Read what has no text, page by page; each page is committed as it comes."""
    settings = work.settings
    if settings.ocr == "off":
        return
    jobs = list(_ocr_jobs(work))
    # What is missing, an engine or its language, is one error now, not one a document later; and where one was named,
    # it is told whether there is something to read or not.
    if work.catalog.ledger.unfinished().get(ledger.STAGE_OCR) or settings.ocr_engine != "auto" or settings.ocr_language:
        choose_engine(settings.ocr_engine, language=settings.ocr_language)
    if not jobs:
        return
    total, done = sum(len(job.pages) for job in jobs), 0
    read: Counter[str] = Counter()  # pages of each document
    work.observer.on_progress("ocr", 0, total)
    with Pool(min(len(jobs), usable_cores()), work.limits) as pool:
        for event in pool.run(jobs):
            if not isinstance(event, PageOcrDone | Failed) or not _is_same_file(work, event.job):
                continue
            doc_id = event.job.doc_id
            if isinstance(event, PageOcrDone):
                work.catalog.documents.write_ocr(doc_id, event.page, event.chunks, event.lines)
                work.summary.ocr_pages += 1
                read[doc_id] += 1
                done += 1
            elif not event.page:
                left = _unread(work, event.job)
                _give_up_pages(work, event, left)
                done += len(left)
            elif event.page in event.job.pages:  # of any other the text is there; OCR only passed over it
                _give_up_pages(work, event, [event.page])
                done += 1
            else:
                continue
            work.observer.on_progress("ocr", done, total)
    for job in jobs:  # what a finished job passed over needs no OCR after all
        if _is_same_file(work, job):
            work.catalog.documents.needs_no_ocr(job.doc_id, _unread(work, job))
    _warn_of_unread(work, jobs, read)


def _unread(work: Work, job: Job) -> list[int]:
    return sorted(set(work.catalog.ledger.pages_for_ocr(job.doc_id)) & set(job.pages))


def _ocr_jobs(work: Work) -> Iterator[Job]:
    settings, counter = work.settings, ""
    for doc_id, path in _unfinished_files(work, ledger.STAGE_OCR):
        counter = counter or work.encoder.token_counter(work.catalog.paths.spool)
        pages = work.catalog.ledger.pages_for_ocr(doc_id)
        whole = Job(
            "ocr",
            path,
            doc_id,
            Path(),
            counter,
            engine=settings.ocr_engine,
            language=settings.ocr_language,
            force=settings.ocr == "force",
            skip_pages=_pages_to_skip(work, doc_id, ledger.STAGE_OCR),
        )
        size = max(_LEAST_PAGES_A_JOB, math.ceil(len(pages) / usable_cores()))
        for start in range(0, len(pages), size):
            yield replace(whole, pages=tuple(pages[start : start + size]))


def _warn_of_unread(work: Work, jobs: list[Job], read: Counter[str]) -> None:
    """Say of each document that OCR failed on how much of it was read after all."""
    wanted: Counter[str] = Counter()
    for job in jobs:
        wanted[job.doc_id] += len(job.pages)
    failed = {page.path for page in work.summary.failed_pages if page.stage == ledger.STAGE_OCR}
    for doc_id, pages in wanted.items():
        info = work.catalog.documents.get(doc_id)
        if info is not None and info.source_path in failed:
            message = f"pages that need OCR: {pages}, of which it read {read[doc_id]}"
            work.summary.warn(info.source_path, message)
            work.observer.on_warning(info.source_path, message)


def _give_up_pages(work: Work, event: Failed, pages: list[int]) -> None:
    failed = [replace(event.at(ledger.STAGE_OCR), page=page) for page in pages]
    work.catalog.documents.give_up_ocr(event.job.doc_id, failed)
    work.summary.ocr_failures.extend(f"{event.job.path.name}, page {page}: {event.reason}" for page in pages)
    _report_failures(work, event.job.doc_id, failed)


def embed_all_items(work: Work) -> None:
    """Give a vector to every item that has none: what an earlier run left, and everything once another encoder has
    taken over."""
    there = work.catalog.items.count()
    for kind in KINDS:
        if kind in there:
            embed_items(work.catalog, kind, work.encoder, work.observer)


def update_graph_of(catalog: Catalog) -> None:
    """Bring the graph up to the catalog: what documents, code and commits say of each other. What is left to do, or
    fails, is left to the first question that needs it: no run fails for it."""
    try:
        if is_behind(catalog):
            update_graph(catalog)
    except Exception as error:  # noqa: BLE001  the documents are there, and that is what a run is for
        log_failure("graph", "bringing it up to date", error)


def publish(work: Work) -> None:
    """Bring the collections up to the catalog, if it is worth it."""
    state = generations.state_of(work.catalog)
    if state.due or state.overdue:
        work.observer.on_progress("publish", 0, 1)
        publish_in_subprocess(work.catalog.paths)
