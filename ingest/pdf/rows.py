"""Visual rows: pieces of text on one baseline, put together in the order they are read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from ingest.pdf.layout import is_numeric
from ingest.pdf.lines import Line, is_rtl, same_row
from research.text import is_joined_script

CELL_MARK = " | "

_MARKER = re.compile(
    r"(?:[-•◦▪■●○‣⁃∙·❖➢➤►▶✓✔□☐☑☒§*]|\(?(?:\d{1,3}(?:\.\d{1,3})*|[A-Za-z]|[ivxIVX]{1,5})[.):]?|\[\d{1,3}\])"
)
_UNITS_BEFORE = {"$", "€", "£", "¥", "US$", "(", "$(", "~", "<", ">"}
_UNITS_AFTER = {"%", ")", ")%", "%)", "x", "pts", "bps", "†", "*", "**"}
_MAX_PIECES = 200  # of one row; hostile pages put thousands on one baseline


@dataclass(frozen=True, slots=True)
class Row:
    """One visual row: its cells from first to last, and the font most of it has."""

    cells: tuple[str, ...]
    x0: float
    y0: float
    x1: float
    y1: float
    text_x0: float  # where the words begin, after a list marker
    size: float
    bold: bool
    mono: bool
    block: int
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        return CELL_MARK.join(self.cells)

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2


def make_rows(lines: list[Line]) -> list[Row]:
    """Group lines that come from top to bottom into rows."""
    groups: list[list[Line]] = []
    for line in lines:
        for group in groups[-1:-4:-1]:
            if line.upright and len(group) < _MAX_PIECES and _fits(group, line):
                group.append(line)
                break
        else:
            groups.append([line])
    return [_row(group) for group in groups]


def _fits(group: list[Line], line: Line) -> bool:
    anchor = max(group, key=lambda other: other.height)
    if not same_row(anchor, line):
        return False
    return all(min(o.x1, line.x1) - max(o.x0, line.x0) < 0.3 * min(o.x1 - o.x0, line.x1 - line.x0) + 1 for o in group)


def _row(group: list[Line]) -> Row:
    if len(group) > 1:
        rtl = is_rtl("".join(line.text for line in group))
        group = sorted(group, key=lambda line: line.x0, reverse=rtl)
    widest = max(group, key=lambda line: len(line.text))
    cells, text_x0 = _cells(group)
    return Row(
        cells=cells,
        x0=min(line.x0 for line in group),
        y0=min(line.y0 for line in group),
        x1=max(line.x1 for line in group),
        y1=max(line.y1 for line in group),
        text_x0=text_x0,
        size=widest.size,
        bold=all(line.bold for line in group if not is_numeric(line.text)) and widest.bold,
        mono=all(line.mono for line in group),
        block=widest.block,
        lines=tuple(group),
    )


def _cells(group: list[Line]) -> tuple[tuple[str, ...], float]:
    """Pieces to cells: near ones, list markers and currency signs join; far ones stay apart."""
    cells = [group[0].text]
    text_x0 = group[0].x0
    for index, (left, right) in enumerate(pairwise(group)):
        gap = max(right.x0 - left.x1, left.x0 - right.x1)
        near = 1.2 * max(left.size, 1.0)
        is_marker = index == 0 and gap < 6 * near and bool(_MARKER.fullmatch(left.text.strip()))
        figure_with_unit = (left.text in _UNITS_BEFORE and is_numeric(right.text)) or (
            right.text in _UNITS_AFTER and gap < 3 * near
        )
        if is_marker:
            text_x0 = right.x0
        if gap < near or is_marker or figure_with_unit:
            cells[-1] = _glue(cells[-1], right.text, gap, left.size)
        else:
            cells.append(right.text)
    return tuple(cells), text_x0


def _glue(left: str, right: str, gap: float, size: float) -> str:
    """A space between pieces, even touching ones: a footnote's `1` must not grow into the word before it."""
    joined = gap < size and is_joined_script(left[-1:]) and is_joined_script(right[0])
    return left + right if joined else f"{left} {right}"
