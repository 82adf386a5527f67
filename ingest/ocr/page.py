"""OCR of one page: it is drawn in grey, its lines become blocks and markdown, and what was read is put in the place of
the page that had no text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from PIL import Image

from ingest.ocr import Boxes
from ingest.ocr.engine import MAX_SIDE, OcrEngine, OcrLine, lines_on_page, regions
from ingest.pdf.compose import with_blocks, write_blocks
from ingest.pdf.document import Vocabulary
from ingest.pdf.mupdf import raster
from ingest.pdf.paragraphs import Draft, draft_region
from research.errors import OCR_FAILED, OcrError
from research.records import Block, Box, FailedPage, Page, area, contains_center, union
from research.store import ledger

_MIN_PICTURE_SIDE = 700  # pixels a small picture is drawn with at least: its letters are small as well
_ENLARGED = 1.25  # pictures are drawn larger than the page they stand on, for the same reason
_WORDS = re.compile(r"[^\W_]+")
_SLACK = 0.01  # of the page, by which ink and boxes may differ
_SAME = 0.75  # share of a line's words found where it stands, from which on it is the same text

Render = Callable[[Box | None, int], Image.Image]
"""Renders a part of one page (None: all of it) so that its longest side has so many pixels."""


@dataclass(frozen=True, slots=True)
class OcrResult:
    """A page with what OCR read put in, and the lines it came from, placed on the page."""

    page: Page
    lines: tuple[OcrLine, ...]
    engine: str


def ocr_page(
    page: Page, need: Boxes, drawing: Any, engine: OcrEngine, progress: Callable[[int], None]
) -> OcrResult | FailedPage:
    """Read one page, `drawing` being PyMuPDF's. An engine that was killed, or took too long, is given a second try.
    `progress` gets the page's number before each."""
    tries = 0
    while True:
        tries += 1
        progress(page.number)
        try:
            return read_page(page, need, partial(render, drawing), engine)
        except OcrError as error:
            if error.code == OCR_FAILED or tries == 2:
                return FailedPage(page.number, ledger.STAGE_OCR, error.code, error.message, tries)


def read_page(page: Page, need: Boxes, render: Render, engine: OcrEngine) -> OcrResult:
    """Read what the page needs. Where nothing can be read the page comes back as it was. Raises `OcrError`."""
    if not need:
        image = render(None, engine.page_side)
        lines = engine.read(image)
        read = _with_text(page, blocks_of(lines, image.size)) if lines else page
        return OcrResult(read, tuple(lines), engine.name)
    kept: list[OcrLine] = []
    for box in need:
        share = max(box[2] - box[0], box[3] - box[1])
        image = render(box, max(_MIN_PICTURE_SIDE, min(engine.page_side, round(_ENLARGED * share * engine.page_side))))
        lines = engine.read(image)
        placed = lines_on_page(lines, box)
        new = [i for i, line in enumerate(placed) if not _is_known(line, page.blocks)]
        # One block, so that a picture's words stay together.
        text = "\n".join(block.text for block in blocks_of([lines[i] for i in new], image.size))
        if text:
            page = _with_picture_text(page, box, text)
            kept += [placed[i] for i in new]
    return OcrResult(page, tuple(kept), engine.name)


def blocks_of(lines: list[OcrLine], size: tuple[int, int]) -> list[Block]:
    """Make paragraphs, lists and rows of a page's lines, in reading order. `size` is the image's, in pixels."""
    vocabulary = Vocabulary()
    vocabulary.add(line.text for line in lines)
    return [
        block
        for region in regions(lines, size)
        for block in write_blocks(draft_region(region, code=False), lambda drafts: _box_of(drafts, lines), vocabulary)
    ]


def _box_of(drafts: list[Draft], lines: list[OcrLine]) -> Box:
    """The box around the lines as they stand on the page, skewed or not."""
    boxes = [lines[piece.block].box for draft in drafts for row in draft.rows for piece in row.lines]
    return union(boxes)


def _with_text(page: Page, blocks: list[Block]) -> Page:
    """What OCR read in place of the text there was; pictures stay."""
    for picture in (block for block in page.blocks if block.kind == "picture"):
        at = next((i for i, block in enumerate(blocks) if block.box[1] > picture.box[1]), len(blocks))
        blocks.insert(at, replace(picture, text=""))
    return with_blocks(page, blocks)


def _with_picture_text(page: Page, box: Box, text: str) -> Page:
    """The text given to the largest of the picture blocks that make up `box`; they stand in reading order already."""
    blocks = list(page.blocks)
    parts = [
        i
        for i, block in enumerate(blocks)
        if block.kind == "picture" and not block.text and contains_center(box, block.box, _SLACK)
    ]
    if parts:
        at = max(parts, key=lambda i: area(blocks[i].box))
        blocks[at] = replace(blocks[at], text=text)
    else:
        blocks.append(Block("picture", text, box))
    return with_blocks(page, blocks)


def _is_known(line: OcrLine, blocks: tuple[Block, ...]) -> bool:
    """Whether the page's text has this line already: where it stands, or word for word elsewhere."""
    words = _words(line.text)
    if not words:
        return True
    elsewhere: set[str] = set()
    for block in blocks:
        if not block.text:
            continue
        there = set(_words(block.text))
        if contains_center(block.box, line.box, _SLACK) and _share(words, there) >= _SAME:
            return True
        elsewhere |= there
    # A figure or a name alone may well stand in the text and in the chart; a sentence does not.
    return len(words) >= 4 and _share(words, elsewhere) >= 0.95


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


def _share(words: list[str], known: set[str]) -> float:
    return sum(word in known for word in words) / len(words)


def render(page: Any, box: Box | None, longest: int) -> Image.Image:
    """Draw a page of PyMuPDF, or the part in `box`, in grey, its longest side `longest` pixels. Raises `OcrError`.

    The scale comes from the page's size, never from dpi: a page may measure a point or a billion.
    """
    image = raster(page, longest=max(1, min(longest, MAX_SIDE)), box=box, grey=True) if page is not None else None
    if image is None:
        raise OcrError("the page cannot be rendered")
    return image
