"""Ruled tables as markdown, taken only when they make sense and hold all the text in their box.

Where a table's rows and columns lie is told by the grid that its ruling lines form. PyMuPDF's own finder takes shaded
bands for cells and costs 200 ms a page; thin lines alone are surer, and cost 3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ingest.pdf.document import Vocabulary, join_lines
from ingest.pdf.layout import is_numeric
from ingest.pdf.lines import Line, clean_text, is_rtl
from ingest.pdf.mupdf import TEXT_FLAGS, MupdfError, finite, mupdf_errors
from research.records import Box, contains_center

_SLACK = 1.0  # points that a word may lie outside its table
_MAX_CELLS = 5_000
_MAX_WORDS = 3_000
_MAX_CONTENT = 4 << 20

Word = tuple[float, float, float, float, str]
Cells = list[list[str]]

_THIN = 3.0  # points; thicker fills are shading
_TOUCH = 3.0  # how near counts as touching
_MAX_RULES = 300


@dataclass(frozen=True, slots=True)
class RuledTable:
    """A table as markdown, its box, and the lines whose text it took over (by identity)."""

    box: Box
    markdown: str
    lines: frozenset[int]


def find_ruled_tables(page: Any, lines: list[Line], vocabulary: Vocabulary) -> list[RuledTable]:
    """Find the sensible ruled tables of a page, from top to bottom. Drawings that cannot be read hold none."""
    try:
        with mupdf_errors():
            # One path may hold millions of strokes, and each would become an object.
            drawings = page.get_cdrawings() if len(page.read_contents()) <= _MAX_CONTENT else []
        grids = find_grids(drawings)
        words = _words(page) if grids else []
    except MupdfError:
        return []
    tables: list[RuledTable] = []
    taken: set[int] = set()
    for grid in grids:
        inside = [line for line in lines if id(line) not in taken and contains_center(grid.box, line.box, _SLACK)]
        within = [word for word in words if contains_center(grid.box, word[:4], _SLACK)]
        if not inside or len(within) > _MAX_WORDS or not all(line.upright for line in inside):
            continue
        if _struck(grid, within, inside):
            continue
        cells = _sensible(_fill(grid, within, vocabulary))
        if not cells or not _holds_all(cells, inside):
            continue
        taken.update(map(id, inside))
        tables.append(RuledTable(grid.box, _to_markdown(cells), frozenset(map(id, inside))))
    return tables


def _to_markdown(cells: Cells) -> str:
    """A markdown table whose first row is its header."""
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
    rows.insert(1, "|" + " --- |" * len(cells[0]))
    return "\n".join(rows)


def _words(page: Any) -> list[Word]:
    with mupdf_errors():
        raw = page.get_textpage(flags=TEXT_FLAGS).extractWORDS()
    return [(word[0], word[1], word[2], word[3], text) for word in raw if (text := clean_text(word[4]))]


def _struck(grid: _Grid, words: list[Word], lines: list[Line]) -> bool:
    """Whether rules run through running text: graph paper behind it, or a drawing, but no table."""
    broken = sum(any(_splits(rule, line, words) for rule in grid.upright) for line in lines)
    through = sum(
        any(line.y0 + 0.3 * line.height < rule.at < line.y1 - 0.3 * line.height for rule in grid.across)
        for line in lines
    )
    return broken > 0.05 * len(lines) or through > 0.3 * len(lines)


def _splits(rule: _Rule, line: Line, words: list[Word]) -> bool:
    """Whether an upright rule runs through a word of the line, or between words no wider apart than in a sentence."""
    if not (line.x0 + 2 < rule.at < line.x1 - 2 and rule.start < line.middle < rule.end):
        return False
    row = [w for w in words if w[1] <= line.middle <= w[3] and line.x0 - 1 <= w[0] and w[2] <= line.x1 + 1]
    left = max((w[2] for w in row if (w[0] + w[2]) / 2 < rule.at), default=line.x0)
    right = min((w[0] for w in row if (w[0] + w[2]) / 2 >= rule.at), default=line.x1)
    return right - left < 0.4 * line.height


def _fill(grid: _Grid, words: list[Word], vocabulary: Vocabulary) -> Cells:
    """The words in the cells they stand in."""
    placed: dict[tuple[int, int], list[Word]] = {}
    for word in words:
        placed.setdefault(grid.cell((word[0] + word[2]) / 2, (word[1] + word[3]) / 2), []).append(word)
    if _hides_columns(placed):
        return []
    width = len(grid.xs) - 1
    cells: Cells = []
    for row in range(len(grid.ys) - 1):
        lines = [_text_lines(placed.get((row, column), [])) for column in range(width)]
        cells += _rows_of(lines, vocabulary)
    if is_rtl("".join(word[4] for word in words)):
        cells = [row[::-1] for row in cells]
    return cells


def _hides_columns(placed: dict[tuple[int, int], list[Word]]) -> bool:
    """Whether cells hold figures far apart: the rules then part only some columns, and rows as seen say more."""
    wide = 0
    for words in placed.values():
        ordered = sorted(words, key=lambda word: (round((word[1] + word[3]) / 6), word[0]))
        wide += any(
            right[0] - left[2] > 1.5 * (left[3] - left[1]) and abs(left[1] - right[1]) < 3
            for left, right in pairwise(ordered)
        )
    return wide > max(1, 0.15 * len(placed))


def _text_lines(words: list[Word]) -> list[tuple[float, str]]:
    """A cell's words as lines, each with the height it stands at."""
    lines: list[tuple[float, list[Word]]] = []
    for word in sorted(words, key=lambda word: (word[1] + word[3]) / 2):
        middle = (word[1] + word[3]) / 2
        if lines and abs(middle - lines[-1][0]) < 0.5 * (word[3] - word[1]):
            lines[-1][1].append(word)
        else:
            lines.append((middle, [word]))
    texts: list[tuple[float, str]] = []
    for middle, line in lines:
        rtl = is_rtl("".join(word[4] for word in line))
        texts.append((middle, " ".join(w[4] for w in sorted(line, key=lambda word: word[0], reverse=rtl))))
    return texts


