"""Visual rows and what they make: paragraphs, list items, code, and rows of a table.

A row is pieces of text on one baseline, put together in the order they are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ingest.pdf.layout import is_numeric
from ingest.pdf.lines import Line, is_rtl, same_row
from research.records import BlockKind
from research.text import CLOSING_MARKS, END_MARKS, WIDE_END_MARKS, is_joined_script

CELL_MARK = " | "

_MARKER = re.compile(
    r"(?:[-•◦▪■●○‣⁃∙·❖➢➤►▶✓✔□☐☑☒§*]|\(?(?:\d{1,3}(?:\.\d{1,3})*|[A-Za-z]|[ivxIVX]{1,5})[.):]?|\[\d{1,3}\])"
)
_UNITS_BEFORE = {"$", "€", "£", "¥", "US$", "(", "$(", "~", "<", ">"}
_UNITS_AFTER = {"%", ")", ")%", "%)", "x", "pts", "bps", "†", "*", "**"}
_MAX_PIECES = 200  # of one row; hostile pages put thousands on one baseline

_BULLET = re.compile(r"(?:[•◦▪■●○‣⁃∙·❖➢➤►▶✓✔□☐☑☒]\s*|[-–—]\s+)(?=\S)")
_NUMBERED = re.compile(r"\d{1,3}[.)]\s+(?=\D)")
_LETTERED = re.compile(r"(?:\([a-zA-Z]\)|\((?:[ivx]{1,5}|\d{1,2})\)|[a-z][.)])\s+(?=\S)")
# Not only where a sentence ends: a colon or semicolon at a line's end announces a list, or parts its items.
_CLOSED = re.compile(rf"[{END_MARKS}{WIDE_END_MARKS}:;][{CLOSING_MARKS}]*$")

_ADDRESS = re.compile(r"\S*(?:://|www\.|@)\S*")


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
    return [_make_row(group) for group in groups]


def _fits(group: list[Line], line: Line) -> bool:
    anchor = max(group, key=lambda other: other.height)
    if not same_row(anchor, line):
        return False
    return all(min(o.x1, line.x1) - max(o.x0, line.x0) < 0.3 * min(o.x1 - o.x0, line.x1 - line.x0) + 1 for o in group)


def _make_row(group: list[Line]) -> Row:
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


@dataclass(frozen=True, slots=True)
class Draft:
    """A block before it is written: its rows, and how much white space stands above it, in line heights."""

    kind: BlockKind
    rows: tuple[Row, ...]
    space_above: float = 9.0

    @property
    def text(self) -> str:
        return " ".join(row.text for row in self.rows)


def marker_of(text: str) -> str:
    """Return the list marker a text begins with, its white space included; empty where there is none."""
    match = _BULLET.match(text) or _NUMBERED.match(text) or _LETTERED.match(text)
    return match.group() if match else ""


def draft_region(rows: list[Row], *, code: bool) -> list[Draft]:
    """Make the drafts of one region, from top to bottom."""
    if not rows:
        return []
    leading = _leading(rows)
    right, left = max(row.x1 for row in rows), min(row.x0 for row in rows)
    drafts: list[Draft] = []
    open_rows: list[Row] = []

    def close() -> None:
        if open_rows:
            drafts.append(_prose(open_rows, drafts, leading))
            open_rows.clear()

    index = 0
    while index < len(rows):
        row = rows[index]
        is_code = code and _is_code(row)
        end = _code_end(rows, index, leading) if is_code else _table_end(rows, index, right - left)
        if end > index:
            close()
            kind: BlockKind = "code" if is_code else "table"
            drafts.append(Draft(kind, tuple(rows[index:end])))
            index = end
            continue
        if open_rows and _breaks(open_rows, row, leading, left, right):
            close()
        open_rows.append(row)
        index += 1
    close()
    return drafts


def _prose(rows: list[Row], before: list[Draft], leading: float) -> Draft:
    kind: BlockKind = "list" if marker_of(rows[0].text) else "paragraph"
    above = (rows[0].y0 - before[-1].rows[-1].y1) / max(leading, 1.0) if before else 9.0
    return Draft(kind, tuple(rows), above)


def _leading(rows: list[Row]) -> float:
    """The usual distance from row to row."""
    steps = [b.middle - a.middle for a, b in pairwise(rows)]
    usual = [step for step, row in zip(steps, rows, strict=False) if 0 < step < 2.6 * max(row.size, 1.0)]
    return median(usual) if usual else 1.3 * max(rows[0].size, 1.0)


def _is_code(row: Row) -> bool:
    """Monospaced, and no address: papers set those in a typewriter font within their prose."""
    return row.mono and (len(row.text) > 200 or not _ADDRESS.fullmatch(row.text.strip()))


def _code_end(rows: list[Row], start: int, leading: float) -> int:
    end = start
    while end < len(rows) and _is_code(rows[end]):
        if end > start and rows[end].y0 - rows[end - 1].y1 > 3 * leading:
            break
        end += 1
    return end


def _table_end(rows: list[Row], start: int, width: float) -> int:
    """Where a run of rows with cells ends, or `start` where none begins. Short labels between them belong to it."""
    if len(rows[start].cells) < 2:
        return start
    end, seen, labels = start, 0, 0
    for index in range(start, len(rows)):
        row = rows[index]
        if index > start and row.y0 - rows[index - 1].y1 > 3 * max(row.size, 1.0):
            break
        if len(row.cells) > 1:
            seen, end, labels = seen + 1, index + 1, 0
            continue
        labels += 1
        if labels > 2 or row.x1 - row.x0 > 0.7 * width or marker_of(row.text):
            break
    return end if seen > 1 else start


def _breaks(paragraph: list[Row], row: Row, leading: float, left: float, right: float) -> bool:
    """Whether a row begins a new paragraph."""
    last, first = paragraph[-1], paragraph[0]
    em = max(last.size, 1.0)
    step = row.middle - last.middle
    # Rows of another size sit at another distance; the gap between the boxes is what counts then.
    if step > 1.35 * max(leading, 1.05 * em) or step < -0.5 * em or len(row.cells) > 1 or len(last.cells) > 1:
        return True
    if abs(row.size - last.size) > 0.08 * em + 0.3:
        return True
    runs_on = not _CLOSED.search(last.text) and row.text[:1].islower()
    if row.bold != last.bold and not (runs_on and (row.block == last.block or last.text[-1] == "-")):
        return True
    if marker_of(row.text) and _is_item(paragraph, row):
        return True
    return _indents(first, last, row, em) or _ended_short(last, row, left, right, runs_on)


def _is_item(paragraph: list[Row], row: Row) -> bool:
    """A figure at a line's start may be mid-sentence ("… in chapter / 3. It …"); a list's marker has company."""
    if _BULLET.match(row.text):
        return True
    last, first = paragraph[-1], paragraph[0]
    return bool(marker_of(first.text)) or abs(row.x0 - last.x0) > 0.8 * row.size


def _indents(first: Row, last: Row, row: Row, em: float) -> bool:
    if abs((row.x0 + row.x1) - (last.x0 + last.x1)) < 2 * em:
        return False  # centred, or both full
    if marker_of(first.text):
        # A hanging item goes on under its words; anything left of its marker is a new paragraph.
        return row.x0 < first.x0 - 0.8 * em or row.x0 > max(first.text_x0, last.x0) + 3 * em
    if last is first:
        return row.x0 > last.x0 + 0.8 * em and bool(_CLOSED.search(last.text))
    return row.x0 > last.x0 + 0.8 * em or row.x0 < last.x0 - 1.5 * em


def _ended_short(last: Row, row: Row, left: float, right: float, runs_on: bool) -> bool:
    if runs_on:
        return False
    room = right - last.x1
    first_word = row.text.split(" ", 1)[0]
    fits = room > len(first_word) * 0.55 * row.size + 0.04 * (right - left)
    return fits and bool(_CLOSED.search(last.text))
