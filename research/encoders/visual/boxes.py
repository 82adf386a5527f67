"""Where on the page each vector of an encoder looked: one box a token, from the token sequence itself."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import groupby

from research.boxes import WHOLE_PAGE, Box, clamped, scaled

_TILE = re.compile(r"<row_(\d+)_col_(\d+)>")


def grid_boxes(is_image: Sequence[bool], rows: int, cols: int) -> list[Box]:
    """Image tokens as one grid over the page, row by row; the whole page for all others, and for all tokens if
    their number is not rows × cols."""
    if sum(is_image) != rows * cols:
        return [WHOLE_PAGE] * len(is_image)
    cells = iter(_grid(WHOLE_PAGE, rows, cols))
    return [next(cells) if image else WHOLE_PAGE for image in is_image]


def square_boxes(is_image: Sequence[bool]) -> list[Box]:
    """Image tokens as a square grid, as models have that squeeze every page into one square picture."""
    side = math.isqrt(sum(is_image))
    return grid_boxes(is_image, side, side)


def tile_boxes(ids: Sequence[int], is_image: Sequence[bool], text_of: Callable[[list[int]], str]) -> list[Box]:
    """Image tokens in runs, one a tile. The words before a run say which tile follows: `<row_2_col_3>`, or the
    whole page made small. Tiles are equal, and inside each one the tokens are a square grid."""
    runs = _runs(ids, is_image)
    tiles = [_TILE.search(text_of(before)) for before, _ in runs]
    places = [(int(tile[1]) - 1, int(tile[2]) - 1) if tile else None for tile in tiles]
    rows = max((place[0] for place in places if place), default=0) + 1
    cols = max((place[1] for place in places if place), default=0) + 1
    boxes: list[Box] = [WHOLE_PAGE] * len(ids)
    for (_, run), place in zip(runs, places, strict=True):
        area = WHOLE_PAGE if place is None else _cell(WHOLE_PAGE, rows, cols, *place)
        side = math.isqrt(len(run))
        if side * side == len(run):
            boxes[run.start : run.stop] = _grid(area, side, side)
    return boxes


def stretch(box: Box, wide: float, high: float) -> Box:
    """A box on a padded canvas, on the page itself, which covers the first `wide` × `high` of the canvas."""
    return clamped(scaled(box, 1 / wide, 1 / high))


def _runs(ids: Sequence[int], is_image: Sequence[bool]) -> list[tuple[list[int], range]]:
    """Stretches of image tokens, each with the tokens between it and the stretch before."""
    runs: list[tuple[list[int], range]] = []
    before: list[int] = []
    start = 0
    for image, group in groupby(is_image):
        stop = start + len(list(group))
        if image:
            runs.append((before, range(start, stop)))
        else:
            before = list(ids[start:stop])
        start = stop
    return runs


def _grid(area: Box, rows: int, cols: int) -> list[Box]:
    return [_cell(area, rows, cols, row, col) for row in range(rows) for col in range(cols)]


def _cell(area: Box, rows: int, cols: int, row: int, col: int) -> Box:
    x0, y0, x1, y1 = area
    wide, high = (x1 - x0) / cols, (y1 - y0) / rows
    return (x0 + col * wide, y0 + row * high, x0 + (col + 1) * wide, y0 + (row + 1) * high)
