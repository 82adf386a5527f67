"""What a reading process can be asked to do, and what it answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ingest.wire import lines_in, parse_page
from research.records import Chunk, Line, Page

Task = Literal["read", "draw", "ocr"]

NO_SPACE = "no_space"  # the code of a failure that is the disk's and not the document's


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work on one file."""

    task: Task
    path: Path
    doc_id: str
    spool: Path  # "read": a file to write pages to; "draw": a folder for images
    encoder: str = ""  # whose tokens chunks are measured in, as research.encoders.counting names it
    pages: tuple[int, ...] = ()  # "ocr": which pages
    engine: str = "auto"  # "ocr": what reads them
    language: str = ""  # "ocr": what they are written in, as tesseract names it
    force: bool = False  # OCR is to read pages whatever their text layer
    skip: tuple[int, ...] = ()  # pages that broke the reader before
    deaths: tuple[tuple[int, str], ...] = ()  # how processes ended on it so far: the page each was on, and the code
    given_up: int = 0  # pages of `skip` that were given up while this job was worked on
    trouble: tuple[str, str] = ("", "")  # the code and reason of the last of them

    def message(self) -> dict[str, Any]:
        """As it goes over the pipe; the path as bytes in hex, because it may be no valid text."""
        return {
            "task": self.task,
            "path": os.fsencode(self.path).hex(),
            "spool": str(self.spool),
            "encoder": self.encoder,
            "pages": self.pages,
            "engine": self.engine,
            "language": self.language,
            "force": self.force,
            "skip": self.skip,
        }


@dataclass(frozen=True, slots=True)
class PageStarted:
    """A page is about to be touched."""

    job: Job
    page: int
    pages: int


@dataclass(frozen=True, slots=True)
class PageOcred:
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
    """The whole document is in the job's spool file."""

    job: Job
    title: str
    pages: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentDrawn:
    """The images of these pages are in the job's spool folder."""

    job: Job
    pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DocumentOcred:
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


Event = PageStarted | PageOcred | PageFailed | DocumentRead | DocumentDrawn | DocumentOcred | DocumentFailed


def event_of(job: Job, message: dict[str, Any]) -> Event:
    """A message of the process as an event."""
    makers: dict[str, Callable[[], Event]] = {
        "page": lambda: PageStarted(job, message["page"], message["pages"]),
        "ocr": lambda: PageOcred(job, *parse_page(message["line"]), lines_in(message["lines"])),
        "page_failed": lambda: PageFailed(
            job, message["page"], message["code"], message["reason"], message["tries"], message["trace"]
        ),
        "read": lambda: DocumentRead(job, message["title"], message["pages"], tuple(message["warnings"])),
        "drawn": lambda: DocumentDrawn(job, tuple(message["pages"])),
        "ocr_done": lambda: DocumentOcred(job),
        "failed": lambda: DocumentFailed(job, message["code"], message["reason"], trace=message.get("trace", "")),
    }
    return makers[message["event"]]()
