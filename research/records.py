"""The records that travel from a reader to the catalog. Plain data, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from research.boxes import Box

BlockKind = Literal["heading", "paragraph", "list", "code", "table", "picture"]

PAGE_GIVEN_UP = "the page was skipped"  # the error of a page that hung or crashed the reader


@dataclass(frozen=True, slots=True)
class Block:
    """One visible piece of a page, in reading order. `text` is its markdown; a picture's may be empty."""

    kind: BlockKind
    text: str
    box: Box
    level: int = 0  # 1–6 for headings, else 0


@dataclass(frozen=True, slots=True)
class Page:
    """One page as read: `number` is physical and 1-based; `markdown` is its blocks joined by blank lines."""

    number: int
    markdown: str
    label: str = ""  # the printed page label ("iv", "12"), empty where the document has none
    section_path: str = ""  # "Introduction > Methods"
    parent_heading: str = ""
    num_headings: int = 0
    num_tables: int = 0
    num_pictures: int = 0
    blocks: tuple[Block, ...] = ()
    error: str = ""  # why this page could not be read; its markdown is then empty
    painted: bool = True  # whether anything but text is drawn on it
    needs_ocr: bool = False  # its text layer, or a large picture on it, still waits to be read by OCR
    ocr_engine: str = ""  # what read it, where OCR did
    signals: int = -1  # what in it speaks to a model, packed; -1: nobody has looked


@dataclass(frozen=True, slots=True)
class FailedPage:
    """A page that a stage gave up; page 0 is the whole document. `code` is a stable word for scripts."""

    page: int
    stage: str
    code: str
    reason: str
    tries: int = 1


@dataclass(frozen=True, slots=True)
class Line:
    """One line that OCR read, with its place on the page."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class Region:
    """A visible piece of a chunk: where it stands on the page, and where in the chunk's text it begins."""

    start: int
    box: Box


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of one page, small enough for the encoder's window together with its `context`."""

    page: int
    ordinal: int  # position on the page, from 0
    text: str
    context: str  # document title and section, embedded in front of the text
    tokens: int  # of context and text together, as the encoder sees them
    box: Box  # the union of its blocks
    regions: tuple[Region, ...] = ()  # its blocks, in order


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """What is known of a document besides its pages."""

    doc_id: str
    filename: str
    extension: str
    title: str
    num_pages: int
    timestamp: str  # when it was added, ISO 8601, UTC
    source_path: str
    size_bytes: int
    sha256: str
    warnings: tuple[str, ...] = field(default=())
    # What it is called for as long as its file lives, whatever is written into it; given by the catalog.
    file_id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class RepositoryInfo:
    """A repository whose commits are in the index."""

    repository: str  # the folder in which git keeps it
    commits: int


@dataclass(frozen=True, slots=True)
class CodeTree:
    """A folder whose source code is in the index."""

    root: str  # the repository, else the folder that was given
    files: int
    units: int
