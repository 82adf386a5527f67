"""A run: files → pages → catalog → vectors → images → OCR → visual vectors → collections.

Each document is committed whole as soon as it is read, and is searchable by its words from then on. Vectors follow
in batches, each batch a commit; then page images, then OCR page by page, then what the visual encoder sees; the
collections are published last, and before a visual model begins its long work. Stopped anywhere, the next run goes on
there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ingest.encoder import RunEncoder, choose_text_encoder
from ingest.jobs import Task
from ingest.pool import LIMITS, Limits, Pool
from ingest.reading import finish, read_files
from ingest.report import Account, FileOutcome, IngestSummary, Observer, PageOutcome, SilentObserver
from ingest.scan import Identity, Scanned, folder_above, no_files, removable, scan, to_utf8
from ingest.stages import EmbedStage, GraphStage, ItemsStage, OcrStage, PublishStage, RenderStage, Stage, Work
from ingest.visual import RegionsStage, VisualStage, choose_visual, is_by_model
from research.encoders import usable_cores
from research.errors import unusable
from research.settings import Settings
from research.store import (
    STAGE_READ,
    Catalog,
    IndexPaths,
    all_documents,
    ask_for_images,
    chunk_vectors,
    count_for_ocr,
    forget_path,
    found_at,
    given_up,
    images,
    ledger,
    paths_below,
    reopen,
    write_lock,
)


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
    where = index if isinstance(index, IndexPaths) else index.paths
    settings = settings or getattr(index, "settings", None) or Settings()
    given = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    found = scan(given, follow_links=follow_links)
    if found.empty and not (where.exists and _knows(where, given)):
        raise no_files(given, found)
    files = {to_utf8(os.path.normpath(path)): path for path in found.files}
    with write_lock(where, wait=wait), Catalog(where, writable=True) as catalog:
        pool = Pool(usable_cores(), limits)
        work = Work(catalog, settings, observer or SilentObserver(), limits, files, pool)
        try:
            with pool:
                _choose_encoders(work)
                report_scan(work, found)
                read_files(work, found.files, retry=retry)
                _tell_gone(work, given, prune=prune, known_folders=known_folders)
                _open_stages(work, retry=retry)
                _run(work, (*_TEXT, RenderStage()))
            _run(work, _later_stages(work))
        except KeyboardInterrupt:
            work.summary.interrupted = True
        except OSError as error:
            catalog.check_in_place()
            raise unusable("the index cannot be written", error) from error
        finally:
            where.clear_spool()
        _count(work)
    work.summary.seconds = time.monotonic() - started
    return work.summary


_TEXT: tuple[Stage, ...] = (EmbedStage(), RegionsStage())


def _later_stages(work: Work) -> Sequence[Stage]:
    """What comes after the text and the images, in order. What OCR reads is embedded like the rest; and text can be
    found while a visual model works, which may take hours."""
    publish = PublishStage()
    before_model = (publish,) if is_by_model(work) else ()
    return (OcrStage(), *_TEXT, ItemsStage(), GraphStage(), *before_model, VisualStage(), publish)


def _run(work: Work, stages: Sequence[Stage]) -> None:
    for stage in stages:
        if stage.pending(work):
            stage.run(work)


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
    """What the search came upon and did not bring."""
    work.summary.links_not_followed += map(to_utf8, found.external_links)
    work.summary.dangling_links += map(to_utf8, found.dangling_links)
    kinds = sorted(found.passed_over.items(), key=lambda kind: (-kind[1], kind[0]))
    work.summary.passed_over = {to_utf8(ending): count for ending, count in kinds}
    for path, reason in found.unreadable:
        finish(work, FileOutcome(to_utf8(path), "failed", code="unreadable", reason=reason))


def _find_gone(catalog: Catalog, paths: Sequence[Path]) -> list[str]:
    """The places below the folders among `paths` where documents were. A file that moved within them is not gone."""
    folders = [to_utf8(os.path.normpath(path.absolute())) for path in paths if path.is_dir()]
    known = {path for folder in folders for path in paths_below(catalog, folder)}
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
        removed = forget_path(work.catalog, path)
        if removed is not None:
            summary.removed.append(removed)


def _open_stages(work: Work, *, retry: bool) -> None:
    """Put on the ledger what the stages should do again or for the first time; remove images of documents gone."""
    reopen(work.catalog, waiting_of=[outcome.doc_id for outcome in work.summary.files] if retry else ())
    if work.settings.images:
        ask_for_images(work.catalog)
    images.sweep(work.catalog.paths, {document.doc_id for document in all_documents(work.catalog)})


def _count(work: Work) -> None:
    """What the run left in the catalog, as it is now: OCR takes chunks out again."""
    summary, catalog = work.summary, work.catalog
    summary.chunks = chunk_vectors.count_embedded(catalog, work.embedded)
    summary.pending_chunks = ledger.count_pending(catalog)
    summary.pending_ocr = count_for_ocr(catalog) if work.settings.ocr != "off" else 0
    told = {(page.path, page.page, page.stage) for page in summary.failed_pages}
    summary.waiting_pages = [
        PageOutcome(page.path, page.page, page.stage, page.code, page.reason)
        for page in given_up(catalog)
        if (page.page or page.stage != STAGE_READ) and (page.path, page.page, page.stage) not in told
    ]