def _rows_of(columns: list[list[tuple[float, str]]], vocabulary: Vocabulary) -> Cells:
    """One ruled row: one row of the table, or several where a cell stacks figures that belong to labels beside it."""
    stacked = any(len(lines) > 1 and all(is_numeric(text) for _, text in lines) for lines in columns)
    if not stacked:
        return [[join_lines((text for _, text in lines), vocabulary) for lines in columns]]
    heights: list[float] = []
    for middle in sorted(middle for lines in columns for middle, _ in lines):
        if not heights or middle > heights[-1] + 4:
            heights.append(middle)
    rows = [[""] * len(columns) for _ in heights]
    for column, lines in enumerate(columns):
        for middle, text in lines:
            nearest = min(range(len(heights)), key=lambda index: abs(heights[index] - middle))
            rows[nearest][column] = f"{rows[nearest][column]} {text}".strip()
    return rows


def _sensible(cells: Cells) -> Cells:
    """The cells without empty rows and columns; nothing if what is left is no table."""
    cells = [row for row in cells if any(row)]
    if not cells or sum(map(len, cells)) > _MAX_CELLS:
        return []
    used = [column for column in range(len(cells[0])) if any(row[column] for row in cells)]
    cells = [[row[column] for column in used] for row in cells]
    filled = sum(bool(cell) for row in cells for cell in row)
    if len(cells) < 2 or len(used) < 2 or filled < 0.4 * len(cells) * len(used):
        return []
    # A frame around prose is no table.
    return [] if max(len(cell) for row in cells for cell in row) > 1500 else cells


def _holds_all(cells: Cells, inside: list[Line]) -> bool:
    text = Counter(char for line in inside for char in line.text if char.isalnum())
    held = Counter(char for row in cells for cell in row for char in cell if char.isalnum())
    return text == held


