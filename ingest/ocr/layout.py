"""OCR lines as the PDF reader's lines, so that one set of rules finds columns, rows and paragraphs in both."""

from __future__ import annotations

import math
from dataclasses import replace

from ingest.ocr.engine import OcrLine
from ingest.pdf.layout import reading_order
from ingest.pdf.lines import Line
from ingest.pdf.paragraphs import Row, make_rows
from research.boxes import Box, placed, rounded, scaled, turned_back

_BODY = 10.0  # points given to the usual height of a line: the reader's rules are made for such pages
_NEAR_BODY = 1.3  # ink tells a line's size only roughly; raised notes and rules change it
_STEP = 1.25  # between larger and smaller sizes


def in_reading_order(lines: list[OcrLine], size: tuple[int, int]) -> list[OcrLine]:
    """The lines of an image of `size` pixels, as a person reads them."""
    return [lines[piece.block] for region in regions(lines, size) for row in region for piece in row.lines]


def regions(lines: list[OcrLine], size: tuple[int, int]) -> list[list[Row]]:
    """Columns and other parts of the page in reading order, each a list of rows from top to bottom."""
    if lines and lines[0].turn:
        turn = lines[0].turn
        lines = [replace(line, box=turned_back(line.box, 360 - turn)) for line in lines]
        size = size if turn == 180 else (size[1], size[0])
    return [make_rows(region) for region in reading_order(_levelled(lines, size))]


def _levelled(lines: list[OcrLine], size: tuple[int, int]) -> list[Line]:
    """In points of an imagined page of ordinary type, with the skew of the scan taken out. `block` is the index."""
    wide, tall = size
    if not lines or not wide or not tall:
        return []
    slope = _skew(lines, wide)
    flat = [_flat(line, slope, wide, tall) for line in lines]
    body = _weighted_median([(box[3] - box[1], len(line.text)) for box, line in zip(flat, lines, strict=True)])
    scale = _BODY / max(body, 1e-6)
    levelled = []
    for index, (line, box) in enumerate(zip(lines, flat, strict=True)):
        x0, y0, x1, y1 = scaled(box, scale, scale)
        upright = y1 - y0 < 1.5 * (x1 - x0) or len(line.text) < 3
        height = y1 - y0 if upright else x1 - x0
        levelled.append(Line(line.text, x0, y0, x1, y1, _snapped(height), False, False, index, upright))
    return levelled


def _flat(line: OcrLine, slope: float, wide: int, tall: int) -> Box:
    x0, y0, x1, y1 = scaled(line.box, wide, tall)
    shift = slope * ((x0 + x1) / 2 - wide / 2)
    # A skewed line's box is higher than the line by what it climbs.
    climb = min(abs(slope) * (x1 - x0), 0.5 * (y1 - y0)) / 2
    return (x0, y0 - shift + climb, x1, y1 - shift - climb)


def _skew(lines: list[OcrLine], wide: int) -> float:
    """The slope of the long lines, or 0 where the page stands straight."""
    slopes = [(line.slope, round((line.box[2] - line.box[0]) * wide)) for line in lines if line.slope]
    slope = _weighted_median(slopes) if slopes else 0.0
    return slope if abs(slope) > 0.002 else 0.0


def _snapped(height: float) -> float:
    """The nearest of a few letter sizes: the body's for all that is near it, then coarse steps."""
    if _BODY / _NEAR_BODY < height < _BODY * _NEAR_BODY or height <= 0:
        return _BODY
    return round(_BODY * _STEP ** round(math.log(height / _BODY, _STEP)), 1)


def _weighted_median(values: list[tuple[float, int]]) -> float:
    ordered = sorted(values)
    half, seen = sum(weight for _, weight in ordered) / 2, 0
    for value, weight in ordered:
        seen += weight
        if seen >= half:
            return value
    return ordered[-1][0]


def mean_confidence(lines: list[OcrLine]) -> float:
    """Over all characters; 1 where there are none."""
    characters = sum(len(line.text) for line in lines)
    return sum(line.confidence * len(line.text) for line in lines) / characters if characters else 1.0


def is_tall(line: OcrLine, size: tuple[int, int]) -> bool:
    """Whether a line of some letters runs up or down the image rather than across."""
    wide, tall = (line.box[2] - line.box[0]) * size[0], (line.box[3] - line.box[1]) * size[1]
    return len(line.text) >= 3 and tall > 1.5 * wide


def on_page(lines: list[OcrLine], box: Box) -> list[OcrLine]:
    """Lines of a picture that stands in `box`, placed on its page."""
    return [replace(line, box=rounded(placed(line.box, box))) for line in lines]
