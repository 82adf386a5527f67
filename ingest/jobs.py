"""What a reading process can be asked to do, what it answers, and our own mistakes told apart from the document's.

Pages come from it as one JSON line each. JSON and not pickle, because the process that writes it has just parsed a file
nobody vouches for.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast

from research.context import packed_signals
from research.errors import CtxError
from research.observe import frames_of
from research.records import Block, Box, Chunk, FailedPage, Line, Page, Region

if TYPE_CHECKING:
    from ingest.code.units import ReadFile

Task = Literal["read", "render", "ocr", "code"]

UNREADABLE = "unreadable"  # the code of a file that cannot be opened or read just now
NO_SPACE = "no_space"  # the code of a failure that is the disk's and not the document's

# What is no mistake of ours on one page and must reach the edge of the process: errors with a meaning of their own.
NOT_OURS = (CtxError, MemoryError, OSError)
A_BUG = "a bug in ctx, not in the file"
_PACKAGES = {"ingest", "research"}
_LONGEST = 200  # characters of an exception's message, which may quote the document

P = ParamSpec("P")
T = TypeVar("T")

PageWithChunks = tuple[Page, list[Chunk]]


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work on one file."""

    task: Task
    path: Path
    doc_id: str
    output: Path  # "read": a file to write pages to; "render": a folder for images; "code": the catalog
    encoder: str = ""  # whose tokens chunks are measured in, as research.encoders names it
    pages: tuple[int, ...] = ()  # "ocr": which pages
    engine: str = "auto"  # "ocr": what reads them
    language: str = ""  # "ocr": what they are written in, as tesseract names it
    force: bool = False  # OCR is to read pages whatever their text layer
    skip_pages: tuple[int, ...] = ()  # pages that broke the reader before
    failed_attempts: tuple[tuple[int, str], ...] = ()  # processes that ended on it: the page each was on, the code
    given_up: int = 0  # pages of `skip_pages` that were given up while this job was worked on
    last_failure: tuple[str, str] = ("", "")  # the code and reason of the last of them

    def to_json(self) -> str:
        """Return it as a line of JSON, in which a path that is no valid text comes through as it is."""
        return json.dumps(fields_of(self), default=str)

    @classmethod
    def from_json(cls, line: str) -> Job:
        """Read it in a reading process, to which it matters what to do and not what was tried."""
        fields = json.loads(line)
        for name in ("pages", "skip_pages"):
            fields[name] = tuple(fields[name])
        return cls(**{**fields, "path": Path(fields["path"]), "output": Path(fields["output"])})


@dataclass(frozen=True, slots=True)
class PageStarted:
    """A page is about to be touched."""

    job: Job
    page: int
    pages: int


@dataclass(frozen=True, slots=True)
class PageOcrDone:
    """OCR has read a page."""

    job: Job
    page: Page
    chunks: list[Chunk]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A page was given up, and the job goes on without it; page 0: the job was. `trace`: where our own code failed."""

    job: Job
    page: int
    code: str
    reason: str
    tries: int = 1
    trace: str = ""

    def at(self, stage: str) -> FailedPage:
        return FailedPage(self.page, stage, self.code, self.reason, self.tries)


@dataclass(frozen=True, slots=True)
class DocumentRead:
    """The whole document is in the job's output file."""

    job: Job
    title: str
    pages: int
    without_text: int  # of these pages have no text layer
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentDone:
    """Every page was drawn, or read by OCR, or given up. `pages`: whose images are in the job's output folder."""

    job: Job
    pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CodeRead:
    """The pieces of a source file, or why it was passed over."""

    job: Job
    file: ReadFile


Event = PageStarted | PageOcrDone | Failed | DocumentRead | DocumentDone | CodeRead


def event_of(job: Job, message: dict[str, Any]) -> Event:
    """Make an event of a message from the process."""
    match message.pop("event"):
        case "page":
            return PageStarted(job, **message)
        case "ocr":
            lines = tuple(Line(line["text"], _box(line["box"])) for line in message["lines"])
            return PageOcrDone(job, *_page_with_chunks(message), lines)
        case "read":
            return DocumentRead(job, **{**message, "warnings": tuple(message["warnings"])})
        case "done":
            return DocumentDone(job, tuple(message["pages"]))
        case "code":
            from ingest.code.units import ReadFile

            return CodeRead(job, ReadFile.of(message["file"]))
        case _:
            return Failed(job, **message)


def encode_page(page: Page, chunks: list[Chunk]) -> str:
    return json.dumps({"page": page, "chunks": chunks}, default=fields_of)


def read_pages(path: Path) -> Iterator[PageWithChunks]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield _page_with_chunks(json.loads(line))


def fields_of(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass. `asdict` copies every value, which took a tenth of the time of reading."""
    return {name: getattr(record, name) for name in record.__slots__}


def _page_with_chunks(entry: dict[str, Any]) -> PageWithChunks:
    fields = entry["page"]
    blocks = tuple(Block(**{**block, "box": _box(block["box"])}) for block in fields.pop("blocks"))
    # Looked at here, once and for all questions: the process that opened the file is not trusted with it.
    page = Page(**{**fields, "signals": packed_signals(fields["markdown"])}, blocks=blocks)
    return page, [_chunk_of(chunk) for chunk in entry["chunks"]]


def _chunk_of(fields: dict[str, Any]) -> Chunk:
    regions = tuple(Region(region["start"], _box(region["box"])) for region in fields["regions"])
    return Chunk(**{**fields, "box": _box(fields["box"]), "regions": regions})


def _box(values: list[float]) -> Box:
    return cast(Box, tuple(values))


class Fault(Exception):  # noqa: N818  kept more often than raised
    """A mistake of our own code: a sentence for the user, the frames of its traceback for whoever mends it."""

    def __init__(self, reason: str, trace: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.trace = trace


def fault_of(error: Exception) -> Fault:
    if isinstance(error, Fault):
        return error
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    return Fault(f"{A_BUG}: {said[:_LONGEST]}", frames_of(error))


def attempt(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | Fault:
    """Do something for one page, which is all that a mistake of ours in it may cost: that comes back."""
    try:
        return work(*args, **kwargs)
    except NOT_OURS:
        raise
    except Exception as error:  # noqa: BLE001
        return fault_of(error)


def is_ours(error: Exception) -> bool:
    """Whether it was raised in our own code, and not inside a library that we called."""
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    if innermost is None:
        return False
    module = str(innermost.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _PACKAGES and not isinstance(error, RecursionError)
