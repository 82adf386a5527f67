"""Ruled tables as markdown, taken only when they make sense and hold all the text in their box."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ingest.pdf.hyphens import Vocabulary, join_lines
from ingest.pdf.layout import is_numeric
from ingest.pdf.lines import Line, clean_text, is_rtl
from ingest.pdf.mupdf import TEXT_FLAGS, MupdfError, mupdf_errors
from ingest.pdf.ruling_lines import Grid, RulingLine, find_grids
from research.boxes import Box, contains_center

_SLACK = 1.0  # points that a word may lie outside its table
_MAX_CELLS = 5_000
_MAX_WORDS = 3_000
_MAX_CONTENT = 4 << 20

Word = tuple[float, float, float, float, str]
Cells = list[list[str]]


@dataclass(frozen=True, slots=True)
class RuledTable:
    """A table as markdown, its box, and the lines whose text it took over (by identity)."""

    box: Box
    markdown: str
    lines: frozenset[int]


def find_ruled_tables(page: Any, lines: list[Line], vocabulary: Vocabulary | None = None) -> list[RuledTable]:
    """The sensible ruled tables of a page, from top to bottom. Drawings that cannot be read hold none."""
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
        tables.append(RuledTable(grid.box, to_markdown(cells), frozenset(map(id, inside))))
    return tables


def to_markdown(cells: Cells) -> str:
    """A markdown table whose first row is its header."""
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
    rows.insert(1, "|" + " --- |" * len(cells[0]))
    return "\n".join(rows)


def _words(page: Any) -> list[Word]:
    with mupdf_errors():
        raw = page.get_textpage(flags=TEXT_FLAGS).extractWORDS()
    return [(word[0], word[1], word[2], word[3], text) for word in raw if (text := clean_text(word[4]))]


def _struck(grid: Grid, words: list[Word], lines: list[Line]) -> bool:
    """Whether rules run through running text: graph paper behind it, or a drawing, but no table."""
    broken = sum(any(_splits(rule, line, words) for rule in grid.upright) for line in lines)
    through = sum(
        any(line.y0 + 0.3 * line.height < rule.at < line.y1 - 0.3 * line.height for rule in grid.across)
        for line in lines
    )
    return broken > 0.05 * len(lines) or through > 0.3 * len(lines)


def _splits(rule: RulingLine, line: Line, words: list[Word]) -> bool:
    """Whether an upright rule runs through a word of the line, or between words no wider apart than in a sentence."""
    if not (line.x0 + 2 < rule.at < line.x1 - 2 and rule.start < line.middle < rule.end):
        return False
    row = [w for w in words if w[1] <= line.middle <= w[3] and line.x0 - 1 <= w[0] and w[2] <= line.x1 + 1]
    left = max((w[2] for w in row if (w[0] + w[2]) / 2 < rule.at), default=line.x0)
    right = min((w[0] for w in row if (w[0] + w[2]) / 2 >= rule.at), default=line.x1)
    return right - left < 0.4 * line.height


def _fill(grid: Grid, words: list[Word], vocabulary: Vocabulary | None) -> Cells:
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


def _rows_of(columns: list[list[tuple[float, str]]], vocabulary: Vocabulary | None) -> Cells:
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
