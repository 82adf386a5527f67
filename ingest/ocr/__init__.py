"""What OCR is to do, decided before anything heavy is loaded: whether a page needs it, and which engine reads here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from research.errors import CtxError, UsageError
from research.records import Block, Box, Page, area, overlap, touches, union

if TYPE_CHECKING:
    from ingest.ocr.engine import OcrEngine

_ENGINES = ("auto", "tesseract", "rapidocr")

_FEW_CHARACTERS = 20  # a page with fewer has no text layer worth the name
_ENOUGH_TO_JUDGE = 40
_BROKEN_SHARE = 0.1
_PLENTY = 200  # characters on a page whose picture covers it all: a background, or a scan that was read before
_BACKGROUND = 0.9  # of the page
_MIN_PICTURE = 0.08  # of the page's area
_MIN_PICTURE_SIDE = 0.1  # of the page's width or height: strips and rules hold no text
_MAX_PICTURES = 8
_TOUCHING = 0.005
# U+FFFD, control characters but for white space (category Cc), and the three areas of private use (Co).
_BROKEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]"
)


def choose_engine(wanted: str = "auto", *, language: str = "") -> OcrEngine:
    """Return the engine asked for, or with "auto" tesseract where it works and rapidocr where not.

    `language` is tesseract's ("eng", "deu+eng") and needs tesseract: rapidocr has one model and cannot be told.
    Raises `CtxError` with the command that installs what is missing.
    """
    if wanted not in _ENGINES:
        raise UsageError(f"there is no OCR engine called {wanted!r}", hint=f"choose one of: {', '.join(_ENGINES)}")
    from ingest.ocr.engine import RapidEngine
    from ingest.ocr.tesseract import TesseractEngine

    if wanted == "rapidocr" and language:
        raise UsageError(
            "rapidocr cannot be told a language",
            hint="take tesseract (--ocr-engine tesseract), or leave the language out",
        )
    if wanted == "rapidocr":
        return RapidEngine()
    # A language that was asked for is never read by an engine that does not know it: what is missing is said.
    if wanted == "tesseract" or language:
        return TesseractEngine(language=language)
    try:
        return TesseractEngine()
    except CtxError:
        return RapidEngine()


Boxes = tuple[Box, ...]
"""What to read of one page: these pictures, largest first; without any, the whole of it."""


def ocr_need(page: Page, *, force: bool = False) -> Boxes | None:
    """Tell what OCR should read of a page; None for nothing, as of one that could not be read: it may hang again."""
    if page.error:
        return None
    if force:
        return ()
    text = "".join(block.text for block in page.blocks) or page.markdown
    characters = len("".join(text.split()))
    if characters < _FEW_CHARACTERS:
        # Pictures, slices of pictures, letters drawn as outlines: what is painted may be text. Blank paper is not.
        return () if page.painted else None
    # Characters that stand for glyphs nobody mapped.
    if characters >= _ENOUGH_TO_JUDGE and len(_BROKEN.findall(text)) > _BROKEN_SHARE * characters:
        return ()
    boxes = _pictures_to_read(page.blocks, characters)
    return boxes or None


def _pictures_to_read(blocks: tuple[Block, ...], characters: int) -> Boxes:
    merged = _merged([block.box for block in blocks if block.kind == "picture" and not block.text])
    boxes = [
        box
        for box in merged
        if area(box) >= _MIN_PICTURE
        and min(box[2] - box[0], box[3] - box[1]) >= _MIN_PICTURE_SIDE
        and not (area(box) > _BACKGROUND and characters >= _PLENTY)
    ]
    return tuple(sorted(boxes, key=area, reverse=True)[:_MAX_PICTURES])


def _merged(boxes: list[Box]) -> list[Box]:
    """Pictures delivered in slices put together; pictures inside others dropped."""
    merged: list[Box] = []
    for box in sorted(boxes, key=lambda box: (box[1], box[0])):
        whole = box
        while (other := next((old for old in merged if _are_one(old, whole)), None)) is not None:
            merged.remove(other)
            whole = union((other, whole))
        merged.append(whole)
    return merged


def _are_one(a: Box, b: Box) -> bool:
    """Whether two boxes overlap or touch so that the box around both holds little else."""
    return touches(a, b, _TOUCHING) and area(union((a, b))) <= 1.15 * (area(a) + area(b) - area(overlap(a, b)))
