"""The records that travel from a reader to the catalog. Plain data.

A box on a page is a plain tuple, with plain functions for its arithmetic: a page has hundreds of them, and a class
would cost ingest time.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from PIL.Image import Image

    from research.models import MatchedRegion

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1, origin top left: fractions of the page's width and height where nothing else is said."""

WHOLE_PAGE: Box = (0.0, 0.0, 1.0, 1.0)

_DIGITS = 5  # a hundred-thousandth of a page is finer than any printer
_FINEST = 65535  # of a stored edge, 16 bits


def union(boxes: Iterable[Box]) -> Box:
    """The smallest box around them all."""
    left, top, right, bottom = zip(*boxes, strict=True)
    return (min(left), min(top), max(right), max(bottom))


def overlap(a: Box, b: Box) -> Box:
    """What both cover; a box without area where they do not meet."""
    x0, y0 = max(a[0], b[0]), max(a[1], b[1])
    return (x0, y0, max(x0, min(a[2], b[2])), max(y0, min(a[3], b[3])))


def area(box: Box) -> float:
    """Width times height; nothing for a box turned inside out."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def touches(a: Box, b: Box, slack: float = 0.0) -> bool:
    """Whether two boxes overlap, or lie no further apart than `slack`."""
    return a[0] <= b[2] + slack and b[0] <= a[2] + slack and a[1] <= b[3] + slack and b[1] <= a[3] + slack


def contains(outer: Box, inner: Box, slack: float = 0.0) -> bool:
    """Whether `inner` lies in `outer`, or sticks out no further than `slack`."""
    return (
        outer[0] - slack <= inner[0]
        and outer[1] - slack <= inner[1]
        and inner[2] <= outer[2] + slack
        and inner[3] <= outer[3] + slack
    )


def contains_center(outer: Box, inner: Box, slack: float = 0.0) -> bool:
    """Whether the middle of `inner` lies in `outer`, or no further outside than `slack`."""
    x, y = (inner[0] + inner[2]) / 2, (inner[1] + inner[3]) / 2
    return outer[0] - slack <= x <= outer[2] + slack and outer[1] - slack <= y <= outer[3] + slack


def scaled(box: Box, wide: float, tall: float) -> Box:
    """A box with its edges multiplied: fractions of a page to points or pixels of it."""
    return (box[0] * wide, box[1] * tall, box[2] * wide, box[3] * tall)


def fractions(box: Box, width: float, height: float) -> Box:
    """A box in points or pixels to fractions of a page of that size: within it, upright and rounded, whatever comes."""
    width = width if width > 0 else math.inf
    height = height if height > 0 else math.inf
    x0, y0, x1, y1 = clamped((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
    return rounded((x0, y0, max(x0, x1), max(y0, y1)))


def clamped(box: Box) -> Box:
    """A box with no edge outside the page."""
    # In this order NaN, which broken files hold, comes out as 0.
    return (
        min(1.0, max(0.0, box[0])),
        min(1.0, max(0.0, box[1])),
        min(1.0, max(0.0, box[2])),
        min(1.0, max(0.0, box[3])),
    )


def rounded(box: Box, digits: int = _DIGITS) -> Box:
    return (round(box[0], digits), round(box[1], digits), round(box[2], digits), round(box[3], digits))


def placed(box: Box, outer: Box) -> Box:
    """A box given as fractions of `outer`, in the measure that `outer` has."""
    x0, y0, x1, y1 = outer
    wide, tall = x1 - x0, y1 - y0
    return (x0 + box[0] * wide, y0 + box[1] * tall, x0 + box[2] * wide, y0 + box[3] * tall)


def turned_back(box: Box, degrees: int) -> Box:
    """A box on an image that was turned clockwise by 0, 90, 180 or 270 degrees, as a box on the image before."""
    x0, y0, x1, y1 = box
    if degrees == 90:
        box = (y0, 1 - x1, y1, 1 - x0)
    elif degrees == 180:
        box = (1 - x1, 1 - y1, 1 - x0, 1 - y0)
    elif degrees == 270:
        box = (1 - y1, x0, 1 - y0, x1)
    return rounded(box)


def pack_boxes(boxes: Sequence[Box]) -> bytes:
    """Boxes as they are stored: four 16-bit fractions each."""
    return array("H", [round(edge * _FINEST) for box in boxes for edge in clamped(box)]).tobytes()


def unpack_boxes(stored: bytes) -> list[Box]:
    edges = [edge / _FINEST for edge in array("H", stored)]
    return [(edges[i], edges[i + 1], edges[i + 2], edges[i + 3]) for i in range(0, len(edges), 4)]


_COLOUR = (214, 40, 40)
_FILL = 46  # of 255: the text below stays readable
_MARGIN = 0.006  # of the longest side, so that the frame does not touch the letters


def framed(source: Path | IO[bytes], regions: Sequence[MatchedRegion]) -> Image:
    """The picture of a page with its regions framed; the best one has the thickest frame. Raises OSError if it is no
    picture."""
    from PIL import Image, ImageDraw

    with Image.open(source) as stored:
        page = stored.convert("RGB")
    layer = Image.new("RGBA", page.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    width, height = page.size
    margin = _MARGIN * max(page.size)
    for rank, region in enumerate(regions):
        x0, y0, x1, y1 = region.box
        frame = (
            max(0.0, x0 * width - margin),
            max(0.0, y0 * height - margin),
            min(width - 1.0, x1 * width + margin),
            min(height - 1.0, y1 * height + margin),
        )
        pen.rectangle(frame, fill=(*_COLOUR, _FILL), outline=(*_COLOUR, 255), width=max(2, 5 - 2 * rank))
    page.paste(layer, mask=layer)
    return page


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
