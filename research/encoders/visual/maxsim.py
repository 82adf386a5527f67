"""Exact late interaction in numpy: for every question vector the best vector of a page, summed over the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from research.encoders.visual.packing import Bits, PackedPages, decode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK = 16384  # vectors at once: few enough that memory stays small, enough that the processor's cores rarely wait


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
