"""The unit everything else works on: a line of text as MuPDF sees it, with its place and font."""

from __future__ import annotations

from dataclasses import dataclass

from research.boxes import Box


@dataclass(frozen=True, slots=True)
class Line:
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


@dataclass(frozen=True, slots=True)
class RawPage:
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
