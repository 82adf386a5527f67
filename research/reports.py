"""What looking after an index tells: its status, checks and repairs; what was removed, rebuilt, backed up or brought
back; and pages that were given up, in words."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from research.records import DocumentInfo

Severity = Literal["ok", "warning", "error"]

_SHOWN = 3
_DOING = {"read": "", "images": "drawing it: ", "ocr": "OCR: ", "visual": "the visual model: "}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, or repaired: how it stands now, and what is left for the user to do."""

    name: str
    severity: Severity
    message: str
    remedy: str = ""
    fixable: bool = False  # `repair` mends it


@dataclass(frozen=True, slots=True)
class Contact:
    """A model at an address that is asked, and what for."""

    use: str
    address: str


@dataclass(frozen=True, slots=True)
class Status:
    """The fields of `ctx status --json`. Without an index all but the first are as they stand here."""

    index: str
    exists: bool = False
    documents: int = 0
    pages: int = 0
    pages_without_text: int = 0
    chunks: int = 0
    pending_chunks: int = 0
    unfinished_documents: int = 0
    pages_for_ocr: int = 0
    given_up: tuple[Noted, ...] = ()
    size_bytes: int = 0
    text_encoder: str = ""
    visual_encoder: str = ""
    encoders_not_allowed: tuple[str, ...] = ()  # named by the index alone, so not loaded
    pages_without_visual: int = 0
    collections_behind: bool = False
    collections_missing: int = 0
    collections_surplus: int = 0
    memories: int = 0
    memories_without_vectors: int = 0  # found by their words only, until the next question embeds them
    sessions: int = 0  # conversations that are kept
    turns: int = 0  # questions in them
    items: Mapping[str, int] = field(default_factory=dict)  # code, commits, experiences, values: kind → how many
    items_without_vectors: int = 0
    contacts: tuple[Contact, ...] = ()  # who would hear of a question or a document
    writing: bool = False  # whether a process holds the write lock
    writer_pid: int | None = None  # which one, where it is known


@dataclass(frozen=True, slots=True)
class Removal:
    """What a removal would take, or took."""

    documents: tuple[DocumentInfo, ...]
    pattern: str = ""  # one that means several of them, for which whoever asks should be sure
    published: bool = True  # False: the collections still hold them, until the next question brings them up to date


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What the rebuilt indexes hold."""

    pages: int  # in full-text search
    text_records: int  # chunks in Chroma
    visual_records: int  # pages in Chroma


@dataclass(frozen=True, slots=True)
class Backup:
    """The file that was written."""

    file: str
    documents: int
    pages: int
    images: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Restored:
    """What the index holds now. `kept_aside`: where a damaged catalog was put that stood in the way."""

    documents: int
    pages: int
    chunks: int
    images: int
    kept_aside: str = ""
    text_encoder: str = ""
    visual_encoder: str = ""
    foreign_encoders: tuple[str, ...] = ()  # those of them that ctx does not carry inside


class Failed(Protocol):
    """A page that was given up, in a run or in the index; page 0 is every page of the file."""

    @property
    def path(self) -> str: ...
    @property
    def page(self) -> int: ...
    @property
    def stage(self) -> str: ...
    @property
    def reason(self) -> str: ...


class Noted(Failed, Protocol):
    """One that the index remembers."""

    @property
    def waits(self) -> bool: ...


def page_line(failed: Failed) -> str:
    """`docs/a.pdf, page 3: OCR: a page took more than 90 seconds`"""
    page = f", page {failed.page}" if failed.page else ""
    return f"{failed.path}{page}: {_DOING.get(failed.stage, '')}{failed.reason}"


def places(found: Sequence[Failed]) -> str:
    """`2 pages (a.pdf p. 3, b.pdf p. 1)`; a file that was given up as a whole stands there without a page."""
    pages = sum(1 for failed in found if failed.page)
    counts = [amount(count, noun) for count, noun in ((pages, "page"), (len(found) - pages, "file")) if count]
    names = [_place(failed) for failed in found[:_SHOWN]] + ["…"] * (len(found) > _SHOWN)
    return f"{' and '.join(counts)} ({', '.join(names)})"


def remedy(found: Sequence[Noted]) -> str:
    """The next command to type."""
    return f"try again with: ctx ingest PATH{' --retry' if any(failed.waits for failed in found) else ''}"


def _place(failed: Failed) -> str:
    name = os.path.basename(failed.path)  # noqa: PTH119  a name from anywhere, no path of ours
    return f"{name} p. {failed.page}" if failed.page else name


def amount(number: int, noun: str) -> str:
    """`1 page`, `2,000 pages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
