"""Ruling lines drawn on a page to the grids they form: where a ruled table's rows and columns lie.

PyMuPDF's own finder takes shaded bands for cells and costs 200 ms a page; thin lines alone are surer, and cost 3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ingest.pdf.mupdf import finite
from research.boxes import Box

_THIN = 3.0  # points; thicker fills are shading
_TOUCH = 3.0  # how near counts as touching
_MAX_LINES = 300


@dataclass(frozen=True, slots=True)
class RulingLine:
    """A straight line: its place across, and where it begins and ends along."""

    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Grid:
    """A ruled table's edges from left to right and top to bottom, and the rules between its cells."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    across: tuple[RulingLine, ...]
    upright: tuple[RulingLine, ...]

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


def find_grids(drawings: Iterable[dict[str, Any]]) -> list[Grid]:
    """The grids formed by rules that meet, from top to bottom."""
    across, upright = _rules(drawings)
    across, upright = _merged(across), _merged(upright)
    if not 2 <= len(across) <= _MAX_LINES or not 1 <= len(upright) <= _MAX_LINES:
        return []
    grids = (_grid(rows, columns) for rows, columns in _components(across, upright))
    return sorted((grid for grid in grids if grid), key=lambda grid: (grid.ys[0], grid.xs[0]))


def _rules(drawings: Iterable[dict[str, Any]]) -> tuple[list[RulingLine], list[RulingLine]]:
    across: list[RulingLine] = []
    upright: list[RulingLine] = []

    def add(x0: float, y0: float, x1: float, y1: float) -> None:
        x0, x1 = sorted((finite(x0), finite(x1)))
        y0, y1 = sorted((finite(y0), finite(y1)))
        if y1 - y0 <= _THIN and x1 - x0 > 4:
            across.append(RulingLine((y0 + y1) / 2, x0, x1))
        elif x1 - x0 <= _THIN and y1 - y0 > 4:
            upright.append(RulingLine((x0 + x1) / 2, y0, y1))

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


def _merged(rules: list[RulingLine]) -> list[RulingLine]:
    """Pieces of one line put together: cells draw their own borders."""
    merged: list[RulingLine] = []
    for group in _clusters(sorted(rules, key=lambda rule: rule.at)):
        at = sum(rule.at for rule in group) / len(group)
        start = end = None
        for rule in sorted(group, key=lambda rule: rule.start):
            if start is None or end is None or rule.start > end + _TOUCH:
                if start is not None and end is not None:
                    merged.append(RulingLine(at, start, end))
                start, end = rule.start, rule.end
            else:
                end = max(end, rule.end)
        if start is not None and end is not None:
            merged.append(RulingLine(at, start, end))
    return merged


def _clusters(rules: list[RulingLine]) -> list[list[RulingLine]]:
    groups: list[list[RulingLine]] = []
    for rule in rules:
        if groups and rule.at - groups[-1][0].at <= _TOUCH:
            groups[-1].append(rule)
        else:
            groups.append([rule])
    return groups


def _components(across: list[RulingLine], upright: list[RulingLine]) -> list[tuple[list[RulingLine], list[RulingLine]]]:
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
    parts: dict[int, tuple[list[RulingLine], list[RulingLine]]] = {}
    for index, rule in enumerate([*across, *upright]):
        part = parts.setdefault(find(index), ([], []))
        part[index >= len(across)].append(rule)
    return [part for part in parts.values() if part[0] and part[1]]


def _grid(across: list[RulingLine], upright: list[RulingLine]) -> Grid | None:
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
    return Grid(tuple(xs), tuple(ys), tuple(across), tuple(upright))


def _covered(rules: tuple[RulingLine, ...], at: float, along: float) -> bool:
    return any(abs(rule.at - at) <= _TOUCH and rule.start - 1 <= along <= rule.end + 1 for rule in rules)
