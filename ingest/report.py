"""What a run tells while it works, and what it says at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath
from typing import Any, Literal, Protocol

from research.records import DocumentInfo, FailedPage

Result = Literal["added", "replaced", "renamed", "unchanged", "copy", "failed"]


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one file. `code` is a stable word for scripts, `reason` a sentence for people."""

    path: str
    result: Result
    doc_id: str = ""
    pages: int = 0
    code: str = ""
    reason: str = ""
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """By the names that every command's JSON has for them."""
        fields = asdict(self)
        path, pages = fields.pop("path"), fields.pop("pages")
        return {"source_path": path, "filename": PurePath(path).name, **fields, "num_pages": pages}


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """A page that was given up; page 0 is every page of the file. `stage`: read, images, ocr or visual."""

    path: str
    page: int
    stage: str
    code: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        fields = asdict(self)
        return {"source_path": fields.pop("path"), **fields}


@dataclass
class CodeCounts:
    """What a run did with source code."""

    units: int = 0  # pieces of the files that were read
    embedded: int = 0
    pending: int = 0  # still without a vector
    syntax_errors: int = 0  # files that have some; the rest of each is taken
    secrets: int = 0  # that were masked
    removed: list[str] = field(default_factory=list)  # files that were gone, where that was asked for


@dataclass
class IngestSummary:
    """The account of a run: every file given to it stands in `files` once."""

    files: list[FileOutcome] = field(default_factory=list)
    pages: int = 0  # read in this run
    chunks: int = 0  # embedded in this run and in the catalog at its end
    pending_chunks: int = 0  # still without a vector
    pending_ocr: int = 0  # pages that still wait for OCR, where it is on
    failed_pages: list[PageOutcome] = field(default_factory=list)  # given up in this run
    waiting_pages: list[PageOutcome] = field(default_factory=list)  # given up before and not tried in this run
    ocr_pages: int = 0  # read by OCR in this run
    ocr_failures: list[str] = field(default_factory=list)
    visual_pages: int = 0  # seen by a visual model in this run
    visual_failures: list[str] = field(default_factory=list)
    visual_error: str = ""  # why the visual side was left as it was
    visual_hint: str = ""
    links_not_followed: list[str] = field(default_factory=list)  # they lead out of the folders given
    dangling_links: list[str] = field(default_factory=list)  # they lead nowhere
    passed_over: dict[str, int] = field(default_factory=dict)  # files ctx cannot read, by ending, most frequent first
    gone: list[str] = field(default_factory=list)  # paths in the folders given at which documents were, and no file is
    removed: list[DocumentInfo] = field(default_factory=list)  # documents that went with them, where that was asked for
    empty_folders: list[str] = field(default_factory=list)  # where it was not done: an unmounted drive looks like that
    seconds: float = 0.0
    interrupted: bool = False
    code: CodeCounts | None = None  # of a run that took source code

    def count(self, result: Result) -> int:
        return Counter(outcome.result for outcome in self.files)[result]

    def warn(self, path: str, message: str) -> None:
        """Add a warning to what is told of a file."""
        self.files = [
            replace(outcome, warnings=(*outcome.warnings, message)) if outcome.path == path else outcome
            for outcome in self.files
        ]

    @property
    def failed(self) -> list[FileOutcome]:
        return [outcome for outcome in self.files if outcome.result == "failed"]

    def to_dict(self) -> dict[str, Any]:
        results: tuple[Result, ...] = ("added", "replaced", "renamed", "unchanged", "copy", "failed")
        fields = asdict(self)
        code = fields.pop("code")
        return {
            **{result: self.count(result) for result in results},
            **fields,
            "failed_pages": [page.to_dict() for page in self.failed_pages],
            "waiting_pages": [page.to_dict() for page in self.waiting_pages],
            "removed": [{"doc_id": document.doc_id, "filename": document.filename} for document in self.removed],
            "seconds": round(self.seconds, 3),
            "files": [outcome.to_dict() for outcome in self.files],
            **({} if code is None else {"code": code}),
        }


@dataclass(frozen=True, slots=True)
class RepositoryOutcome:
    """What became of one repository. `commits` are those it has in the index now."""

    path: str
    result: Literal["read", "failed", "removed"]
    repository: str = ""  # the folder in which git keeps it
    commits: int = 0
    added: int = 0
    removed: int = 0  # no longer reachable, or the repository is gone
    elsewhere: int = 0  # in the index already, from another copy of the repository
    damaged: int = 0  # taken without their changes, which git cannot show
    unreadable: int = 0  # left out
    reason: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()


@dataclass
class CommitsSummary:
    """The account of a run over the commits of repositories."""

    repositories: list[RepositoryOutcome] = field(default_factory=list)
    embedded: int = 0  # in this run
    pending: int = 0  # still without a vector
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def failed(self) -> list[RepositoryOutcome]:
        return [each for each in self.repositories if each.result == "failed"]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 3)}


Stage = Literal["embed", "render", "ocr", "visual", "commits", "publish"]


class Observer:
    """Told of progress as it happens, on the run's own thread; this one says nothing of it."""

    def on_plan(self, files: int, size_bytes: int) -> None:
        """How many files there are to read, after unchanged ones were set aside."""

    def on_page(self, path: str, page: int, pages: int) -> None:
        """A page of a file was read."""

    def on_file(self, outcome: FileOutcome) -> None:
        """A file is done with."""

    def on_warning(self, path: str, message: str) -> None:
        """Something came out about a file that is done with."""

    def on_failed_page(self, page: PageOutcome) -> None:
        """A page was given up."""

    def on_progress(self, stage: Stage, done: int, total: int) -> None:
        """How far a stage is: chunks that are embedded, documents that are drawn, pages that OCR read or a visual
        encoder saw, commits that were read. `publish` tells only that it begins."""

    def on_note(self, message: str) -> None:
        """Something the user should know now."""


class Account(Protocol):
    """A run, as far as what it has to tell goes."""

    summary: IngestSummary
    observer: Observer


def report_failure(work: Account, path: str, failed: FailedPage) -> None:
    outcome = PageOutcome(path, failed.page, failed.stage, failed.code, failed.reason)
    work.summary.failed_pages.append(outcome)
    work.observer.on_failed_page(outcome)
