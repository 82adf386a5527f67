"""The unit everything else works on: a line of text with its place and font, its characters cleaned.

What a PDF hands out is made into plain text without changing what stands on the page.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from research.records import Box

_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_SPACES = dict.fromkeys(
    (0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
    " ",
)
_INVISIBLE: dict[int, str] = dict.fromkeys(
    (0x061C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF), ""
)
_CONTROL: dict[int, str] = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "")
# Symbol and Wingdings put their bullets into the private-use area.
_BULLETS: dict[int, str] = dict.fromkeys((0xF0A7, 0xF0B7, 0xF0A8, 0xF06E, 0xF0D8, 0xF0FC, 0xF076, 0xF02D, 0xF071), "-")
# A soft hyphen that comes out of a PDF was drawn: to the reader it is a hyphen.
_HYPHENS: dict[int, str] = {0xAD: "-"}
_TABLE: dict[int, str] = _CONTROL | _SPACES | _INVISIBLE | _LIGATURES | _BULLETS | _HYPHENS

_RUN_OF_SPACES = re.compile(r" {2,}")
_SURROGATES = re.compile("[\ud800-\udfff]")
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")


class Line(NamedTuple):
    """A run of text on one baseline, in points from the top left of the page as displayed."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    bold: bool
    mono: bool
    block: int  # MuPDF's block number, a hint of what belongs together
    upright: bool

    @property
    def box(self) -> Box:
        return (self.x0, self.y0, self.x1, self.y1)

    @property
    def height(self) -> float:
        return self.y1 - self.y0

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2


class RawPage(NamedTuple):
    """What one page gave: its lines in the order of the content stream, picture boxes, and whether it is ruled."""

    number: int
    width: float
    height: float
    label: str
    rotated: bool
    lines: tuple[Line, ...]
    pictures: tuple[Box, ...]  # in points, as are its lines
    ruled: bool
    error: str = ""
    painted: bool = True  # whether anything but text is drawn on it


def same_row(a: Line, b: Line) -> bool:
    """Whether two lines stand on one baseline, as far as their boxes tell."""
    overlap = min(a.y1, b.y1) - max(a.y0, b.y0)
    return overlap >= 0.6 * min(a.height, b.height)


def clean_text(raw: str) -> str:
    """Clean one line's text: no control, zero-width or bidi characters, single spaces, NFC, ligatures spelt out."""
    if raw.isascii() and raw.isprintable():
        return _RUN_OF_SPACES.sub(" ", raw).strip()
    text = unicodedata.normalize("NFC", _SURROGATES.sub("\ufffd", raw.translate(_TABLE)))
    return _RUN_OF_SPACES.sub(" ", text).strip()


def clean_code(raw: str) -> str:
    """Clean as `clean_text` does, but spaces keep their number: in code they mean something."""
    if raw.isascii() and raw.isprintable():
        return raw.rstrip()
    text = _SURROGATES.sub("\ufffd", raw.replace("\t", "    ").translate(_TABLE))
    return unicodedata.normalize("NFC", text).rstrip()


def is_rtl(text: str) -> bool:
    """Whether most letters run from right to left."""
    if text.isascii():
        return False
    return len(_RTL.findall(text)) * 2 > sum(map(str.isalpha, text))


def alnum_count(text: str) -> int:
    """Count the letters and digits of a text: the measure of what is lost or kept."""
    return sum(map(str.isalnum, text))
