"""Reading order: a page's lines to regions, each read from top to bottom.

Columns are found by their gutters: a left edge that several lines share, with nothing across it. Lines that do cross
it (titles, wide tables) part the page into zones above each other. A table has gutters too; what tells columns of prose
from it is that prose fills its width and numbers do not stand in it.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby, pairwise

from ingest.pdf.lines import Line, is_rtl, same_row
from research.records import Box, union
from research.text import is_joined_script

Region = list[Line]
Zone = tuple[list[Line], list[Line], bool]  # left, right, and whether they are columns

_NUMERIC = re.compile(r"[\d$€£¥%().,/*+\s–—−-]*[\d$€£¥%–—−-][\d$€£¥%().,/*+\s–—−-]*")
_MAX_LINES = 2_000  # beyond this the content stream's own order must do
_MAX_DEPTH = 4
_MIN_SIDE = 3  # lines on each side of a gutter


def reading_order(lines: list[Line]) -> list[Region]:
    """Part lines into regions, in the order a person reads them."""
    upright = [line for line in lines if line.upright]
    turned = [line for line in lines if not line.upright]
    if _is_vertical_script(lines) or len(turned) > len(upright) or len(lines) > _MAX_LINES:
        return _by_block(lines)
    regions = _columns(upright, 0) if upright else []
    return regions + _by_block(turned)


def is_numeric(text: str) -> bool:
    """Whether a text is a table's figure rather than words: `394,328`, `(12.5)%`, `$`, `—`."""
    return len(text) <= 40 and bool(_NUMERIC.fullmatch(text))


def _is_vertical_script(lines: list[Line]) -> bool:
    """Vertical Japanese or Chinese comes as lines of a single character, in the right order already."""
    single = sum(len(line.text) == 1 and is_joined_script(line.text) for line in lines)
    return single * 2 > len(lines) > 4


def _by_block(lines: list[Line]) -> list[Region]:
    return [list(group) for _, group in groupby(lines, key=lambda line: line.block)]


def _columns(lines: list[Line], depth: int) -> list[Region]:
    """Split at the best gutter, if there is one, and go on inside the parts."""
    if depth < _MAX_DEPTH and len(lines) >= 2 * _MIN_SIDE:
        ordered = sorted(lines, key=lambda line: line.middle)
        for gutter in _gutters(lines):
            zones = _zones(ordered, gutter)
            if any(columned for _, _, columned in zones):
                return _split(zones, depth)
    return _bands(lines, depth)


def _split(zones: list[Zone], depth: int) -> list[Region]:
    regions: list[Region] = []
    plain: list[Line] = []
    for left, right, columned in zones:
        if not columned:
            plain += left + right
            continue
        if plain:
            regions += _columns(plain, depth + 1)
            plain = []
        sides = [right, left] if is_rtl("".join(line.text for line in left + right)) else [left, right]
        for side in sides:
            regions += _columns(side, depth + 1)
    if plain:
        regions += _columns(plain, depth + 1)
    return regions


def _gutters(lines: list[Line]) -> list[float]:
    """Left edges shared by several lines that have other lines to their left, most shared first."""
    leftmost = min(line.x0 for line in lines)
    edges = Counter(round(line.x0 / 3) for line in lines if line.x0 > leftmost + 30)
    shared = [(edges[e] + edges[e + 1], e) for e in edges]
    best = sorted((n, -e) for n, e in shared if n >= _MIN_SIDE)[::-1][:10]
    return [-e * 3.0 - 2.0 for _, e in best]


def _zones(ordered: list[Line], gutter: float) -> list[Zone]:
    """Lines left and right of the gutter, zone by zone from the top; a crossing line is a zone of its own."""
    zones: list[Zone] = []
    left: list[Line] = []
    right: list[Line] = []
    for line in ordered:
        if line.x1 <= gutter:
            left.append(line)
        elif line.x0 >= gutter:
            right.append(line)
        else:
            if left or right:
                zones.append((left, right, _are_columns(left, right)))
                left, right = [], []
            zones.append(([line], [], False))
    if left or right:
        zones.append((left, right, _are_columns(left, right)))
    return zones


