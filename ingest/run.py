"""A run: files → pages → catalog → vectors → images → OCR → visual vectors → collections.

Each document is committed whole as soon as it is read, and is searchable by its words from then on. Vectors follow
in batches, each batch a commit; then page images, then OCR page by page, then what the visual encoder sees; the
collections are published last, and before a visual model begins its long work. Stopped anywhere, the next run goes on
there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from ingest import stages
from ingest.encoder import RunEncoder, choose_text_encoder, choose_visual, embed_pages, is_by_model, open_regions
from ingest.jobs import DocumentRead, Failed, Job, PageStarted, PageWithChunks, Task, read_pages
from ingest.pdf import READER_VERSION
from ingest.pool import LIMITS, Limits, Pool
from ingest.report import (
    Account,
    CommitsSummary,
    FileOutcome,
    IngestSummary,
    Observer,
    PageOutcome,
    Result,
    report_failure,
)
from ingest.scan import Identity, Scanned, folder_above, hash_of, no_files, removable, scan, stamp_of, to_utf8
from ingest.stages import Work
from research.encoders import usable_cores
from research.errors import DocumentError, unusable
from research.records import DocumentInfo, FailedPage
from research.settings import Settings
from research.store import Catalog, FileStamp, IndexPaths, files, found_at, ledger, ocr_error, write_lock


class HasPaths(Protocol):
    """An open index, as far as a run needs it. `settings`, where it has any, are those of the run."""

    @property
    def paths(self) -> IndexPaths: ...


def ingest(
    index: HasPaths | IndexPaths,
    paths: str | Path | Iterable[str | Path],
    *,
    settings: Settings | None = None,
    observer: Observer | None = None,
    wait: float = 0.0,
    follow_links: bool = False,
    retry: bool = False,
    prune: bool = False,
    known_folders: Mapping[str, Identity] | None = None,
    limits: Mapping[Task, Limits] = LIMITS,
) -> IngestSummary:
    """Bring PDFs into an index and finish whatever an earlier run left undone.

        from ingest import ingest

        summary = ingest(index, ["reports", "letter.pdf"])
        print(summary.count("added"), "added", [file.path for file in summary.failed])

    A file that fails never stops the others: it stands in the summary with a code and a reason. What does stop a run
    raises `CtxError`: a path that leads nowhere, nothing to read, an index that another process writes. Ctrl-C ends it
    in good order, with `interrupted` set; all that is committed stays, and the next run goes on there.

    `paths`: files, and folders to search to the bottom. `settings`: OCR, images and encoders; the index's own, else
    the defaults. `observer` is told of progress. `wait`: seconds to wait for another writer, -1 for ever.
    `follow_links`: take what links out of the folders lead to. `retry`: pages and files of `paths` that were given up
    and wait are tried again. `prune`: documents whose files are gone from the folders are removed, unless the folder
    is empty as one is that nothing is mounted on; `known_folders` (`ingest.scan.folders_of`) were seen with files in
    them by the caller, and count as emptied. `limits`: the time a page and a document may take.
    """
    started = time.monotonic()
    where, settings, given = resolved(index, settings, paths)
    found = scan(given, follow_links=follow_links)
    if found.empty and not (where.exists and _knows(where, given)):
        raise no_files(given, found)
    files = {to_utf8(os.path.normpath(path)): path for path in found.files}
    with write_lock(where, wait=wait), Catalog(where, writable=True) as catalog:
        pool = Pool(usable_cores(), limits)
        work = Work(catalog, settings, observer or Observer(), limits, files, pool)
        try:
            with in_good_order(catalog, work.summary):
                with pool:
                    _choose_encoders(work)
                    report_scan(work, found)
                    _read_files(work, found.files, retry=retry)
                    _tell_gone(work, given, prune=prune, known_folders=known_folders)
                    _open_stages(work, retry=retry)
                    stages.embed(work)
                    open_regions(work)
                    stages.render(work)
                stages.read_by_ocr(work)
                stages.embed(work)  # what OCR read is embedded like the rest
                open_regions(work)
                stages.embed_all_items(work)
                stages.update_graph_of(catalog)
                if is_by_model(work):  # text can be found while a visual model works, which may take hours
                    stages.publish(work)
                embed_pages(work)
                stages.publish(work)
        finally:
            where.clear_spool()
        _count(work)
    work.summary.seconds = time.monotonic() - started
    return work.summary


def resolved(
    index: HasPaths | IndexPaths, settings: Settings | None, paths: str | Path | Iterable[str | Path]
) -> tuple[IndexPaths, Settings, list[Path]]:
    """Return where an index is, the settings of a run over it, and its paths."""
    where = index if isinstance(index, IndexPaths) else index.paths
    settings = settings or getattr(index, "settings", None) or Settings()
    return where, settings, [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]


@contextmanager
def in_good_order(catalog: Catalog, summary: IngestSummary | CommitsSummary) -> Iterator[None]:
    """End a run that Ctrl-C stopped as one that is done; say of a disk that fails what to do."""
    try:
        yield
    except KeyboardInterrupt:
        summary.interrupted = True
    except OSError as error:
        catalog.check_in_place()
        raise unusable("the index cannot be written", error) from error


def _knows(paths: IndexPaths, given: Sequence[Path]) -> bool:
    """Whether folders without a file held documents once: then that is what there is to tell."""
    with Catalog(paths) as catalog:
        return bool(_find_gone(catalog, given))


def _choose_encoders(work: Work) -> None:
    """Settle which encoders work, before anything is read."""
    name = choose_text_encoder(work.catalog, work.settings, work.observer)
    settings = work.settings
    work.encoder = RunEncoder(name, named=bool(settings.text_encoder), timeout=settings.request_timeout)
    choose_visual(work)


def report_scan(work: Account, found: Scanned[Any]) -> None:
    """Note what the search came upon and did not bring."""
    work.summary.links_not_followed += map(to_utf8, found.external_links)
    work.summary.dangling_links += map(to_utf8, found.dangling_links)
    kinds = sorted(found.passed_over.items(), key=lambda kind: (-kind[1], kind[0]))
    work.summary.passed_over = {to_utf8(ending): count for ending, count in kinds}
    for path, reason in found.unreadable:
        finish(work, FileOutcome(to_utf8(path), "failed", code="unreadable", reason=reason))


def _find_gone(catalog: Catalog, paths: Sequence[Path]) -> list[str]:
    """The places below the folders among `paths` where documents were. A file that moved within them is not gone."""
    folders = [to_utf8(os.path.normpath(path.absolute())) for path in paths if path.is_dir()]
    known = {path for folder in folders for path in catalog.documents.paths_below(folder)}
    return sorted(path for path in known if found_at(path) is None and folder_above(path))


def _tell_gone(work: Work, paths: Sequence[Path], *, prune: bool, known_folders: Mapping[str, Identity] | None) -> None:
    """Note in the summary what is gone; with `prune` the index forgets it. A document that lies at another place, too,
    stays and goes by that one. `known_folders`: those that held files a while ago, and what they were then; an empty
    one that is still the same has been emptied."""
    summary = work.summary
    summary.gone = _find_gone(work.catalog, paths)
    if not prune:
        return
    lost, summary.empty_folders = removable(summary.gone, known_folders or {})
    for path in lost:
        removed = work.catalog.documents.forget_path(path)
        if removed is not None:
            summary.removed.append(removed)


def _open_stages(work: Work, *, retry: bool) -> None:
    """Put on the ledger what the stages should do again or for the first time; remove images of documents gone."""
    work.catalog.ledger.reopen(waiting_of=[outcome.doc_id for outcome in work.summary.files] if retry else ())
    if work.settings.images:
        work.catalog.ledger.ask_for_images()
    files.sweep_images(work.catalog.paths, {document.doc_id for document in work.catalog.documents.all()})


def _count(work: Work) -> None:
    """What the run left in the catalog, as it is now: OCR takes chunks out again."""
    summary, catalog = work.summary, work.catalog
    summary.chunks = catalog.chunks.count_embedded(work.embedded)
    summary.pending_chunks = catalog.ledger.count_pending()
    summary.pending_ocr = catalog.ledger.count_for_ocr() if work.settings.ocr != "off" else 0
    told = {(page.path, page.page, page.stage) for page in summary.failed_pages}
    summary.waiting_pages = [
        PageOutcome(page.path, page.page, page.stage, page.code, page.reason)
        for page in catalog.ledger.given_up()
        if (page.page or page.stage != ledger.STAGE_READ) and (page.path, page.page, page.stage) not in told
    ]


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


def _read_files(work: Work, files: Sequence[Path], *, retry: bool) -> None:
    """Settle what is known, read the rest; every file is accounted for in the summary."""
    work.catalog.ledger.forget_missing_files()
    again = work.catalog.ledger.to_read_again(waiting=retry)
    to_read: dict[str, ToRead] = {}
    copies: list[ToRead] = []
    for path in files:
        step = plan(work.catalog, path, again, retry=retry)
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


# A file needs nothing, a new name, or to be read. What earlier runs gave up of its content is carried along.
def plan(catalog: Catalog, path: Path, again: Container[str] = (), *, retry: bool = False) -> FileOutcome | ToRead:
    """Settle a file whose content is known, at once; otherwise say that it must be read. `again`: documents with pages
    to try again; `retry`: so is whatever waits."""
    try:
        stamp = stamp_of(path)
        known = catalog.documents.at_path(stamp.path)
        unchanged = known is not None and known[1] == stamp and known[0] not in again
        if known is not None and unchanged and catalog.documents.reader_version(known[0]) == READER_VERSION:
            return FileOutcome(stamp.path, "unchanged", known[0])
        sha256 = hash_of(path)
    except DocumentError as error:
        return FileOutcome(to_utf8(path), "failed", code=error.code, reason=error.message)
    same = catalog.documents.of_hash(sha256)
    if same is None:
        return _unless_hopeless(catalog, ToRead(path, stamp, sha256, replaces=known is not None), retry=retry)
    document = same[0]
    if same[1] != READER_VERSION or document.doc_id in again:
        keep = same[1] == READER_VERSION and not retry
        failed = tuple(catalog.ledger.failures(document.doc_id)) if keep else ()
        if (known is None or known[0] != document.doc_id) and not Path(document.source_path).exists():
            # It moved, and is read again: the place it left is no copy of it.
            catalog.documents.rename(document.doc_id, document.source_path, stamp, to_utf8(path.name))
        return ToRead(path, stamp, sha256, replaces=True, failed=failed)
    return _settle_known(catalog, path, stamp, document, known[0] if known is not None else "")


def _settle_known(catalog: Catalog, path: Path, stamp: FileStamp, document: DocumentInfo, known: str) -> FileOutcome:
    """Note where a document is now. `known`: the document that was at this path before."""
    if known == document.doc_id:
        catalog.documents.note_file(document.doc_id, stamp)
        return FileOutcome(stamp.path, "unchanged", document.doc_id)
    if not Path(document.source_path).exists():
        catalog.documents.rename(document.doc_id, document.source_path, stamp, to_utf8(path.name))
        return FileOutcome(stamp.path, "renamed", document.doc_id)
    catalog.documents.note_file(document.doc_id, stamp)
    return FileOutcome(stamp.path, "copy", document.doc_id)


def _unless_hopeless(catalog: Catalog, step: ToRead, *, retry: bool) -> FileOutcome | ToRead:
    """A file that ran out of its time twice would do it again: it is told, and costs no time."""
    failed = catalog.ledger.failed_file(step.stamp.path)
    same = failed is not None and (failed.sha256, failed.reader_version) == (step.sha256, READER_VERSION)
    if failed is None or not same or failed.tries < 2 or retry:
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
            elif isinstance(event, Failed) and event.page:
                failed.setdefault(step.doc_id, {})[event.page] = event.at(ledger.STAGE_READ)
            elif isinstance(event, Failed):
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
            skip_pages=tuple(
                page.page for page in step.failed if page.stage == ledger.STAGE_READ and ledger.waits(page)
            ),
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
        work.catalog.documents.add(
            info,
            step.stamp,
            _skip_failed_ocr(read_pages(event.job.output), kept),
            reader_version=READER_VERSION,
            images=work.settings.images,
            failed=[*kept, *(ledger.add_tries(page, step.failed) for page in new)],
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
        if ledger.waits(page)
        and (
            page.page in job.skip_pages
            if page.stage == ledger.STAGE_READ
            else page.stage in (ledger.STAGE_OCR, ledger.STAGE_IMAGES)
        )
    ]


def _skip_failed_ocr(pages: Iterable[PageWithChunks], kept: Sequence[FailedPage]) -> Iterator[PageWithChunks]:
    """The pages, of which those that OCR gave up do not ask for it again."""
    given_up = {page.page: page.reason for page in kept if page.stage == ledger.STAGE_OCR}
    for page, chunks in pages:
        if page.needs_ocr and page.number in given_up:
            yield replace(page, needs_ocr=False, error=ocr_error(given_up[page.number])), chunks
        else:
            yield page, chunks


def _name_of(work: Work, step: ToRead) -> tuple[str, str]:
    """File name and path of a document: those of this file, or those it goes by already, if it is read again."""
    known = work.catalog.documents.get(step.doc_id)
    if known is not None and known.source_path != step.stamp.path and Path(known.source_path).exists():
        return known.filename, known.source_path
    return to_utf8(step.path.name), step.stamp.path


def _failure(work: Work, step: ToRead, event: Failed) -> FileOutcome:
    if event.code == ledger.TIMEOUT:  # not to be waited for in every run
        path, version = step.stamp.path, READER_VERSION
        known = work.catalog.ledger.failed_file(path)
        same = known is not None and (known.sha256, known.reader_version) == (step.sha256, version)
        tries = event.tries + (known.tries if known is not None and same else 0)
        work.catalog.ledger.record_file(ledger.FailedFile(path, step.sha256, version, event.code, event.reason, tries))
    return FileOutcome(step.stamp.path, "failed", step.doc_id, code=event.code, reason=event.reason)


def _settle_copy(work: Work, copy: ToRead) -> None:
    """A second file with the content of one just read shares its fate."""
    first = next(outcome for outcome in work.summary.files if outcome.doc_id == copy.doc_id)
    if first.result == "failed":
        finish(work, FileOutcome(copy.stamp.path, "failed", code=first.code, reason=first.reason))
    else:
        work.catalog.documents.note_file(copy.doc_id, copy.stamp)
        finish(work, FileOutcome(copy.stamp.path, "copy", copy.doc_id))


def _changed(step: ToRead) -> DocumentError | None:
    """Why the file can no longer be trusted to be what was hashed."""
    try:
        same = stamp_of(step.path) == step.stamp
    except DocumentError as error:
        return error
    return None if same else DocumentError("the file changed while it was read; ingest it again", code="changed")
