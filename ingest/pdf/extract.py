"""One PyMuPDF page to a `RawPage`: lines with their faces, picture boxes, and a glance at the rules drawn on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from ingest.pdf.cleaning import clean_code, clean_text
from ingest.pdf.lines import Line, RawPage, Rect
from ingest.pdf.mupdf import READ_ERRORS, TEXT_FLAGS, finite, pymupdf

_BOLD_NAMES = ("bold", "black", "heavy", "demi")
_MONO_NAMES = ("courier", "mono", "consolas", "menlo", "inconsolata", "typewriter", "cmtt")
_MAX_LINES = 50_000  # a page with more is no page a person reads; its text is kept up to here
_MAX_MARKS = 20_000  # drawing operations looked at
_MAX_PICTURES = 64
_TABLE_PATHS = 4_000  # beyond this a page is a drawing, not a table

Span = dict[str, Any]


def extract_page(page: Any, number: int) -> RawPage:
    """Read one page. Raises what PyMuPDF raises."""
    width, height = finite(page.rect.width), finite(page.rect.height)
    turn = page.rotation_matrix if page.rotation else None
    text = page.get_textpage(flags=TEXT_FLAGS).extractDICT()
    lines = _lines(text["blocks"], turn)
    pictures, ruled = _marks(_bbox_log(page), turn, width, height)
    return RawPage(
        number=number,
        width=width,
        height=height,
        label=_label(page),
        rotated=turn is not None,
        lines=tuple(lines),
        pictures=pictures,
        ruled=ruled,
    )


def _bbox_log(page: Any) -> list[tuple[str, Rect]]:
    try:
        log: list[tuple[str, Rect]] = page.get_bboxlog()
    except READ_ERRORS:
        return []  # the text was read; pictures are not worth the page
    return log


def _label(page: Any) -> str:
    try:
        return clean_text(str(page.get_label() or ""))[:32]
    except READ_ERRORS:
        return ""  # a broken /PageLabels tree costs the label, not the page


def _lines(blocks: Iterable[dict[str, Any]], turn: Any) -> list[Line]:
    lines: list[Line] = []
    seen: set[tuple[int, int, str]] = set()
    for number, block in enumerate(blocks):
        for raw in block.get("lines", ()):
            line = _line(raw, number, turn)
            if line is None:
                continue
            # Shadows and poor man's bold draw the same words twice in the same place.
            key = (round(line.x0 / 2), round(line.y0 / 2), line.text)
            if key in seen and len(line.text) > 1:
                continue
            seen.add(key)
            lines.append(line)
            if len(lines) >= _MAX_LINES:
                return lines
    return lines


def _line(raw: dict[str, Any], block: int, turn: Any) -> Line | None:
    spans: list[Span] = raw["spans"]
    joined = "".join(span["text"] for span in spans)
    if not joined or joined.isspace():
        return None
    size, bold, mono = _face(spans)
    text = clean_code(joined) if mono else clean_text(joined)
    if not text.strip():
        return None
    box, direction = raw["bbox"], raw["dir"]
    if turn is not None:
        box = tuple(pymupdf.Rect(box) * turn)
        direction = (direction[0] * turn.a + direction[1] * turn.c, direction[0] * turn.b + direction[1] * turn.d)
    x0, y0, x1, y1 = map(finite, box)
    upright = raw["wmode"] == 0 and abs(direction[1]) < 0.1 and direction[0] > 0
    return Line(text, x0, y0, x1, y1, size, bold, mono, block, upright)


def _face(spans: list[Span]) -> tuple[float, bool, bool]:
    """Size, bold and monospace of a line: what most of its characters have."""
    if len(spans) == 1:
        span = spans[0]
        return round(finite(span["size"]), 1), _is_bold(span), _is_mono(span)
    sizes: Counter[float] = Counter()
    total = bold = mono = 0
    for span in spans:
        weight = len(span["text"].strip())
        total += weight
        sizes[round(finite(span["size"]), 1)] += weight
        bold += weight * _is_bold(span)
        mono += weight * _is_mono(span)
    return sizes.most_common(1)[0][0], bold >= 0.8 * total, mono >= 0.8 * total


def _is_bold(span: Span) -> bool:
    return bool(span["flags"] & pymupdf.TEXT_FONT_BOLD) or _named(span["font"])[0]


def _is_mono(span: Span) -> bool:
    return bool(span["flags"] & pymupdf.TEXT_FONT_MONOSPACED) or _named(span["font"])[1]


@lru_cache(maxsize=1024)
def _named(font: str) -> tuple[bool, bool]:
    """What a font's name says of it (bold, monospace) where its flags are silent."""
    name = font.lower().replace("monotype", "")
    return any(word in name for word in _BOLD_NAMES), any(word in name for word in _MONO_NAMES)


def _marks(log: list[tuple[str, Rect]], turn: Any, width: float, height: float) -> tuple[tuple[Rect, ...], bool]:
    """The pictures worth counting, and whether enough rules are drawn for a table to be likely."""
    pictures: dict[Rect, None] = {}
    across = upright = framed = paths = 0
    for kind, box in log[:_MAX_MARKS]:
        if kind.endswith("path"):
            paths += 1
            wide, tall = box[2] - box[0], box[3] - box[1]
            across += tall <= 3 and wide > 20
            upright += wide <= 3 and tall > 8
            # A frame may be one cell, or a whole grid drawn as one path.
            framed += kind == "stroke-path" and wide > 12 and tall > 6
        elif kind.startswith("fill-im") and len(pictures) < _MAX_PICTURES:
            placed = tuple(pymupdf.Rect(box) * turn) if turn is not None else box
            if _is_picture(placed, width, height):
                pictures[placed] = None
    ruled = paths <= _TABLE_PATHS and (framed > 0 or (across >= 2 and upright >= 1))
    return tuple(pictures), ruled


def _is_picture(box: Rect, width: float, height: float) -> bool:
    wide = min(finite(box[2]), width) - max(finite(box[0]), 0.0)
    tall = min(finite(box[3]), height) - max(finite(box[1]), 0.0)
    if wide <= 0 or tall <= 0:
        return False
    return (wide > 64 and tall > 64) or wide * tall >= 0.03 * width * height
