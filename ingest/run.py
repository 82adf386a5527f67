"""A run: files → pages → catalog → vectors → images → OCR → visual vectors → collections.

Each document is committed whole as soon as it is read, and is searchable by its words from then on. Vectors follow
in batches, each batch a commit; then page images, then OCR page by page, then what the visual encoder sees; the
collections are published last, and before a visual model begins its long work. Stopped anywhere, the next run goes on
there.
"""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ingest.giving_up import kept_failures, report_failure, without_hopeless_ocr
from ingest.jobs import DocumentFailed, DocumentRead, Job, PageFailed, PageStarted, Task
from ingest.later import LaterStages
from ingest.pdf.version import READER_VERSION
from ingest.permission import chosen_encoder
from ingest.plan import ToRead, plan, read_again
from ingest.pool import LIMITS, Limits, Pool
from ingest.report import FileOutcome, IngestSummary, Observer, PageOutcome, Result
from ingest.scan import Scanned, scan, stamp_of, storable
from ingest.visual import VisualStage
from ingest.wire import read_pages
from research.encoders.base import TextEncoder
from research.encoders.counting import hand_over, is_light
from research.encoders.registry import DEFAULT, load_text_encoder
from research.encoders.sentence_transformers import SentenceTransformersEncoder
from research.errors import CtxError, DocumentError
from research.records import DocumentInfo, FailedPage
from research.settings import Settings
from research.store.catalog import vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import add_document, all_documents, get_document, note_file
from research.store.catalog.failures import (
    TIMEOUT,
    FailedFile,
    add_tries,
    failed_file,
    forget_files_gone,
    given_up,
    record_file,
    reopen,
    waits,
)
from research.store.catalog.ledger import STAGE_READ
from research.store.catalog.page_writes import count_for_ocr
from research.store.error_hints import unusable
from research.store.files import images
from research.store.files.lock import write_lock
from research.store.files.own_files import make_folder
from research.store.files.paths import IndexPaths
from research.store.vectors import sync_state
from research.store.vectors.process import publish_apart

_BATCH = 128  # chunks a commit: a few seconds of work, all that a kill can cost


def ingest(
    paths: Sequence[Path],
    index: IndexPaths,
    *,
    settings: Settings,
    observer: Observer,
    wait: float = 0.0,
    follow_links: bool = False,
    retry: bool = False,
    limits: Mapping[Task, Limits] = LIMITS,
) -> IngestSummary:
    """Bring the PDFs under `paths` into the index and finish whatever an earlier run left undone.

    `retry`: pages and files of `paths` that were given up and wait are tried again.
    """
    started = time.monotonic()
    found = scan(paths, follow_links=follow_links)
    with write_lock(index, wait=wait), Catalog(index, writable=True) as catalog:
        run = _Run(catalog, settings, observer, limits)
        try:
            run.choose()
            run.account(found)
            run.read(found.files, retry=retry)
            run.reopen(retry=retry)
            run.embed()
            run.draw()
            run.recognise()
            run.see()
            run.publish()
        except KeyboardInterrupt:
            run.summary.interrupted = True
        except OSError as error:
            catalog.check_in_place()
            raise unusable("the index cannot be written", error) from error
        finally:
            index.clear_spool()
        run.count()
        run.summary.pending_chunks = vectors.count_pending(catalog)
        run.summary.pending_ocr = count_for_ocr(catalog) if settings.ocr != "off" else 0
    run.summary.seconds = time.monotonic() - started
    return run.summary


