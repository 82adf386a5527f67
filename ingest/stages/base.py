"""The shape of a stage, and what the stages of a run share.

A stage works off what the catalog's ledger says is unfinished, and commits as it goes: stopped anywhere, the next run
goes on there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ingest.encoder import RunEncoder
from ingest.jobs import Job, Task
from ingest.pool import Limits, Pool
from ingest.report import IngestSummary, Observer, PageOutcome
from ingest.scan import stamp_of
from research.errors import DocumentError
from research.records import FailedPage
from research.settings import Settings
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import document_at_path, get_document
from research.store.catalog.failures import INTERNAL, failures_of, waits
from research.store.catalog.ledger import STAGE_OCR, STAGE_READ, unfinished


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

    @property
    def name(self) -> str: ...

    def pending(self, work: Work) -> bool:
        """Whether there is something for it to do."""

    def run(self, work: Work) -> None:
        """Do it. A document or page that fails is noted in the catalog and told, and the rest goes on."""


def has_unfinished(work: Work, stage: str) -> bool:
    return bool(unfinished(work.catalog).get(stage))


def unfinished_files(work: Work, stage: str) -> Iterator[tuple[str, Path]]:
    """Documents of a stage whose file is still the one that was read; one whose file is gone keeps its entry."""
    for doc_id in unfinished(work.catalog).get(stage, []):
        info = get_document(work.catalog, doc_id)
        if info is None:
            continue
        path = work.files.get(info.source_path, Path(info.source_path))
        if _is_current(work.catalog, doc_id, path, info.source_path):
            yield doc_id, path


def is_same_file(work: Work, job: Job) -> bool:
    """Whether the file is still the one that the job began with. If not, what came of it belongs to another content,
    and the ledger keeps the document for the next run."""
    info = get_document(work.catalog, job.doc_id)
    return info is not None and _is_current(work.catalog, job.doc_id, job.path, info.source_path)


def pages_to_skip(work: Work, doc_id: str, stage: str) -> tuple[int, ...]:
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


def report_failures(work: Work, doc_id: str, failed: Sequence[FailedPage]) -> None:
    info = get_document(work.catalog, doc_id)
    for page in failed:
        report_failure(work, info.source_path if info else "", page)


def _is_current(catalog: Catalog, doc_id: str, path: Path, source_path: str) -> bool:
    known = document_at_path(catalog, source_path)
    try:
        return known is not None and known[0] == doc_id and stamp_of(path) == known[1]
    except DocumentError:
        return False