def _are_columns(left: list[Line], right: list[Line]) -> bool:
    """Whether two sides are read one after the other, rather than across as a table's rows."""
    if len(left) < _MIN_SIDE or len(right) < _MIN_SIDE:
        return False
    size = sorted(line.size for line in left + right)[(len(left) + len(right)) // 2]
    gap = min(line.x0 for line in right) - max(line.x1 for line in left)
    if gap < max(5.0, 0.6 * size):
        return False
    prose = _fills(left), _fills(right)
    if (_mostly_numeric(left) or _mostly_numeric(right)) and (not any(prose) or _aligned(left, right) > 0.5):
        return False
    if all(prose):
        return not _in_step(left, right)
    if len(left) < 5 or len(right) < 5:
        return False
    return _aligned(left, right) < 0.4


def _mostly_numeric(side: list[Line]) -> bool:
    return sum(is_numeric(line.text) for line in side) > 0.3 * len(side)


def _fills(side: list[Line]) -> bool:
    """Whether lines run the width of their column, as prose does, with several words each.

    A side may hold more than one column still: lines are measured against those that begin near their own left edge.
    """
    wide = characters = 0
    for column in _left_edges(side):
        width = max(line.x1 for line in column) - min(line.x0 for line in column)
        wide += sum(line.x1 - line.x0 > 0.7 * width for line in column)
        characters += sum(len(line.text) * (2 if is_joined_script(line.text[0]) else 1) for line in column)
    return wide >= 0.5 * len(side) and characters >= 18 * len(side)


def _left_edges(side: list[Line]) -> list[list[Line]]:
    """Lines grouped by where they begin; indents stay with their column."""
    groups: list[list[Line]] = []
    for line in sorted(side, key=lambda line: line.x0):
        if groups and line.x0 - groups[-1][-1].x0 < 40:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _aligned(left: list[Line], right: list[Line]) -> float:
    """The share of the shorter side's lines that stand beside a line of the other side."""
    few, many = sorted((left, right), key=len)
    beside = sum(any(abs(a.middle - b.middle) < 0.15 * a.height for b in many) for a in few)
    return beside / len(few)


def _in_step(left: list[Line], right: list[Line]) -> bool:
    """Whether white bands run across both sides at once, again and again: cells of a table of text, not columns."""
    starts = common = 0
    both = sorted(left + right, key=lambda line: line.y0)
    sides = set(map(id, left))
    bottom = both[0].y0 - 1e6
    for index, line in enumerate(both):
        if line.y0 > bottom + 0.3 * line.height:
            starts += 1
            row = [other for other in both[index : index + 6] if same_row(line, other)]
            common += len({id(other) in sides for other in row}) == 2
        bottom = max(bottom, line.y1)
    # Prose set on one grid parts at every line; cells part now and then.
    return 3 <= starts <= 0.5 * max(len(left), len(right)) and common >= 0.8 * starts


def _bands(lines: list[Line], depth: int) -> list[Region]:
    """A part without columns: mostly rows from top to bottom, but text boxes side by side stay whole."""
    boxes = _text_boxes(lines)
    if not boxes:
        return [sorted(lines, key=lambda line: (line.middle, line.x0))]
    atoms: list[tuple[Box, list[Line]]] = []
    loose: dict[int, list[Line]] = {}
    for line in lines:
        if line.block in boxes:
            loose.setdefault(line.block, []).append(line)
        else:
            atoms.append((line.box, [line]))
    atoms += [(union([line.box for line in group]), group) for group in loose.values()]
    return _cut(atoms, 0 if depth < _MAX_DEPTH else 6)


def _text_boxes(lines: list[Line]) -> set[int]:
    """Blocks of several lines of words that stand beside something else, and are no table's column."""
    blocks: dict[int, list[Line]] = {}
    for line in lines:
        blocks.setdefault(line.block, []).append(line)
    found: set[int] = set()
    for number, group in blocks.items():
        if len(group) < 2 or any(same_row(a, b) for a, b in pairwise(group)):
            continue
        if _mostly_numeric(group) or sum(len(line.text) for line in group) < 8 * len(group):
            continue
        x0, y0, x1, y1 = union([line.box for line in group])
        beside = [
            ln for ln in lines if ln.block != number and ln.y0 < y1 and ln.y1 > y0 and (ln.x0 >= x1 or ln.x1 <= x0)
        ]
        figures = [ln for ln in beside if is_numeric(ln.text)]
        if beside and len(figures) * 3 < len(group):
            found.add(number)
    return found


def _cut(atoms: list[tuple[Box, list[Line]]], depth: int) -> list[Region]:
    """Recursive cuts: across where white space runs the whole width, else down where it runs the whole height."""
    if len(atoms) == 1:
        return [atoms[0][1]]
    if all(len(group) == 1 for _, group in atoms) or depth > 6:
        return [sorted((ln for _, group in atoms for ln in group), key=lambda ln: (ln.middle, ln.x0))]
    across = _parts(atoms, 1)
    if len(across) > 1:
        return _merge_rows([region for part in across for region in _cut(part, depth + 1)])
    down = _parts(atoms, 0)
    if len(down) > 1:
        if is_rtl("".join(ln.text for _, group in atoms for ln in group)):
            down.reverse()
        return [region for part in down for region in _cut(part, depth + 1)]
    # Entangled boxes: by their tops.
    return [group for _, group in sorted(atoms, key=lambda atom: (atom[0][1], atom[0][0]))]


def _parts(atoms: list[tuple[Box, list[Line]]], axis: int) -> list[list[tuple[Box, list[Line]]]]:
    """Atoms parted where nothing lies between them along one axis (0: x, 1: y)."""
    parts: list[list[tuple[Box, list[Line]]]] = []
    end = float("-inf")
    # Boxes of fonts overlap a little from line to line; of gutters something must be left.
    slack = -2.0 if axis else 4.0
    for atom in sorted(atoms, key=lambda atom: atom[0][axis]):
        if not parts or atom[0][axis] > end + slack:
            parts.append([atom])
        else:
            parts[-1].append(atom)
        end = max(end, atom[0][axis + 2])
    return parts


def _merge_rows(regions: list[Region]) -> list[Region]:
    """Single rows cut apart belong together again, so that paragraphs and tables can be seen in them."""
    merged: list[Region] = []
    for region in regions:
        last = merged[-1] if merged else None
        if last and last[-1].y1 <= region[0].y0 + 3 and last[0].x0 < region[0].x1 and region[0].x0 < last[-1].x1:
            last.extend(region)
        else:
            merged.append(list(region))
    return merged