class _Run:
    def __init__(self, catalog: Catalog, settings: Settings, observer: Observer, limits: Mapping[Task, Limits]) -> None:
        self._catalog = catalog
        self._observer = observer
        self._settings = settings
        self._encoder_name = DEFAULT
        self.summary = IngestSummary()
        self._limits = limits
        self._later = LaterStages(catalog, settings, observer, self.summary, limits)
        self.visual = VisualStage(catalog, settings, observer, self.summary)
        self._encoder: TextEncoder | None = None
        self._embedded = array("q")  # chunks that were given a vector
        self._failed: dict[str, dict[int, FailedPage]] = {}  # document → its pages that reading gave up

    def choose(self) -> None:
        """Settle which encoders work, before anything is read."""
        self._encoder_name = chosen_encoder(self._catalog, self._settings, self._observer)
        self.visual.choose()

    def account(self, found: Scanned) -> None:
        """What the search came upon and did not bring."""
        self.summary.links_not_followed += map(storable, found.leaving)
        self.summary.dangling_links += map(storable, found.dangling)
        for path, reason in found.unreadable:
            self._finish(FileOutcome(storable(path), "failed", code="unreadable", reason=reason))

    def read(self, files: Sequence[Path], *, retry: bool) -> None:
        """Settle what is known, read the rest."""
        forget_files_gone(self._catalog)
        again = read_again(self._catalog, retry=retry)
        work: dict[str, ToRead] = {}
        copies: list[ToRead] = []
        for path in files:
            self._later.files[storable(os.path.normpath(path))] = path
            step = plan(self._catalog, path, again)
            if isinstance(step, FileOutcome):
                self._finish(step)
            elif step.sha256 in work:
                copies.append(step)
            else:
                work[step.sha256] = step
        if work:
            self._observer.planned(len(work), sum(step.stamp.size for step in work.values()))
            self._read_all(list(work.values()))
            for copy in copies:
                self._settle_copy(copy)

    def reopen(self, *, retry: bool) -> None:
        """What later stages gave up and should try again."""
        reopen(self._catalog, waiting_of=[outcome.doc_id for outcome in self.summary.files] if retry else ())

    def count(self) -> None:
        """What the run left in the catalog, as it is now: OCR takes chunks out again."""
        self.summary.chunks = vectors.count_embedded(self._catalog, self._embedded)
        told = {(page.path, page.page, page.stage) for page in self.summary.failed_pages}
        self.summary.waiting_pages = [
            PageOutcome(page.path, page.page, page.stage, page.code, page.reason)
            for page in given_up(self._catalog)
            if (page.page or page.stage != STAGE_READ) and (page.path, page.page, page.stage) not in told
        ]

    def embed(self) -> None:
        """Give every chunk its vector."""
        known = vectors.encoder_of(self._catalog)
        # Another encoder than the index's own embeds everything anew, even when no document is.
        if vectors.count_pending(self._catalog) or (known and self._encoder_name != known):
            encoder = self._text_encoder()
            _check_window(self._catalog, encoder)
            vectors.set_encoder(self._catalog, encoder.name, encoder.dim)
            total = vectors.count_pending(self._catalog)
            if total:
                self._embed_all(encoder, total)
        vectors.close_ledger(self._catalog)
        self.visual.declare()

    def draw(self) -> None:
        if self._settings.images:
            self._later.draw(_cores())
        images.sweep(self._catalog.paths, {document.doc_id for document in all_documents(self._catalog)})

    def recognise(self) -> None:
        self._later.recognise(self._token_counter, _cores())
        if self.summary.ocr_pages:
            self.embed()

    def see(self) -> None:
        """Give the visual side its vectors."""
        if self.visual.by_model:
            self.publish()  # text can be found while the model works, which may take hours
        self.visual.embed(self._text_encoder() if self.visual.lines_wait() else None)

    def publish(self) -> None:
        state = sync_state.state_of(self._catalog)
        if state.behind:
            self._observer.publishing()
            publish_apart(self._catalog.paths)

    def _read_all(self, work: list[ToRead]) -> None:
        spool = self._catalog.paths.open_spool()
        counter = self._token_counter()
        by_path = {step.path: step for step in work}
        force = self._settings.ocr == "force"
        jobs = [
            Job(
                "read",
                step.path,
                step.doc_id,
                spool / f"{step.doc_id}.jsonl",
                counter,
                force=force,
                skip=tuple(page.page for page in step.failed if page.stage == STAGE_READ and waits(page)),
            )
            for step in work
        ]
        with self._encoder_loading(), Pool(min(len(jobs), _cores()), self._limits) as pool:
            for event in pool.read(jobs):
                step = by_path[event.job.path]
                if isinstance(event, PageStarted):
                    self._observer.reading(step.stamp.path, event.page, event.pages)
                elif isinstance(event, DocumentRead):
                    self._finish(self._commit(step, event))
                    event.job.spool.unlink(missing_ok=True)
                elif isinstance(event, PageFailed):
                    failed = FailedPage(event.page, STAGE_READ, event.code, event.reason, event.tries)
                    self._failed.setdefault(step.doc_id, {})[event.page] = failed
                elif isinstance(event, DocumentFailed):
                    self._finish(self._failure(step, event))

    def _commit(self, step: ToRead, event: DocumentRead) -> FileOutcome:
        problem = _changed(step)
        if problem is not None:
            return FileOutcome(step.stamp.path, "failed", step.doc_id, code=problem.code, reason=problem.message)
        name, source_path = self._name_of(step)
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
            warnings=event.warnings,
        )
        new = list(self._failed.get(step.doc_id, {}).values())
        kept = kept_failures(step.failed, event.job)
        try:
            add_document(
                self._catalog,
                info,
                step.stamp,
                without_hopeless_ocr(read_pages(event.job.spool), kept),
                reader_version=READER_VERSION,
                images=self._settings.images,
                failed=[*kept, *(add_tries(page, step.failed) for page in new)],
            )
        except DocumentError as error:
            return FileOutcome(step.stamp.path, "failed", step.doc_id, code=error.code, reason=error.message)
        for page in new:
            report_failure(self.summary, self._observer, source_path, page)
        self.summary.pages += event.pages
        result: Result = "replaced" if step.replaces else "added"
        return FileOutcome(step.stamp.path, result, step.doc_id, event.pages, warnings=event.warnings)

    def _name_of(self, step: ToRead) -> tuple[str, str]:
        """File name and path of a document: those of this file, or those it goes by already, if it is read again."""
        known = get_document(self._catalog, step.doc_id)
        if known is not None and known.source_path != step.stamp.path and Path(known.source_path).exists():
            return known.filename, known.source_path
        return storable(step.path.name), step.stamp.path

    def _failure(self, step: ToRead, event: DocumentFailed) -> FileOutcome:
        if event.code == TIMEOUT:  # not to be waited for in every run
            path, version = step.stamp.path, READER_VERSION
            known = failed_file(self._catalog, path)
            same = known is not None and (known.sha256, known.reader_version) == (step.sha256, version)
            tries = event.tries + (known.tries if known is not None and same else 0)
            record_file(self._catalog, FailedFile(path, step.sha256, version, event.code, event.reason, tries))
        return FileOutcome(step.stamp.path, "failed", step.doc_id, code=event.code, reason=event.reason)

    def _settle_copy(self, copy: ToRead) -> None:
        """A second file with the content of one just read shares its fate."""
        first = next(outcome for outcome in self.summary.files if outcome.doc_id == copy.doc_id)
        if first.result == "failed":
            self._finish(FileOutcome(copy.stamp.path, "failed", code=first.code, reason=first.reason))
        else:
            note_file(self._catalog, copy.doc_id, copy.stamp)
            self._finish(FileOutcome(copy.stamp.path, "copy", copy.doc_id))

    def _embed_all(self, encoder: TextEncoder, total: int) -> None:
        done = 0
        self._observer.embedding(done, total)
        for batch in _batches(vectors.pending_chunks(self._catalog), _BATCH):
            matrix = encoder.embed([chunk.text for chunk in batch])
            vectors.write_vectors(self._catalog, [chunk.chunk_id for chunk in batch], matrix)
            self._embedded.extend(chunk.chunk_id for chunk in batch)
            done += len(batch)
            self._observer.embedding(done, total)

    @contextmanager
    def _encoder_loading(self) -> Iterator[None]:
        """The encoder loads while other processes start and read. A run that is stopped does not wait for it."""
        loading = threading.Thread(target=self._load_encoder)
        loading.start()
        yield
        loading.join()

    def _load_encoder(self) -> None:
        with suppress(Exception):  # what is wrong with it is told when it is needed
            self._text_encoder().embed_query("")

    def _text_encoder(self) -> TextEncoder:
        if self._encoder is None:
            self._encoder = load_text_encoder(self._encoder_name)
        return self._encoder

    def _token_counter(self) -> str:
        """What reading processes are to count tokens by."""
        if is_light(self._encoder_name):
            return self._encoder_name
        encoder = self._text_encoder()
        tokenizer = encoder.tokenizer_json() if isinstance(encoder, SentenceTransformersEncoder) else ""
        if not tokenizer:
            return self._encoder_name
        spool = self._catalog.paths.spool
        make_folder(spool)
        return hand_over(tokenizer, encoder.max_tokens, spool / "tokens.json")

    def _finish(self, outcome: FileOutcome) -> None:
        self.summary.files.append(outcome)
        self._observer.finished(outcome)


def _check_window(catalog: Catalog, encoder: TextEncoder) -> None:
    """Chunks were cut for the encoder that first filled the index; one with a smaller window cannot take them."""
    longest = vectors.longest_chunk(catalog)
    if longest > encoder.max_tokens:
        raise CtxError(
            f"chunks of this index have up to {longest} tokens, and {encoder.name} takes {encoder.max_tokens}",
            hint="ingest into an index of its own: ctx ingest PATH --index DIR",
        )


def _changed(step: ToRead) -> DocumentError | None:
    """Why the file can no longer be trusted to be what was hashed."""
    try:
        same = stamp_of(step.path) == step.stamp
    except DocumentError as error:
        return error
    return None if same else DocumentError("changed", "the file changed while it was read; ingest it again")


def _batches(chunks: Iterator[vectors.PendingChunk], size: int) -> Iterator[list[vectors.PendingChunk]]:
    batch: list[vectors.PendingChunk] = []
    for chunk in chunks:
        batch.append(chunk)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _cores() -> int:
    """Cores this process may use, which in a container are fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
