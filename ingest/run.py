"""A run: files → pages → catalog → vectors → images → OCR → visual vectors → collections.

Each document is committed whole as soon as it is read, and is searchable by its words from then on. Vectors follow
in batches, each batch a commit; then page images, then OCR page by page, then what the visual encoder sees; the
collections are published last, and before a visual model begins its long work. Stopped anywhere, the next run goes on
there.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ingest.jobs import DocumentFailed, DocumentRead, Job, PageStarted
from ingest.later import LaterStages
from ingest.pdf.version import READER_VERSION
from ingest.permission import chosen_encoder
from ingest.plan import ToRead, plan
from ingest.pool import Pool
from ingest.report import FileOutcome, IngestSummary, Observer, Result
from ingest.scan import Scanned, scan, stamp_of, storable
from ingest.visual import VisualStage
from ingest.wire import read_pages
from research.encoders.base import TextEncoder
from research.encoders.counting import hand_over, is_light
from research.encoders.registry import DEFAULT, load_text_encoder
from research.encoders.sentence_transformers import SentenceTransformersEncoder
from research.errors import CtxError, DocumentError
from research.settings import Settings
from research.store import collections, images, vectors
from research.store.catalog import Catalog
from research.store.documents import add_document, all_documents, note_file
from research.store.lock import write_lock
from research.store.page_writes import count_for_ocr
from research.store.paths import IndexPaths
from research.store.publisher import publish_apart
from research.store.records import DocumentInfo
from research.store.trouble import unusable

_BATCH = 128  # chunks a commit: a few seconds of work, all that a kill can cost


def ingest(
    paths: Sequence[Path],
    index: IndexPaths,
    *,
    settings: Settings,
    observer: Observer,
    wait: float = 0.0,
    follow_links: bool = False,
) -> IngestSummary:
    """Bring the PDFs under `paths` into the index and finish whatever an earlier run left undone."""
    started = time.monotonic()
    found = scan(paths, follow_links=follow_links)
    index.create()
    with write_lock(index.lock, wait=wait), Catalog(index, writable=True) as catalog:
        run = _Run(catalog, settings, observer)
        try:
            run.choose()
            run.account(found)
            run.read(found.files)
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
            shutil.rmtree(index.spool, ignore_errors=True)
        run.summary.pending_chunks = vectors.count_pending(catalog)
        run.summary.pending_ocr = count_for_ocr(catalog) if settings.ocr != "off" else 0
    run.summary.seconds = time.monotonic() - started
    return run.summary


class _Run:
    def __init__(self, catalog: Catalog, settings: Settings, observer: Observer) -> None:
        self._catalog = catalog
        self._observer = observer
        self._settings = settings
        self._encoder_name = DEFAULT
        self.summary = IngestSummary()
        self._later = LaterStages(catalog, settings, observer, self.summary)
        self.visual = VisualStage(catalog, settings, observer, self.summary)
        self._encoder: TextEncoder | None = None

    def choose(self) -> None:
        """Settle which encoders work, before anything is read."""
        self._encoder_name = chosen_encoder(self._catalog, self._settings, self._observer)
        self.visual.choose()

    def account(self, found: Scanned) -> None:
        """What the search came upon and did not bring."""
        self.summary.links_not_followed += map(storable, found.leaving)
        for path, reason in found.unreadable:
            self._finish(FileOutcome(storable(path), "failed", code="unreadable", reason=reason))

    def read(self, files: Sequence[Path]) -> None:
        """Settle what is known, read the rest."""
        work: dict[str, ToRead] = {}
        copies: list[ToRead] = []
        for path in files:
            self._later.files[storable(os.path.normpath(path))] = path
            step = plan(self._catalog, path)
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
        state = collections.state_of(self._catalog)
        if state.behind:
            self._observer.publishing()
            publish_apart(self._catalog.paths)

    def _read_all(self, work: list[ToRead]) -> None:
        spool = self._catalog.paths.spool
        shutil.rmtree(spool, ignore_errors=True)
        spool.mkdir(mode=0o700)
        counter = self._token_counter()
        by_path = {step.path: step for step in work}
        force = self._settings.ocr == "force"
        jobs = [
            Job("read", step.path, step.doc_id, spool / f"{step.doc_id}.jsonl", counter, force=force) for step in work
        ]
        with self._encoder_loading(), Pool(min(len(jobs), _cores())) as pool:
            for event in pool.read(jobs):
                step = by_path[event.job.path]
                if isinstance(event, PageStarted):
                    self._observer.reading(step.stamp.path, event.page, event.pages)
                elif isinstance(event, DocumentRead):
                    self._finish(self._commit(step, event))
                    event.job.spool.unlink(missing_ok=True)
                elif isinstance(event, DocumentFailed):
                    self._finish(_failure(step, event))

    def _commit(self, step: ToRead, event: DocumentRead) -> FileOutcome:
        problem = _changed(step)
        if problem is not None:
            return FileOutcome(step.stamp.path, "failed", step.doc_id, code=problem.code, reason=problem.message)
        name = storable(step.path.name)
        info = DocumentInfo(
            doc_id=step.doc_id,
            filename=name,
            extension=name.rpartition(".")[2].lower(),
            title=event.title,
            num_pages=event.pages,
            timestamp=datetime.now(UTC).isoformat(timespec="seconds"),
            source_path=step.stamp.path,
            size_bytes=step.stamp.size,
            sha256=step.sha256,
            warnings=event.warnings,
        )
        pages = read_pages(event.job.spool)
        try:
            add_document(
                self._catalog, info, step.stamp, pages, reader_version=READER_VERSION, images=self._settings.images
            )
        except DocumentError as error:
            return FileOutcome(step.stamp.path, "failed", step.doc_id, code=error.code, reason=error.message)
        self.summary.pages += event.pages
        result: Result = "replaced" if step.replaces else "added"
        return FileOutcome(step.stamp.path, result, step.doc_id, event.pages, warnings=event.warnings)

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
            self.summary.chunks += len(batch)
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
        spool.mkdir(mode=0o700, exist_ok=True)
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


def _failure(step: ToRead, event: DocumentFailed) -> FileOutcome:
    return FileOutcome(step.stamp.path, "failed", step.doc_id, code=event.code, reason=event.reason)


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
