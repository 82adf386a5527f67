"""One PyMuPDF page to a `RawPage`: lines with their fonts, picture boxes, and a glance at the rules drawn on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ingest.pdf.drawings import find_drawings
from ingest.pdf.lines import Line, RawPage, clean_code, clean_text
from ingest.pdf.mupdf import TEXT_FLAGS, MupdfError, finite, mupdf_errors, pymupdf

_BOLD_NAMES = ("bold", "black", "heavy", "demi")
_MONO_NAMES = ("courier", "mono", "consolas", "menlo", "inconsolata", "typewriter", "cmtt")
# A page with more is no page a person reads, and would be embedded for an hour; its text is kept up to here.
MAX_CHARACTERS = 100_000
_MAX_LINES = 50_000

Span = dict[str, Any]


def extract_page(page: Any, number: int) -> RawPage:
    """Read one page. Raises `MupdfError`."""
    with mupdf_errors():
        rect = page.rect
        turn = page.rotation_matrix if page.rotation else None
        text = page.get_textpage(flags=TEXT_FLAGS).extractDICT()
    width, height = finite(rect.width), finite(rect.height)
    lines = _lines(text["blocks"], turn)
    pictures, ruled, painted = find_drawings(page, width, height)
    return RawPage(
        number=number,
        width=width,
        height=height,
        label=_label(page),
        rotated=turn is not None,
        lines=tuple(lines),
        pictures=pictures,
        ruled=ruled,
        painted=painted,
    )


def is_full(page: RawPage) -> bool:
    """Whether text of the page may have been left out."""
    return len(page.lines) >= _MAX_LINES or sum(len(line.text) for line in page.lines) >= MAX_CHARACTERS


def _label(page: Any) -> str:
    try:
        with mupdf_errors():
            label = page.get_label()
    except MupdfError:
        return ""  # a broken /PageLabels tree costs the label, not the page
    return clean_text(str(label or ""))[:32]


def _lines(blocks: Iterable[dict[str, Any]], turn: Any) -> list[Line]:
    lines: list[Line] = []
    seen: set[tuple[int, int, str]] = set()
    room = MAX_CHARACTERS
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
            lines.append(line if len(line.text) <= room else replace(line, text=line.text[:room]))
            room -= len(line.text)
            if room <= 0 or len(lines) >= _MAX_LINES:
                return lines
    return lines


def _line(raw: dict[str, Any], block: int, turn: Any) -> Line | None:
    spans: list[Span] = raw["spans"]
    joined = "".join(span["text"] for span in spans)
    if not joined or joined.isspace():
        return None
    size, bold, mono = _font(spans)
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


def _font(spans: list[Span]) -> tuple[float, bool, bool]:
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
