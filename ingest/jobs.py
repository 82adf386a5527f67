"""What a reading process can be asked to do, and what it answers.

Pages come from it as one JSON line each. JSON and not pickle, because the process that writes it has just parsed a file
nobody vouches for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from research.boxes import Box
from research.context import packed_signals
from research.records import Block, Chunk, Line, Page, Region
from research.store import INTERNAL

if TYPE_CHECKING:
    from ingest.code.units import Unit

Task = Literal["read", "render", "ocr", "code"]

UNREADABLE = "unreadable"  # the code of a file that cannot be opened or read just now
NO_SPACE = "no_space"  # the code of a failure that is the disk's and not the document's

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

    def message(self) -> dict[str, Any]:
        """As it goes over the pipe; the path as bytes in hex, because it may be no valid text."""
        return {
            "task": self.task,
            "path": os.fsencode(self.path).hex(),
            "output": str(self.output),
            "encoder": self.encoder,
            "pages": self.pages,
            "engine": self.engine,
            "language": self.language,
            "force": self.force,
            "skip_pages": self.skip_pages,
        }


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
class PageFailed:
    """A page was given up; the job goes on without it. `trace` is there where our own code failed."""

    job: Job
    page: int
    code: str
    reason: str
    tries: int = 1
    trace: str = ""


@dataclass(frozen=True, slots=True)
class DocumentRead:
    """The whole document is in the job's output file."""

    job: Job
    title: str
    pages: int
    without_text: int  # of these pages have no text layer
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentRendered:
    """The images of these pages are in the job's output folder."""

    job: Job
    pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DocumentOcrDone:
    """Every page of the job was read or given up."""

    job: Job


@dataclass(frozen=True, slots=True)
class DocumentFailed:
    """The job was given up. `trace` is there where our own code failed."""

    job: Job
    code: str
    reason: str
    tries: int = 1
    trace: str = ""


@dataclass(frozen=True, slots=True)
class CodeRead:
    """The pieces of a source file (`ingest.code.units`), or why it was passed over."""

    job: Job
    sha256: str
    language: str
    units: tuple[Unit, ...]
    passed_over: str
    has_errors: bool
    secrets: int  # that were masked
    cut: bool  # it defines more than is taken


Event = (
    PageStarted
    | PageOcrDone
    | PageFailed
    | DocumentRead
    | DocumentRendered
    | DocumentOcrDone
    | CodeRead
    | DocumentFailed
)


def event_of(job: Job, message: dict[str, Any]) -> Event:
    """A message of the process as an event. A bug of ours is a failure like others, with a traceback."""
    makers: dict[str, Callable[[], Event]] = {
        "page": lambda: PageStarted(job, message["page"], message["pages"]),
        "ocr": lambda: PageOcrDone(job, *_decode_page(message["line"]), _decode_lines(message["lines"])),
        "page_failed": lambda: PageFailed(job, message["page"], message["code"], message["reason"], message["tries"]),
        "bug": lambda: _bug(job, message),
        "read": lambda: DocumentRead(
            job, message["title"], message["pages"], message["without_text"], tuple(message["warnings"])
        ),
        "rendered": lambda: DocumentRendered(job, tuple(message["pages"])),
        "ocr_done": lambda: DocumentOcrDone(job),
        "code": lambda: _code_read(job, message),
        "failed": lambda: DocumentFailed(job, message["code"], message["reason"]),
    }
    return makers[message["event"]]()


def _code_read(job: Job, message: dict[str, Any]) -> CodeRead:
    from ingest.code.units import Unit

    units = tuple(Unit.of(fields) for fields in message["units"])
    told = (message["passed_over"], message["has_errors"], message["secrets"], message["cut"])
    return CodeRead(job, message["sha256"], message["language"], units, *told)


def _bug(job: Job, message: dict[str, Any]) -> PageFailed | DocumentFailed:
    page, reason, trace = message["page"], message["reason"], message["traceback"]
    if page is None:
        return DocumentFailed(job, INTERNAL, reason, trace=trace)
    return PageFailed(job, page, INTERNAL, reason, trace=trace)


def encode_page(page: Page, chunks: list[Chunk]) -> str:
    return json.dumps({"page": page, "chunks": chunks}, default=_fields_of)


def _decode_page(line: str) -> PageWithChunks:
    entry = json.loads(line)
    return _page_of(entry["page"]), [_chunk_of(chunk) for chunk in entry["chunks"]]


def read_pages(path: Path) -> Iterator[PageWithChunks]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield _decode_page(line)


def _fields_of(record: Any) -> dict[str, Any]:
    # dataclasses.asdict copies every value on the way, which took a tenth of the time of reading a page.
    return {name: getattr(record, name) for name in record.__slots__}


def _page_of(fields: dict[str, Any]) -> Page:
    blocks = tuple(Block(**{**block, "box": _box(block["box"])}) for block in fields.pop("blocks"))
    # Looked at here, once and for all questions: the process that opened the file is not trusted with it.
    return Page(**{**fields, "signals": packed_signals(fields["markdown"])}, blocks=blocks)


def encode_lines(lines: Iterable[Line]) -> list[list[Any]]:
    return [[line.text, *line.box] for line in lines]


def _decode_lines(entries: list[list[Any]]) -> tuple[Line, ...]:
    return tuple(Line(text, _box(box)) for text, *box in entries)


def _chunk_of(fields: dict[str, Any]) -> Chunk:
    regions = tuple(Region(region["start"], _box(region["box"])) for region in fields["regions"])
    return Chunk(**{**fields, "box": _box(fields["box"]), "regions": regions})


def _box(values: list[float]) -> Box:
    return cast(Box, tuple(values))