@dataclass(frozen=True, slots=True)
class _Rule:
    """A straight line: its place across, and where it begins and ends along."""

    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class _Grid:
    """A ruled table's edges from left to right and top to bottom, and the rules between its cells."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    across: tuple[_Rule, ...]
    upright: tuple[_Rule, ...]

    @property
    def box(self) -> Box:
        return (self.xs[0], self.ys[0], self.xs[-1], self.ys[-1])

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """Row and column of a point; a merged cell answers with its top left."""
        column = min(max(bisect_right(self.xs, x) - 1, 0), len(self.xs) - 2)
        row = min(max(bisect_right(self.ys, y) - 1, 0), len(self.ys) - 2)
        middle_y = (self.ys[row] + self.ys[row + 1]) / 2
        while column > 0 and not _covered(self.upright, self.xs[column], middle_y):
            column -= 1
        middle_x = (max(self.xs[column], x - 1) + min(self.xs[column + 1], x + 1)) / 2
        while row > 0 and not _covered(self.across, self.ys[row], middle_x):
            row -= 1
        return row, column


def find_grids(drawings: Iterable[dict[str, Any]]) -> list[_Grid]:
    """Find the grids formed by rules that meet, from top to bottom."""
    across, upright = _rules(drawings)
    across, upright = _merged(across), _merged(upright)
    if not 2 <= len(across) <= _MAX_RULES or not 1 <= len(upright) <= _MAX_RULES:
        return []
    grids = (_grid(rows, columns) for rows, columns in _components(across, upright))
    return sorted((grid for grid in grids if grid), key=lambda grid: (grid.ys[0], grid.xs[0]))


def _rules(drawings: Iterable[dict[str, Any]]) -> tuple[list[_Rule], list[_Rule]]:
    across: list[_Rule] = []
    upright: list[_Rule] = []

    def add(x0: float, y0: float, x1: float, y1: float) -> None:
        x0, x1 = sorted((finite(x0), finite(x1)))
        y0, y1 = sorted((finite(y0), finite(y1)))
        if y1 - y0 <= _THIN and x1 - x0 > 4:
            across.append(_Rule((y0 + y1) / 2, x0, x1))
        elif x1 - x0 <= _THIN and y1 - y0 > 4:
            upright.append(_Rule((x0 + x1) / 2, y0, y1))

    for drawing in drawings:
        stroked = "s" in drawing["type"]
        for item in drawing["items"]:
            if item[0] == "l" and stroked:
                add(*item[1], *item[2])
            elif item[0] == "re":
                x0, y0, x1, y1 = item[1]
                if min(abs(x1 - x0), abs(y1 - y0)) <= _THIN:
                    add(x0, y0, x1, y1)
                elif stroked:
                    for side in ((x0, y0, x1, y0), (x0, y1, x1, y1), (x0, y0, x0, y1), (x1, y0, x1, y1)):
                        add(*side)
    return across, upright


def _merged(rules: list[_Rule]) -> list[_Rule]:
    """Pieces of one line put together: cells draw their own borders."""
    merged: list[_Rule] = []
    for group in _clusters(sorted(rules, key=lambda rule: rule.at)):
        at = sum(rule.at for rule in group) / len(group)
        pieces: list[_Rule] = []
        for rule in sorted(group, key=lambda rule: rule.start):
            if pieces and rule.start <= pieces[-1].end + _TOUCH:
                pieces[-1] = _Rule(at, pieces[-1].start, max(pieces[-1].end, rule.end))
            else:
                pieces.append(_Rule(at, rule.start, rule.end))
        merged += pieces
    return merged


def _clusters(rules: list[_Rule]) -> list[list[_Rule]]:
    groups: list[list[_Rule]] = []
    for rule in rules:
        if groups and rule.at - groups[-1][0].at <= _TOUCH:
            groups[-1].append(rule)
        else:
            groups.append([rule])
    return groups


def _components(across: list[_Rule], upright: list[_Rule]) -> list[tuple[list[_Rule], list[_Rule]]]:
    """Rules that meet each other, directly or through others."""
    owner = list(range(len(across) + len(upright)))

    def find(index: int) -> int:
        while owner[index] != index:
            owner[index] = owner[owner[index]]
            index = owner[index]
        return index

    for i, row in enumerate(across):
        for j, column in enumerate(upright, len(across)):
            meets = row.start - _TOUCH <= column.at <= row.end + _TOUCH
            if meets and column.start - _TOUCH <= row.at <= column.end + _TOUCH:
                owner[find(i)] = find(j)
    parts: dict[int, tuple[list[_Rule], list[_Rule]]] = {}
    for index, rule in enumerate([*across, *upright]):
        part = parts.setdefault(find(index), ([], []))
        part[index >= len(across)].append(rule)
    return [part for part in parts.values() if part[0] and part[1]]


def _grid(across: list[_Rule], upright: list[_Rule]) -> _Grid | None:
    xs = [group[0].at for group in _clusters(sorted(upright, key=lambda rule: rule.at))]
    ys = [group[0].at for group in _clusters(sorted(across, key=lambda rule: rule.at))]
    # Many tables leave their outer sides open: the rules across then say how far they reach.
    left, right = min(rule.start for rule in across), max(rule.end for rule in across)
    if left < xs[0] - 10:
        xs.insert(0, left)
    if right > xs[-1] + 10:
        xs.append(right)
    if len(xs) < 3 or len(ys) < 3:
        return None
    return _Grid(tuple(xs), tuple(ys), tuple(across), tuple(upright))


def _covered(rules: tuple[_Rule, ...], at: float, along: float) -> bool:
    return any(abs(rule.at - at) <= _TOUCH and rule.start - 1 <= along <= rule.end + 1 for rule in rules)
