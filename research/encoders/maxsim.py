"""The many vectors of a page: packed for the catalog, where on the page each one looked, and pages scored by them with
exact late interaction in numpy (for every question vector the best vector of a page, summed over the question).

Measured on 1,000 pages × 800 × 128 with 20 question vectors (tests/bench/maxsim.py): 16 bits keep MaxSim scores within
4e-5 and decode faster than float16, which is as large and off by 5e-4; 8 bits move scores by 1e-2, more than the 1e-3
within which a score equals the model's own. One bit, the sign alone, is a sketch: a thirteenth of
the size, good enough to choose candidates whose scores are then computed from the full vectors.

No single vector finds 99 % of the exact top 10 dependably. On 2,000 synthetic pages, from patches that share nothing
with their page to patches that are mostly page, the mean of a page's vectors needs between 17 and 1,900 candidates for
it, fixed dimensional encodings (MUVERA, 2,048 to 16,384 dimensions) and 16 segment means hardly fewer. One-bit sketches
of all vectors need 16 to 91 on the same data. So the visual collection holds the mean, which is small and says what a
page is about; beyond EXACT_PAGES candidates come from MaxSim over sketches, then the full vectors of CANDIDATES pages
are scored exactly. Below, everything is scored exactly at once: 1,000 pages of 800 vectors take 0.1 to 0.2 s and 210
MB. No trained weights could be had when this was measured; random ones score all pages alike and tell nothing.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from research.records import WHOLE_PAGE, Box, clamped, scaled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Bits = Literal[1, 16]
FULL: Bits = 16
SKETCH: Bits = 1

_HEAD = struct.Struct("<BxHI")  # bits, dim, number of vectors
_LARGEST = 32767
_TYPES = {1: "u1", 16: "<i2"}

_TILE = re.compile(r"<row_(\d+)_col_(\d+)>")

CANDIDATES = 200
EXACT_PAGES = 1000

BLOCK = 16384  # vectors at once: few enough that memory stays small, enough that the processor's cores rarely wait


@dataclass(frozen=True, slots=True)
class PackedPages:
    """Vectors of many pages in one block: page i owns the rows from `offsets[i]` to `offsets[i + 1]`.
    `values` is (total_vectors, dim), or (total_vectors, dim / 8) bytes of sketches."""

    bits: Bits
    dim: int
    values: NDArray[Any]
    scales: NDArray[np.float32]  # (total_vectors,)
    offsets: NDArray[np.int64]  # (n_pages + 1,)


def pack(vectors: NDArray[np.float32], *, bits: Bits = FULL) -> bytes:
    """Vectors (n_vectors, dim) as a blob that knows its own shape."""
    import numpy as np

    count, dim = vectors.shape
    if bits == 1:
        scales = np.sqrt(np.mean(np.square(vectors, dtype=np.float32), axis=1)).astype("<f4")
        values = np.packbits(vectors > 0, axis=1)
    else:
        scales = (np.abs(vectors).max(axis=1, initial=0.0) / _LARGEST).astype("<f4")
        divisors = np.where(scales > 0, scales, 1.0)
        values = np.rint(vectors / divisors[:, None]).astype(_TYPES[bits])
    return b"".join((_HEAD.pack(bits, dim, count), scales.tobytes(), values.tobytes()))


def unpack(blob: bytes) -> NDArray[np.float32]:
    """The vectors of one blob, (n_vectors, dim), as near as its bits allow."""
    import numpy as np

    pages = stack([blob])
    vectors = decode(pages.values, pages.bits, np.empty((len(pages.values), pages.dim), np.float32))
    vectors *= pages.scales[:, None]
    return vectors


def shape_of(blob: bytes) -> tuple[int, int, int]:
    """Bits, dim and number of vectors. Raises ValueError for a blob that `pack` did not make of unit vectors."""
    import numpy as np

    if len(blob) < _HEAD.size:
        raise ValueError("a page's vectors have no head")
    bits, dim, count = (int(value) for value in _HEAD.unpack_from(blob))
    body = _HEAD.size + 4 * count
    if bits not in _TYPES or not dim or len(blob) != body + -(-dim * bits // 8) * count:
        raise ValueError(f"a page's vectors are not {count} of {dim} dimensions in {bits} bits")
    scales = np.frombuffer(blob[_HEAD.size : body], dtype="<f4")
    if not np.all((scales >= 0) & (scales <= 1)):  # false for NaN, too
        raise ValueError("a page's vectors have scales that are none")
    return bits, dim, count


def stack(blobs: Sequence[bytes]) -> PackedPages:
    """Many pages' blobs side by side, still packed. All must have the same bits and dim."""
    import numpy as np

    heads = [_HEAD.unpack_from(blob) for blob in blobs]
    kinds = {(bits, dim) for bits, dim, _ in heads}
    if len(kinds) > 1:
        raise ValueError(f"pages of different encoders or packings: {sorted(kinds)}")
    bits, dim = kinds.pop() if kinds else (FULL, 1)
    width = -(-dim * bits // 8)
    scales, values = [], []
    for blob, (_, _, count) in zip(blobs, heads, strict=True):
        body = _HEAD.size + 4 * count
        if len(blob) != body + width * count:
            raise ValueError(f"a page's vectors are cut off: {len(blob)} bytes of {body + width * count}")
        scales.append(blob[_HEAD.size : body])
        values.append(blob[body:])
    kind = np.dtype(_TYPES[bits])
    return PackedPages(
        bits=bits,
        dim=dim,
        values=np.frombuffer(b"".join(values), dtype=kind).reshape(-1, width // kind.itemsize),
        scales=np.frombuffer(b"".join(scales), dtype="<f4"),
        offsets=np.cumsum([0, *(count for _, _, count in heads)], dtype=np.int64),
    )


def decode(values: NDArray[Any], bits: Bits | None, out: NDArray[np.float32]) -> NDArray[np.float32]:
    """Packed rows as float32 in the first rows of `out` (n, dim), scales not yet applied."""
    import numpy as np

    part = out[: len(values)]
    if bits == 1:
        np.copyto(part, np.unpackbits(values, axis=1, count=part.shape[1]), casting="unsafe")
        part *= 2
        part -= 1
    else:
        np.copyto(part, values, casting="unsafe")
    return part


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


def first_stage(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The direction a page's or a question's vectors share, (dim,), unit length; zero where there are none."""
    import numpy as np

    total = vectors.sum(axis=0, dtype=np.float32)
    shared: NDArray[np.float32] = total / (np.linalg.norm(total) or 1.0)
    return shared.astype(np.float32)


def maxsim(
    question: NDArray[np.float32],
    pages: NDArray[Any],
    offsets: NDArray[np.int64],
    scales: NDArray[np.float32] | None = None,
    *,
    bits: Bits | None = None,
) -> NDArray[np.float32]:
    """Scores of pages, (n_pages,), for a question (n_tokens, dim).

    `pages` (total_vectors, dim) holds the pages' vectors one after the other, float or packed integers with their
    `scales` (total_vectors,); page i owns the rows from offsets[i] to offsets[i + 1]. `bits` is needed for sketches
    only. A page without vectors scores 0.
    """
    import numpy as np

    scores = np.zeros(len(offsets) - 1, np.float32)
    filled = np.flatnonzero(np.diff(offsets))
    if not len(filled) or not len(question):
        return scores
    starts, ends = offsets[filled], offsets[filled + 1]
    longest = int((ends - starts).max())
    buffer = None if pages.dtype == np.float32 else np.empty((max(BLOCK, longest), question.shape[1]), np.float32)
    first = 0
    while first < len(filled):
        # Whole pages only, as many as fit the block, one at least. Between filled pages there are no rows.
        last = max(first + 1, int(np.searchsorted(ends, starts[first] + BLOCK, side="right")))
        rows = slice(int(starts[first]), int(ends[last - 1]))
        part = pages[rows] if buffer is None else decode(pages[rows], bits, buffer)
        similarities = question @ part.T
        if scales is not None:
            similarities *= scales[rows]
        best = np.maximum.reduceat(similarities, starts[first:last] - rows.start, axis=1)
        scores[filled[first:last]] = best.sum(axis=0)
        first = last
    return scores


def score(question: NDArray[np.float32], pages: PackedPages) -> NDArray[np.float32]:
    """Scores, (n_pages,), of packed pages. ValueError where question and pages come from different encoders."""
    if len(pages.values) and question.shape[1] != pages.dim:
        raise ValueError(f"the question has {question.shape[1]} dimensions, the pages have {pages.dim}")
    return maxsim(question, pages.values, pages.offsets, pages.scales, bits=pages.bits)
