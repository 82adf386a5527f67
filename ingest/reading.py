"""Reading the files of a run: what is known is settled at once, the rest is read and committed document by document.

A file needs nothing, a new name, or to be read. What earlier runs gave up of its content is carried along.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ingest.jobs import DocumentFailed, DocumentRead, Job, PageFailed, PageStarted, PageWithChunks, read_pages
from ingest.pdf import READER_VERSION
from ingest.report import Account, FileOutcome, Result
from ingest.scan import hash_of, stamp_of, to_utf8
from ingest.stages import Work, report_failure
from research.errors import DocumentError
from research.records import DocumentInfo, FailedPage
from research.store import (
    STAGE_IMAGES,
    STAGE_OCR,
    STAGE_READ,
    TIMEOUT,
    Catalog,
    FailedFile,
    FileStamp,
    add_document,
    add_tries,
    document_at_path,
    document_of_hash,
    failed_file,
    failures_of,
    forget_files_gone,
    get_document,
    note_file,
    ocr_error,
    reader_version_of,
    record_file,
    rename_document,
    to_read_again,
    waits,
)


@dataclass(frozen=True, slots=True)
class ToRead:
    """A file whose content the catalog does not have, or not whole; `replaces` if its path is known already.

    `failed`: what earlier runs gave up of the same content.
    """

    path: Path
    stamp: FileStamp
    sha256: str
    replaces: bool
    failed: tuple[FailedPage, ...] = ()

    @property
    def doc_id(self) -> str:
        return self.sha256[:16]


@dataclass(frozen=True, slots=True)
class _Again:
    """What is to be read although it is known: documents with pages to try again; with `retry` whatever waits."""

    documents: Container[str] = ()
    retry: bool = False


def read_files(work: Work, files: Sequence[Path], *, retry: bool) -> None:
    """Settle what is known, read the rest; every file is accounted for in the summary."""
    forget_files_gone(work.catalog)
    again = _Again(to_read_again(work.catalog, waiting=retry), retry)
    to_read: dict[str, ToRead] = {}
    copies: list[ToRead] = []
    for path in files:
        step = plan(work.catalog, path, again)
        if isinstance(step, FileOutcome):
            finish(work, step)
        elif step.sha256 in to_read:
            copies.append(step)
        else:
            to_read[step.sha256] = step
    if to_read:
        work.observer.on_plan(len(to_read), sum(step.stamp.size for step in to_read.values()))
        _read(work, list(to_read.values()))
        for copy in copies:
            _settle_copy(work, copy)


def finish(work: Account, outcome: FileOutcome) -> None:
    work.summary.files.append(outcome)
    work.observer.on_file(outcome)


def plan(catalog: Catalog, path: Path, again: _Again | None = None) -> FileOutcome | ToRead:
    """Settle a file whose content is known, at once; otherwise say that it must be read."""
    again = again or _Again()
    try:
        stamp = stamp_of(path)
        known = document_at_path(catalog, stamp.path)
        unchanged = known is not None and known[1] == stamp and known[0] not in again.documents
        if known is not None and unchanged and reader_version_of(catalog, known[0]) == READER_VERSION:
            return FileOutcome(stamp.path, "unchanged", known[0])
        sha256 = hash_of(path)
    except DocumentError as error:
        return FileOutcome(to_utf8(path), "failed", code=error.code, reason=error.message)
    same = document_of_hash(catalog, sha256)
    if same is None:
        return _unless_hopeless(catalog, ToRead(path, stamp, sha256, replaces=known is not None), again)
    document = same[0]
    if same[1] != READER_VERSION or document.doc_id in again.documents:
        keep = same[1] == READER_VERSION and not again.retry
        failed = tuple(failures_of(catalog, document.doc_id)) if keep else ()
        if (known is None or known[0] != document.doc_id) and not Path(document.source_path).exists():
            # It moved, and is read again: the place it left is no copy of it.
            rename_document(catalog, document.doc_id, document.source_path, stamp, to_utf8(path.name))
        return ToRead(path, stamp, sha256, replaces=True, failed=failed)
    return _settle_known(catalog, path, stamp, document, known[0] if known is not None else "")


def _settle_known(catalog: Catalog, path: Path, stamp: FileStamp, document: DocumentInfo, known: str) -> FileOutcome:
    """Note where a document is now. `known`: the document that was at this path before."""
    if known == document.doc_id:
        note_file(catalog, document.doc_id, stamp)
        return FileOutcome(stamp.path, "unchanged", document.doc_id)
    if not Path(document.source_path).exists():
        rename_document(catalog, document.doc_id, document.source_path, stamp, to_utf8(path.name))
        return FileOutcome(stamp.path, "renamed", document.doc_id)
    note_file(catalog, document.doc_id, stamp)
    return FileOutcome(stamp.path, "copy", document.doc_id)


def _unless_hopeless(catalog: Catalog, step: ToRead, again: _Again) -> FileOutcome | ToRead:
    """A file that ran out of its time twice would do it again: it is told, and costs no time."""
    failed = failed_file(catalog, step.stamp.path)
    same = failed is not None and (failed.sha256, failed.reader_version) == (step.sha256, READER_VERSION)
    if failed is None or not same or failed.tries < 2 or again.retry:
        return step
    reason = f"{failed.reason}, in an earlier run; it was not tried again"
    return FileOutcome(step.stamp.path, "failed", step.doc_id, code=failed.code, reason=reason)


def _read(work: Work, steps: Sequence[ToRead]) -> None:
    jobs = _jobs(work, steps)
    by_path = {step.path: step for step in steps}
    failed: dict[str, dict[int, FailedPage]] = {}  # document → its pages that reading gave up
    with work.encoder.loading():
        for event in work.pool.run(jobs):
            step = by_path[event.job.path]
            if isinstance(event, PageStarted):
                work.observer.on_page(step.stamp.path, event.page, event.pages)
            elif isinstance(event, DocumentRead):
                finish(work, _commit(work, step, event, list(failed.get(step.doc_id, {}).values())))
                event.job.output.unlink(missing_ok=True)
            elif isinstance(event, PageFailed):
                page = FailedPage(event.page, STAGE_READ, event.code, event.reason, event.tries)
                failed.setdefault(step.doc_id, {})[event.page] = page
            elif isinstance(event, DocumentFailed):
                finish(work, _failure(work, step, event))


def _jobs(work: Work, steps: Sequence[ToRead]) -> list[Job]:
    spool = work.catalog.paths.open_spool()
    counter = work.encoder.token_counter(spool)
    return [
        Job(
            "read",
            step.path,
            step.doc_id,
            spool / f"{step.doc_id}.jsonl",
            counter,
            force=work.settings.ocr == "force",
            skip_pages=tuple(page.page for page in step.failed if page.stage == STAGE_READ and waits(page)),
        )
        for step in steps
    ]


def _commit(work: Work, step: ToRead, event: DocumentRead, new: Sequence[FailedPage]) -> FileOutcome:
    """Store a document that was read. `new`: pages of it that were given up just now."""
    problem = _changed(step)
    if problem is not None:
        return FileOutcome(step.stamp.path, "failed", step.doc_id, code=problem.code, reason=problem.message)
    name, source_path = _name_of(work, step)
    warnings = event.warnings
    if event.without_text and work.settings.ocr == "off":  # where it is on, it tells itself what it cannot read
        warnings = (*warnings, f"pages without a text layer: {event.without_text} of {event.pages} (OCR is off)")
    info = DocumentInfo(
        doc_id=step.doc_id,
        filename=name,
        extension=name.rpartition(".")[2].lower(),
        title=event.title,
        num_pages=event.pages,
        timestamp=datetime.now(UTC).isoformat(timespec="seconds"),
        source_path=source_path,
        size_bytes=step.stamp.size,
        sha256=step.sha256,
        warnings=warnings,
    )
    kept = _kept_failures(step.failed, event.job)
    try:
        add_document(
            work.catalog,
            info,
            step.stamp,
            _skip_failed_ocr(read_pages(event.job.output), kept),
            reader_version=READER_VERSION,
            images=work.settings.images,
            failed=[*kept, *(add_tries(page, step.failed) for page in new)],
        )
    except DocumentError as error:
        return FileOutcome(step.stamp.path, "failed", step.doc_id, code=error.code, reason=error.message)
    for page in new:
        report_failure(work, source_path, page)
    work.summary.pages += event.pages
    result: Result = "replaced" if step.replaces else "added"
    return FileOutcome(step.stamp.path, result, step.doc_id, event.pages, warnings=warnings)


def _kept_failures(earlier: Iterable[FailedPage], job: Job) -> list[FailedPage]:
    """What stays given up of a document that was read again: the pages left out, and what would only hang later."""
    return [
        page
        for page in earlier
        if waits(page)
        and (page.page in job.skip_pages if page.stage == STAGE_READ else page.stage in (STAGE_OCR, STAGE_IMAGES))
    ]


def _skip_failed_ocr(pages: Iterable[PageWithChunks], kept: Sequence[FailedPage]) -> Iterator[PageWithChunks]:
    """The pages, of which those that OCR gave up do not ask for it again."""
    given_up = {page.page: page.reason for page in kept if page.stage == STAGE_OCR}
    for page, chunks in pages:
        if page.needs_ocr and page.number in given_up:
            yield replace(page, needs_ocr=False, error=ocr_error(given_up[page.number])), chunks
        else:
            yield page, chunks


def _name_of(work: Work, step: ToRead) -> tuple[str, str]:
    """File name and path of a document: those of this file, or those it goes by already, if it is read again."""
    known = get_document(work.catalog, step.doc_id)
    if known is not None and known.source_path != step.stamp.path and Path(known.source_path).exists():
        return known.filename, known.source_path
    return to_utf8(step.path.name), step.stamp.path


def _failure(work: Work, step: ToRead, event: DocumentFailed) -> FileOutcome:
    if event.code == TIMEOUT:  # not to be waited for in every run
        path, version = step.stamp.path, READER_VERSION
        known = failed_file(work.catalog, path)
        same = known is not None and (known.sha256, known.reader_version) == (step.sha256, version)
        tries = event.tries + (known.tries if known is not None and same else 0)
        record_file(work.catalog, FailedFile(path, step.sha256, version, event.code, event.reason, tries))
    return FileOutcome(step.stamp.path, "failed", step.doc_id, code=event.code, reason=event.reason)


def _settle_copy(work: Work, copy: ToRead) -> None:
    """A second file with the content of one just read shares its fate."""
    first = next(outcome for outcome in work.summary.files if outcome.doc_id == copy.doc_id)
    if first.result == "failed":
        finish(work, FileOutcome(copy.stamp.path, "failed", code=first.code, reason=first.reason))
    else:
        note_file(work.catalog, copy.doc_id, copy.stamp)
        finish(work, FileOutcome(copy.stamp.path, "copy", copy.doc_id))


def _changed(step: ToRead) -> DocumentError | None:
    """Why the file can no longer be trusted to be what was hashed."""
    try:
        same = stamp_of(step.path) == step.stamp
    except DocumentError as error:
        return error
    return None if same else DocumentError("the file changed while it was read; ingest it again", code="changed")
