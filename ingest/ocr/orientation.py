"""Pages that were scanned lying on their side or head: noticed by how badly they read, turned, and read again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PIL import Image

from ingest.ocr.engine import OcrLine
from ingest.ocr.layout import is_tall, mean_confidence
from ingest.pdf.lines import alnum_count
from research.boxes import turned_back

Lines = list[OcrLine]

_MIN_LINES = 5  # fewer tell nothing
_TRANSPOSE = {
    90: Image.Transpose.ROTATE_270,  # Pillow turns the other way round
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_90,
}


def read_upright(
    image: Image.Image,
    read: Callable[[Image.Image], Lines],
    turn_of: Callable[[Image.Image, Lines], int],
    *,
    poor: float,
) -> Lines:
    """Read an image; where it reads badly and another turn reads better, take that.

    `poor` is the mean confidence that makes one ask, `turn_of` then tells the degrees, clockwise, or 0.
    """
    first = read(image)
    on_side = _tall_share(first, image.size) >= 0.5
    if len(first) < _MIN_LINES or (mean_confidence(first) >= poor and not on_side):
        return first
    turn = turn_of(image, first)
    if turn not in _TRANSPOSE:
        return first
    second = read(image.transpose(_TRANSPOSE[turn]))
    # Lines on their side may have been read well already; upright they also fall into rows and paragraphs.
    if _score(second) <= (0.9 if on_side else 1.2) * _score(first):
        return first
    return [replace(line, box=turned_back(line.box, turn), turn=turn) for line in second]


def _tall_share(lines: Lines, size: tuple[int, int]) -> float:
    characters = sum(len(line.text) for line in lines)
    return sum(len(line.text) for line in lines if is_tall(line, size)) / max(characters, 1)


def _score(lines: Lines) -> float:
    return sum(line.confidence * alnum_count(line.text) for line in lines)
